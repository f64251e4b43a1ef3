// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var cgroupQuota = row{
	kind: CgroupQuota, colour: "held",
	means: "the process had used up its CPU time",
	known: "the worker was ready, but nobody ran; `cpu.stat`",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: e.Host.Cgroup.Path}, ev.tookCPU() && ev.id == 0 && e.Host.Cgroup.Throttled > 0
	},
	// what its group stood still is the sum of all CPUs; the worker's own part shows in its long loops
	counters: func(a *account) {
		if g := a.e.Host.Cgroup; g.Throttled > 0 {
			a.add(culprit{kind: CgroupQuota, name: g.Path}, min(max(g.ThrottledNS, a.takenLoops()), a.e.ns()),
				g.Throttled, 0)
		}
	},
	limits: limits{longest: longGap / 10},
	describe: func(s *scene, c *Cause) {
		g := s.e.Host.Cgroup
		c.Title = fmt.Sprintf("control group %s had used up its CPU time, and %s stood still", g.Path, s.w.label())
		c.Why = fmt.Sprintf("its quota is %d us of each %d us; a worker that polls uses all of a CPU", g.QuotaUS,
			g.PeriodUS)
		c.fact(Counted, "throttled in %d of %d periods, %s summed over its CPUs", g.Throttled, g.Periods,
			duration(g.ThrottledNS))
	},
	remedy: func(s *scene, c *Cause) {
		g := s.e.Host.Cgroup
		c.Fix = fmt.Sprintf("echo max > %s/cpu.max", g.Dir)
		if g.Version == 1 {
			c.Fix = fmt.Sprintf("echo -1 > %s/cpu.cfs_quota_us", g.Dir)
		}
	},
}
