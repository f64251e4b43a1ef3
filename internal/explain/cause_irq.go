// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var irq = row{
	kind: IRQ, colour: "hard-irq",
	means: "a device interrupted the worker's CPU",
	known: "entry and exit of the interrupt's handler, and its affinity",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: fmt.Sprintf("irq %d (%s)", ev.id, ev.name), irq: ev.id}, ev.kind == kernel.KindIRQ
	},
	limits: limits{rate: 2000},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("%s interrupted CPU %d of %s", c.Name, s.w.CPU, s.w.label())
		for _, l := range s.e.Host.Interrupts {
			if l.Label == fmt.Sprint(c.IRQ) && l.Counts[s.w.CPU] > 0 {
				c.fact(Counted, "%.0f interrupts/s on this CPU", float64(l.Counts[s.w.CPU])/s.e.Seconds)
			}
		}
		if p, ok := s.e.Host.IRQs[c.IRQ]; ok {
			c.Why = fmt.Sprintf("its affinity allows CPUs %s, and the kernel delivers it to CPU %s", p.Allowed,
				p.Effective)
		}
	},
	remedy: func(s *scene, c *Cause) {
		if p, ok := s.e.Host.IRQs[c.IRQ]; ok && p.Allowed != "" && !inList(p.Allowed, s.w.CPU) {
			c.FixNote = fmt.Sprintf("it may no longer go to CPU %d: nothing is to do", s.w.CPU)
		} else if s.e.Host.Housekeeping != "" {
			c.Fix = fmt.Sprintf("echo %s > /proc/irq/%d/smp_affinity_list", s.e.Host.Housekeeping, c.IRQ)
		}
		moveAway(s, c)
	},
	noRemedy: "every CPU has a worker: keep one CPU free of workers, and move the interrupt there",
}
