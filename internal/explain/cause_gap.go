// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var gap = row{
	kind: Gap, colour: "thread",
	means: "the worker was ready to run, but no known thread had its CPU",
	known: "no other evidence explains the gap",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: "idle CPU"}, ev.tookCPU() && ev.id == 0 && e.Host.Cgroup.Throttled == 0
	},
	counters: func(a *account) {
		if a.rest > tickNS {
			a.add(culprit{kind: Gap, name: "ended threads"}, a.rest, int64(a.w.Involuntary), 0)
		}
	},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("CPU %d was idle while %s was ready to run", s.w.CPU, s.w.label())
		c.Why = "the reason is unknown; a parent control group may be throttled, or the machine was suspended"
		if s.e.Trace == nil {
			c.Title = fmt.Sprintf("%s waited for its CPU %d, and the threads that ran there have ended", s.w.label(),
				s.w.CPU)
			c.Why = "the threads are unknown, because short-lived processes leave no counters behind"
		}
	},
	noRemedy: "look at cpu.stat of its parent control groups, and at the machine's log for suspends",
}
