// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"strconv"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// irqs reads the interrupt lines that have a handler, with their counts and affinities.
func (r *reader) irqs() {
	table, ok := value(r, "proc/interrupts", needed, parseInterrupts)
	if !ok {
		for _, n := range r.numbered("proc/irq", "", needed) {
			table.rows = append(table.rows, procfs.Row{Label: strconv.Itoa(n)})
		}
	}
	for _, bad := range table.bad {
		r.trouble("proc/interrupts", "%s", bad)
	}
	online := r.m.Online().IDs()
	for _, row := range table.rows {
		number, numbered := row.IRQ()
		if !numbered {
			continue // a row of the architecture: NMI, LOC
		}
		irq := IRQ{Number: number, Name: row.Handlers()}
		if actions, ok := r.text(fmt.Sprintf("sys/kernel/irq/%d/actions", number), maybe); ok && actions != "" &&
			actions != "(null)" {
			irq.Name = actions
		}
		if row.Counts != nil {
			irq.Counts = make([]int64, len(online))
			for i, id := range online {
				irq.Counts[i] = row.Counts[id]
			}
		}
		r.affinity(&irq)
		r.m.IRQs = append(r.m.IRQs, irq)
	}
}

// affinity reads where an interrupt may go and where it goes. The file is read-only if the kernel manages the affinity
// (genirq/proc.c since Linux 6.12); on older kernels only a failed write shows it.
func (r *reader) affinity(irq *IRQ) {
	dir := fmt.Sprintf("proc/irq/%d/", irq.Number)
	var ok bool
	if irq.Affinity, ok = value(r, dir+"smp_affinity_list", needed, cpuset.Parse); !ok {
		return
	}
	irq.Effective, _ = value(r, dir+"effective_affinity_list", maybe, cpuset.Parse) // since Linux 4.13
	writable, err := r.tree.Writable(dir + "smp_affinity_list")
	irq.Managed = err == nil && !writable
}

// interruptTable parses /proc/interrupts and notes malformed lines.
type interruptTable struct {
	rows []procfs.Row
	bad  []error
}

func parseInterrupts(text string) (t interruptTable, err error) {
	t.rows, t.bad, err = procfs.ParseInterrupts(text)
	return t, err
}
