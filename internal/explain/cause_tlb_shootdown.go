// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var tlbShootdown = row{
	kind: TLBShootdown, colour: "hard-irq",
	means: "another CPU interrupted the worker's CPU to flush its TLB, because a thread changed the process's " +
		"memory mappings",
	known: "interrupts that flushed the TLB, and the threads that requested the flush",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: "TLB flush"}, ev.vector(kernel.VectorFlush)
	},
	limits: limits{rate: 2000},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("changes of the process's memory mappings made CPU %d flush its TLB in %s's time",
			s.w.CPU, s.w.label())
		c.Why = "all threads of a process share its page tables, so each CPU that runs one of them must flush its TLB"
		sender := topSum(s.e, func(s *kernel.Sum) bool { return s.Kind == kernel.KindTLBSent })
		if sender == nil {
			sender = interrupterOf(s.e, s.w.CPU)
		}
		c.sentBy(sender)
	},
	noRemedy: "the thread unmaps or protects memory repeatedly: make it keep its memory " +
		"(mlock, hugepages, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc)",
}
