// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
)

// Refresh is the running machine with what moves by the second read anew: CPUs online, interrupts, queues, control groups, settings
// of the kernel, TuneD's profile. Threads and all else are those of m, which does not change.
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
	r.knobs()
	fresh.Services.Tuned, _ = r.text("etc/tuned/active_profile", maybe)
	r.count()
	return &fresh
}

// ReadThread reads one thread of the running machine, without the name of its process; false: it has ended.
func ReadThread(pid, tid int) (Thread, bool) {
	r := &reader{tree: hostTree{}, m: &Machine{}, seen: map[string]int{}}
	return r.thread(pid, tid)
}
