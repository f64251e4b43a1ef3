// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var cgroupQuota = row{
	kind: CgroupQuota, colour: "held",
	means: "the process used up the CPU quota of its control group",
	known: "the worker was ready to run while its CPU was idle; `cpu.stat`",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: e.Host.Cgroup.Path}, ev.tookCPU() && ev.id == 0 && e.Host.Cgroup.Throttled > 0
	},
	// ThrottledNS is summed over all CPUs of the group; the worker's part shows in its long loops
	counters: func(a *account) {
		if g := a.e.Host.Cgroup; g.Throttled > 0 {
			a.add(culprit{kind: CgroupQuota, name: g.Path}, min(max(g.ThrottledNS, a.takenLoops()), a.e.ns()),
				g.Throttled, 0)
		}
	},
	limits: limits{longest: longGap / 10},
	describe: func(s *scene, c *Cause) {
		g := s.e.Host.Cgroup
		c.Title = fmt.Sprintf("control group %s used up its CPU quota, and the kernel throttled %s", g.Path,
			s.w.label())
		c.Why = fmt.Sprintf("its quota is %d us per %d us, and a worker that polls uses a whole CPU", g.QuotaUS,
			g.PeriodUS)
		c.fact(Counted, "the group was throttled in %d of %d periods, for %s summed over its CPUs", g.Throttled,
			g.Periods, duration(g.ThrottledNS))
	},
	remedy: func(s *scene, c *Cause) {
		g := s.e.Host.Cgroup
		c.Fix = fmt.Sprintf("echo max > %s/cpu.max", g.Dir)
		if g.Version == 1 {
			c.Fix = fmt.Sprintf("echo -1 > %s/cpu.cfs_quota_us", g.Dir)
		}
	},
}
