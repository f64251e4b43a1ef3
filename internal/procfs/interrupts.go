// SPDX-License-Identifier: Apache-2.0
package procfs

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Row of /proc/interrupts or /proc/softirqs.
type Row struct {
	Label  string        `json:"label"`  // "24", "LOC", "NET_RX"
	Name   string        `json:"name"`   // what follows the counts: trigger and handlers, or what the row means
	Counts map[int]int64 `json:"counts"` // by CPU; nil: the row has no count for each CPU, as ERR and MIS
}

// IRQ is the number of a row that has one.
func (r *Row) IRQ() (int, bool) {
	n, err := strconv.Atoi(r.Label)
	return n, err == nil && n >= 0
}

// The trigger ends the text of the interrupt controller; then come the names of the handlers. Before Linux 3.19 x86 has
// "IR-PCI-MSI-edge", since then "IR-PCI-MSI 524288-edge"; ARM "GICv3 27 Level".
var trigger = regexp.MustCompile(`(?i)(^|[- ])(edge|level|fasteoi|none)\s+`)

// Handlers are the names of an interrupt's handlers: "ehci_hcd:usb1, eth0".
func (r *Row) Handlers() string {
	if at := trigger.FindStringIndex(r.Name); at != nil {
		return r.Name[at[1]:]
	}
	return r.Name[strings.LastIndexByte(r.Name, ' ')+1:]
}

// Since are the rows that have counted since an earlier reading, with the differences.
func Since(before, after []Row) (list []Row) {
	had := map[string]map[int]int64{}
	for _, r := range before {
		had[r.Label] = r.Counts
	}
	for _, r := range after {
		d := Row{r.Label, r.Name, map[int]int64{}}
		for cpu, n := range r.Counts {
			if n = grown(had[r.Label][cpu], n); n > 0 {
				d.Counts[cpu] = n
			}
		}
		if len(d.Counts) > 0 {
			list = append(list, d)
		}
	}
	return list
}

// ParseInterrupts reads a table with a column for each online CPU, which the first line names. bad has an error for
// each numbered interrupt without a count for each CPU.
func ParseInterrupts(text string) (rows []Row, bad []error, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	var cpus []int
	for word := range strings.FieldsSeq(head) {
		id, err := cpuID(word, "CPU")
		if err != nil {
			return nil, nil, errNoCPUs
		}
		cpus = append(cpus, id)
	}
	if len(cpus) == 0 {
		return nil, nil, errNoCPUs
	}
	for line := range strings.Lines(rest) {
		label, after, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || label == "" || strings.ContainsAny(label, " \t") {
			continue
		}
		row, missing := parseRow(label, cpus, after)
		if _, numbered := row.IRQ(); numbered && row.Counts == nil {
			bad = append(bad, fmt.Errorf("IRQ %s has no count for CPU %d", label, missing))
			continue
		}
		rows = append(rows, row)
	}
	return rows, bad, nil
}

var errNoCPUs = errors.New("does not begin with a line of CPUs")

// parseRow also returns the first CPU without a count, which leaves the row without Counts.
func parseRow(label string, cpus []int, text string) (row Row, missing int) {
	words := strings.Fields(text)
	row = Row{Label: label, Counts: make(map[int]int64, len(cpus))}
	for i, id := range cpus {
		n, err := int64(0), errNoCPUs
		if i < len(words) {
			n, err = count(words[i])
		}
		if err != nil {
			row.Counts, row.Name = nil, strings.Join(words[i:], " ")
			return row, id
		}
		row.Counts[id] = n
	}
	row.Name = strings.Join(words[len(cpus):], " ")
	return row, 0
}
