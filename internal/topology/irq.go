// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// irqs reads the interrupt lines that have a handler, their counts, and where they may go.
func (r *reader) irqs() {
	table, ok := value(r, "proc/interrupts", needed, parseInterrupts)
	if !ok {
		table.rows = nil
		for _, n := range r.numbered("proc/irq", "", needed) {
			table.rows = append(table.rows, interruptRow{number: n})
		}
	}
	for _, bad := range table.bad {
		r.trouble("proc/interrupts", "%s", bad)
	}
	online := r.m.Online().IDs()
	for _, row := range table.rows {
		irq := IRQ{Number: row.number, Name: row.name}
		if actions, ok := r.text(fmt.Sprintf("sys/kernel/irq/%d/actions", row.number), maybe); ok && actions != "" && actions != "(null)" {
			irq.Name = actions
		}
		if row.counts != nil {
			irq.Counts = make([]int64, len(online))
			for i, id := range online {
				irq.Counts[i] = row.counts[id]
			}
		}
		r.affinity(&irq)
		r.m.IRQs = append(r.m.IRQs, irq)
	}
}

// affinity reads where an interrupt may go and goes. The file is read-only where the kernel keeps the affinity (genirq/proc.c
// since Linux 6.12); older kernels do not tell before one tries.
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

// interruptTable is /proc/interrupts.
type interruptTable struct {
	rows []interruptRow
	bad  []string // lines that make no sense
}

type interruptRow struct {
	number int
	counts map[int]int64 // by CPU
	name   string
}

// The trigger ends what the interrupt controller says; then come the names of the handlers. Before Linux 3.19 x86 has
// "IR-PCI-MSI-edge", since then "IR-PCI-MSI 524288-edge"; ARM "GICv3 27 Level".
var trigger = regexp.MustCompile(`(?i)(^|[- ])(edge|level|fasteoi|none)\s+`)

// parseInterrupts reads the rows of numbered lines. Those of the architecture (NMI, LOC) are left out.
func parseInterrupts(text string) (t interruptTable, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	var cpus []int
	for word := range strings.FieldsSeq(head) {
		id, err := strconv.Atoi(strings.TrimPrefix(word, "CPU"))
		if err != nil || !strings.HasPrefix(word, "CPU") || id < 0 || id >= cpuset.Max {
			return t, errors.New("does not begin with a line of CPUs")
		}
		cpus = append(cpus, id)
	}
	if len(cpus) == 0 {
		return t, errors.New("does not begin with a line of CPUs")
	}
	for line := range strings.Lines(rest) {
		label, after, ok := strings.Cut(strings.TrimSpace(line), ":")
		n, err := strconv.Atoi(label)
		if !ok || err != nil || n < 0 {
			continue
		}
		row, err := interruptLine(n, cpus, after)
		if err != nil {
			t.bad = append(t.bad, err.Error())
			continue
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

func interruptLine(n int, cpus []int, text string) (interruptRow, error) {
	row := interruptRow{number: n, counts: make(map[int]int64, len(cpus))}
	for _, id := range cpus {
		text = strings.TrimLeft(text, " \t")
		word, after, _ := strings.Cut(text, " ")
		count, err := large(word)
		if err != nil || count < 0 {
			return row, fmt.Errorf("IRQ %d has no count for CPU %d", n, id)
		}
		row.counts[id], text = count, after
	}
	text = strings.TrimSpace(text)
	if at := trigger.FindStringIndex(text); at != nil {
		row.name = strings.TrimSpace(text[at[1]:])
	} else if words := strings.Fields(text); len(words) > 0 {
		row.name = words[len(words)-1]
	}
	return row, nil
}
