// SPDX-License-Identifier: Apache-2.0
package draw

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Mark is the use of a CPU. Its letter tells it without colours.
type Mark struct {
	Letter byte
	Name   string
	Color  string // in SVG
	ansi   int    // in a terminal with 256 colours
}

var (
	offline  = Mark{'x', "offline", "#9e9e9e", 245}
	unknown  = Mark{'?', "not in the plan", "#ffffff", 255}
	host     = Mark{'.', "used by the host", "#cfd8dc", 252}
	irqs     = Mark{'Q', "takes interrupts of devices", "#ffcc80", 216}
	isolated = Mark{'I', "isolated", "#a5d6a7", 114}
	guests   = Mark{'G', "a guest's vCPU", "#90caf9", 111}
	disturb  = Mark{'!', "isolated, but takes interrupts of devices", "#ef9a9a", 210}
)

var roles = map[plan.Role]Mark{
	plan.Forwarding:   {'F', "forwarding", "#a5d6a7", 114},
	plan.IsolatedRx:   {'R', "isolated receive", "#c5e1a5", 150},
	plan.HostPath:     {'P', "host path", "#fff59d", 228},
	plan.Service:      {'S', "service and control threads", "#ffcc80", 216},
	plan.Guests:       {'G', "guests' vCPUs", "#90caf9", 111},
	plan.Emulator:     {'E', "guests' other threads", "#b39ddb", 141},
	plan.Housekeeping: {'H', "housekeeping: the host, interrupts", "#cfd8dc", 252},
	plan.Idle:         {'-', "kept idle", "#eeeeee", 255},
}

// Order of the legend.
var legend = []Mark{
	roles[plan.Forwarding], roles[plan.IsolatedRx], roles[plan.HostPath], roles[plan.Service], roles[plan.Guests],
	roles[plan.Emulator],
	roles[plan.Housekeeping], roles[plan.Idle], host, irqs, isolated, guests, disturb, offline, unknown,
}

// Marks holds the use of each CPU, by id.
type Marks map[int]Mark

// FromPlan marks the CPUs with their roles. It refuses a plan for another machine.
func FromPlan(m *topology.Machine, p *plan.Plan) (Marks, error) {
	if err := p.Fits(m); err != nil {
		return nil, err
	}
	marks := Marks{}
	for i := range m.CPUs {
		marks[m.CPUs[i].ID] = unknown
		if !m.CPUs[i].Online {
			marks[m.CPUs[i].ID] = offline
		}
	}
	for _, c := range p.CPUs {
		mark, ok := roles[c.Role]
		if old, there := marks[c.ID]; !ok || !there {
			return nil, fmt.Errorf("plan: CPU %d has the role '%s': there is no such CPU or role", c.ID, c.Role)
		} else if old == offline {
			continue
		}
		marks[c.ID] = mark
	}
	return marks, nil
}

// FromMachine marks the CPUs with their present use.
func FromMachine(m *topology.Machine) Marks {
	marks, busy, vcpus := Marks{}, Interrupted(m), pinned(m)
	alone := m.Kernel.Isolated.Or(m.Cgroups.Isolated)
	for i := range m.CPUs {
		id := m.CPUs[i].ID
		switch {
		case !m.CPUs[i].Online:
			marks[id] = offline
		case alone.Has(id) && busy.Has(id):
			marks[id] = disturb
		case vcpus.Has(id):
			marks[id] = guests
		case alone.Has(id):
			marks[id] = isolated
		case busy.Has(id):
			marks[id] = irqs
		default:
			marks[id] = host
		}
	}
	return marks
}

// pinned returns the CPUs of running vCPUs that are pinned.
func pinned(m *topology.Machine) cpuset.Set {
	var all cpuset.Set
	for i := range m.Guests {
		g := &m.Guests[i]
		for _, set := range g.VCPUs {
			if g.PID > 0 && !m.Online().Within(set) {
				all = all.Or(set)
			}
		}
	}
	return all
}

// Interrupted returns the CPUs that took at least half of an even share of all device interrupts since boot.
func Interrupted(m *topology.Machine) cpuset.Set {
	online := m.Online().IDs()
	counts, total := make([]int64, len(online)), int64(0)
	for i := range m.IRQs {
		for at, n := range m.IRQs[i].Counts {
			if at < len(counts) {
				counts[at] += n
				total += n
			}
		}
	}
	var ids []int
	for i, n := range counts {
		if total > 0 && 2*n*int64(len(online)) >= total {
			ids = append(ids, online[i])
		}
	}
	return cpuset.Of(ids...)
}
