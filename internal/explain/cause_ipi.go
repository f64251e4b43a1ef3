// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var ipi = row{
	kind: IPI, colour: "hard-irq",
	means: "another CPU interrupts it",
	known: "interrupt vectors, and the threads that sent them",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		if !ev.vector(kernel.VectorReschedule, kernel.VectorCall, kernel.VectorCallSingle, kernel.VectorIRQWork) {
			return culprit{}, false
		}
		return culprit{name: kernel.Vectors[ev.id]}, true
	},
	limits: limits{rate: 5000},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("other CPUs interrupted %s's CPU %d (%s)", s.w.label(), s.w.CPU, c.Name)
		c.sentBy(interrupterOf(s.e, s.w.CPU))
	},
	noRemedy: "keep what the sender does away from this CPU: isolate it (isolcpus=, nohz_full=), and let no tool " +
		"sample all CPUs",
}

// interrupterOf is the thread that interrupted a CPU most often.
func interrupterOf(e *Evidence, cpu int) *kernel.Sum {
	return topSum(e, func(s kernel.Sum) bool { return s.Kind == kernel.KindIPISent && s.CPU == cpu && s.ID != 0 })
}

// sentBy names the sender of interrupts; nil: it is not known.
func (c *Cause) sentBy(s *kernel.Sum) {
	if s == nil {
		return
	}
	c.Name, c.PID, c.TID = s.Name, s.PID, s.ID
	c.fact(Seen, "sent by %s (thread %d of process %d), %d times", s.Name, s.ID, s.PID, s.Count)
	c.Title += fmt.Sprintf(": %s (%d)", s.Name, s.ID)
}
