// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var ipi = row{
	kind: IPI, colour: "hard-irq",
	means: "another CPU interrupted the worker's CPU",
	known: "entry and exit of the interrupt vectors, and the threads that sent the interrupts",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		if !ev.vector(kernel.VectorReschedule, kernel.VectorCall, kernel.VectorCallSingle, kernel.VectorIRQWork) {
			return culprit{}, false
		}
		return culprit{name: kernel.Vectors[ev.id]}, true
	},
	limits: limits{rate: 5000},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("other CPUs interrupted CPU %d of %s (%s)", s.w.CPU, s.w.label(), c.Name)
		c.sentBy(interrupterOf(s.e, s.w.CPU))
	},
	noRemedy: "keep the sender's work off this CPU: isolate the CPU (isolcpus=, nohz_full=), and end tools that " +
		"sample all CPUs",
}

// interrupterOf returns the thread that interrupted a CPU most often, nil if none is known.
func interrupterOf(e *Evidence, cpu int) *kernel.Sum {
	return topSum(e, func(s *kernel.Sum) bool { return s.Kind == kernel.KindIPISent && s.CPU == cpu && s.ID != 0 })
}

// sentBy names the sender of the interrupts, unless it is nil: not known.
func (c *Cause) sentBy(s *kernel.Sum) {
	if s == nil {
		return
	}
	c.Name, c.PID, c.TID = s.Name, s.PID, s.ID
	c.fact(Seen, "%s (thread %d of process %d) sent such interrupts %d times", s.Name, s.ID, s.PID, s.Count)
	c.Title += fmt.Sprintf(": %s (%d)", s.Name, s.ID)
}
