// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var gap = row{
	kind: Gap, colour: "thread",
	means: "the worker was ready and nobody ran",
	known: "nothing that was looked at says why",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: "nobody"}, ev.tookCPU() && ev.id == 0 && e.Host.Cgroup.Throttled == 0
	},
	counters: func(a *account) {
		if a.rest > tickNS {
			a.add(culprit{kind: Gap, name: "threads that have gone"}, a.rest, int64(a.w.Involuntary), 0)
		}
	},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("CPU %d ran nobody while %s was ready to run", s.w.CPU, s.w.label())
		c.Why = "unknown; a control group above may be limited, or the machine was suspended"
		if s.e.Trace == nil {
			c.Title = fmt.Sprintf("%s waited for its CPU %d, and the threads that ran there have ended", s.w.label(),
				s.w.CPU)
			c.Why = "unknown; short processes leave no counters behind"
		}
	},
	noRemedy: "look at cpu.stat of the control groups above it, and at the machine's log for suspends",
}
