// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
)

// Refresh returns a copy of m in which frequently changing parts of the running machine are read again: online CPUs,
// interrupts, queues, control groups, kernel settings, TuneD's profile. It does not change m.
func (m *Machine) Refresh() *Machine {
	fresh := *m
	fresh.CPUs, fresh.Unread = slices.Clone(m.CPUs), nil
	fresh.Interfaces, fresh.IRQs, fresh.Cgroups, fresh.Knobs = nil, nil, Cgroups{}, Knobs{}
	r := &reader{tree: hostTree{}, m: &fresh, seen: map[string]int{}}
	if online, ok := value(r, cpuDir+"/online", needed, cpuset.Parse); ok {
		for i := range fresh.CPUs {
			fresh.CPUs[i].Online = online.Has(fresh.CPUs[i].ID)
		}
	}
	r.interfaces()
	r.irqs()
	r.cgroups()
	if fresh.Container {
		r.ownGroups()
	}
	r.knobs()
	fresh.Services.Tuned, _ = r.text("etc/tuned/active_profile", maybe)
	r.count()
	return &fresh
}

// ReadThread reads a thread of the running machine, without the name of its process. It returns false when it has
// ended.
func ReadThread(pid, tid int) (Thread, bool) {
	r := &reader{tree: hostTree{}, m: &Machine{}, seen: map[string]int{}}
	return r.thread(pid, tid)
}
