// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// Group is a set of CPUs with the same role and reason.
type Group struct {
	Role Role       `json:"role"`
	CPUs cpuset.Set `json:"cpus"`
	Why  string     `json:"why"`
}

// Groups returns the CPUs of a plan by role and reason, for display.
func (p *Plan) Groups() []Group {
	ids := map[CPU][]int{} // by role and reason
	var groups []Group
	for _, c := range p.CPUs {
		key := CPU{Role: c.Role, Why: c.Why}
		if ids[key] == nil {
			groups = append(groups, Group{Role: c.Role, Why: c.Why})
		}
		ids[key] = append(ids[key], c.ID)
	}
	for i, g := range groups {
		groups[i].CPUs = cpuset.Of(ids[CPU{Role: g.Role, Why: g.Why}]...)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return slices.Index(Roles, a.Role) - slices.Index(Roles, b.Role)
	})
	return groups
}

// Explain describes one CPU of the plan, in sentences.
func (p *Plan) Explain(id int) []string {
	at := slices.IndexFunc(p.CPUs, func(c CPU) bool { return c.ID == id })
	if at < 0 {
		return nil
	}
	c := p.CPUs[at]
	lines := []string{fmt.Sprintf("CPU %d is %s: %s.", id, c.Role, c.Why)}
	node, siblings := p.place(id)
	if node != "" {
		lines = append(lines, fmt.Sprintf("It is on %s, %s.", node, p.siblingText(siblings)))
	}
	for _, w := range p.Workers {
		if w.CPU != id {
			continue
		}
		text := fmt.Sprintf("Worker %d polls on it", w.ID)
		if w.Target >= 0 && w.Target < len(p.Workers) {
			text += fmt.Sprintf(" and receives for worker %d on CPU %d", w.Target, p.Workers[w.Target].CPU)
		}
		lines = append(lines, text+".")
	}
	return append(lines, p.hostText(id))
}

// place finds a CPU in the layout: its node and its siblings.
func (p *Plan) place(id int) (node string, siblings []int) {
	for _, line := range p.Layout {
		key, cores, _ := strings.Cut(line, ": cores ")
		for core := range strings.FieldsSeq(cores) {
			set, err := cpuset.Parse(strings.ReplaceAll(core, "+", ","))
			if err == nil && set.Has(id) {
				return key, set.Without(cpuset.Of(id)).IDs()
			}
		}
	}
	return "", nil
}

func (p *Plan) siblingText(siblings []int) string {
	if len(siblings) == 0 {
		return "alone on its core"
	}
	var parts []string
	for _, s := range siblings {
		role := string(p.roleOf(s))
		if role == "" {
			role = "not in the plan"
		}
		parts = append(parts, "CPU "+strconv.Itoa(s)+" ("+role+")")
	}
	return "on the same core as " + strings.Join(parts, ", ")
}

// hostText says what else may run on a CPU.
func (p *Plan) hostText(id int) string {
	switch {
	case p.Isolated.Has(id):
		return "It is isolated: no other threads and no interrupts."
	case p.IRQs.Has(id):
		return "It runs the host's threads and takes interrupts."
	}
	return "It may run the host's threads, but takes no interrupts."
}
