// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var tlbShootdown = row{
	kind: TLBShootdown, colour: "hard-irq",
	means: "another CPU does, to flush translations because a thread changed the process' memory",
	known: "interrupts in which translations were flushed, and the threads that asked for it",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: "translations flushed"}, ev.vector(kernel.VectorFlush)
	},
	limits: limits{rate: 2000},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("changes of the process' memory made CPU %d flush translations in %s's time", s.w.CPU,
			s.w.label())
		c.Why = "all threads of a process share its page tables, so each CPU that runs one has to follow"
		sender := topSum(s.e, func(s kernel.Sum) bool { return s.Kind == kernel.KindTLBSent })
		if sender == nil {
			sender = interrupterOf(s.e, s.w.CPU)
		}
		c.sentBy(sender)
	},
	noRemedy: "the thread unmaps or protects memory again and again: let it keep its memory " +
		"(mlock, hugepages, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc)",
}
