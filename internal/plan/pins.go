// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"cmp"
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// Pin is the CPU of a vCPU.
type Pin struct {
	CPU  int  // -1: no CPU is left for it
	Kept bool // the vCPU has this CPU already
}

// Pins gives the vCPUs of each guest one CPU each, in the order of m.Guests: none has two vCPUs. A vCPU that is pinned
// to one of the CPUs keeps it. The others get siblings of their guest's CPUs or whole cores, on the node of its memory,
// or else of its other vCPUs. Of a guest without pins either all vCPUs get a CPU or none.
func Pins(m *topology.Machine, cpus cpuset.Set) [][]Pin {
	p := &pinner{m: m, free: cpus, pins: make([][]Pin, len(m.Guests))}
	order := []int{}
	for i, g := range m.Guests {
		order, p.pins[i] = append(order, i), make([]Pin, len(g.VCPUs))
	}
	slices.SortStableFunc(order, func(a, b int) int { // running guests come first
		return cmp.Compare(min(m.Guests[b].PID, 1), min(m.Guests[a].PID, 1))
	})
	for _, i := range order {
		p.keep(i)
	}
	for _, i := range order {
		p.place(i)
	}
	return p.pins
}

type pinner struct {
	m    *topology.Machine
	free cpuset.Set
	pins [][]Pin
}

// keep keeps the pins of a guest that are right.
func (p *pinner) keep(guest int) {
	for n, set := range p.m.Guests[guest].VCPUs {
		p.pins[guest][n] = Pin{CPU: -1}
		if set.Len() == 1 && set.Within(p.free) {
			p.pins[guest][n] = Pin{set.First(), true}
			p.free = p.free.Without(set)
		}
	}
}

// place finds CPUs for the other vCPUs of a guest.
func (p *pinner) place(guest int) {
	g, pins := &p.m.Guests[guest], p.pins[guest]
	floats := !slices.ContainsFunc(g.VCPUs, func(set cpuset.Set) bool { return set.Len() == 1 })
	if floats && p.free.Len() < len(pins) {
		return
	}
	for n := range pins {
		if pins[n].CPU >= 0 {
			continue
		}
		if pins[n].CPU = p.best(g, pins, n); pins[n].CPU >= 0 {
			p.free = p.free.Without(cpuset.Of(pins[n].CPU))
		}
	}
}

// best returns the best free CPU for a vCPU, or -1.
func (p *pinner) best(g *topology.Guest, pins []Pin, vcpu int) int {
	own, home := cpuset.Set{}, cpuset.Set{}
	for _, pin := range pins {
		if pin.CPU >= 0 {
			own = own.Or(cpuset.Of(pin.CPU))
		}
	}
	for _, n := range p.m.Nodes {
		if slices.Contains(g.Nodes, n.ID) || len(g.Nodes) == 0 && n.CPUs.Overlaps(own) {
			home = home.Or(n.CPUs)
		}
	}
	found, least := -1, []int(nil)
	for _, id := range p.free.IDs() {
		core := cpuset.Of(id)
		if c := p.m.CPU(id); c != nil {
			core = core.Or(c.Siblings).And(p.m.Online())
		}
		rank := []int{no(home.Empty() || home.Has(id)), no(core.Overlaps(own)), no(core.Within(p.free)),
			no(g.VCPUs[vcpu].Has(id)), id}
		if found < 0 || slices.Compare(rank, least) < 0 {
			found, least = id, rank
		}
	}
	return found
}

// no returns 0 if a condition holds, so that what holds sorts first.
func no(holds bool) int {
	if holds {
		return 0
	}
	return 1
}
