// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// takeOther finds a CPU for a role that does not poll: the rest of a core that has the role, a free core, or the
// sibling of another role that does not poll.
func (k *maker) takeOther(role Role, cores []*core) int {
	matches := []func(c *core, free []int) bool{
		func(c *core, _ []int) bool {
			return k.has(c, func(r Role) bool { return r == role }) && !k.has(c, Role.worker)
		},
		func(c *core, free []int) bool { return len(free) == c.cpus.Len() && c.cpus.Len() > 0 },
		func(c *core, _ []int) bool {
			return !k.has(c, func(r Role) bool { return r.worker() || r == Housekeeping })
		},
	}
	for _, match := range matches {
		for _, c := range cores {
			if free := k.free(c); len(free) > 0 && match(c, free) {
				return free[0]
			}
		}
	}
	return -1
}

func (k *maker) placeService() error {
	before, cores := k.given(), k.serviceCores()
	for i := k.w.ServiceCPUs.Len(); i < k.w.Service; i++ {
		id := k.takeOther(Service, cores)
		if id < 0 {
			return k.short("service", "CPU", k.w.Service, i, before)
		}
		why := fmt.Sprintf("on node %d", k.byCPU[id].node)
		if node := k.homes[0]; k.byCPU[id].node == node && len(k.workers) > 0 {
			why += ", near the workers, but on other cores"
		}
		why += k.byCPU[id].speedText()
		k.give(id, Service, why)
	}
	return nil
}

// serviceCores returns cores near the workers, but of a slower kind if the node has several, and with another cache if
// it has several: guests gain more from the workers' cache.
func (k *maker) serviceCores() []*core {
	domains := map[int]bool{}
	for _, w := range k.workers {
		domains[k.domain(w.CPU)] = true
	}
	list, home := k.near(k.homes[0]), k.homes[0]
	slices.SortStableFunc(list[:len(list)-len(k.spare)], func(a, b *core) int {
		return cmp.Or(k.m.Distance(home, a.node)-k.m.Distance(home, b.node), a.node-b.node,
			order(b.isolated, a.isolated), order(b.speed.Slow, a.speed.Slow), b.kind()-a.kind(),
			order(domains[a.domain], domains[b.domain]))
	})
	return list
}

// placeGuests gives guests whole cores, first on the nodes and in the caches of the workers. If not all of them fit on
// the fastest cores that are left, but on those of a slower kind, they use these: vCPUs of one guest should be equal.
func (k *maker) placeGuests() error {
	before, cores := k.given(), k.guestCores()
	for i := k.w.GuestCPUs.Len(); i < k.w.Guests; i++ {
		id := k.takeOther(Guests, cores)
		if id < 0 {
			return k.short("guests", "CPU", k.w.Guests, i, before)
		}
		k.give(id, Guests, k.whyGuest(id))
	}
	return nil
}

func (k *maker) guestCores() []*core {
	nodes, domains := map[int]int{}, map[int]int{}
	for _, w := range k.workers {
		nodes[w.Node]++
		domains[k.domain(w.CPU)]++
	}
	list := k.near(k.homes[0])
	cores := list[:len(list)-len(k.spare)]
	kind := k.guestKind(cores)
	slices.SortStableFunc(cores, func(a, b *core) int {
		return cmp.Or(order(nodes[b.node] > 0, nodes[a.node] > 0), k.m.Distance(k.homes[0], a.node)-
			k.m.Distance(k.homes[0], b.node), a.node-b.node, order(b.kind() == kind, a.kind() == kind),
			order(domains[b.domain] > 0, domains[a.domain] > 0))
	})
	return list
}

// guestKind returns the fastest kind of cores that has room for all guests, or the fastest kind.
func (k *maker) guestKind(cores []*core) int {
	room, best, fits := map[int]int{}, 0, 0
	for _, c := range cores {
		if len(k.free(c)) == c.cpus.Len() {
			room[c.kind()] += c.cpus.Len()
		}
	}
	for kind, n := range room {
		best = max(best, kind)
		if n >= k.w.Guests-k.w.GuestCPUs.Len() {
			fits = max(fits, kind)
		}
	}
	return cmp.Or(fits, best)
}

func (k *maker) whyGuest(id int) string {
	c := k.byCPU[id]
	if k.has(c, func(r Role) bool { return r == Guests }) {
		return "sibling of a guest's CPU: guests get whole cores"
	}
	why := "on " + k.nodeText(c.node) + c.speedText()
	same := func(w Worker) bool { return w.Node == c.node }
	switch {
	case len(k.workers) == 0 && slices.Contains(k.homes, c.node):
		return why
	case len(k.workers) == 0:
		return why + fmt.Sprintf(", no core is left on node %d", k.homes[0])
	case slices.ContainsFunc(k.workers, func(w Worker) bool { return k.domain(w.CPU) == c.domain && c.domain >= 0 }):
		return why + ", sharing the last-level cache with workers"
	case slices.ContainsFunc(k.workers, same):
		return why + ", like workers"
	}
	return why + ", no core is left on a node with workers"
}

// placeEmulators finds CPUs for the guests' other threads among those that are left. It prefers CPUs that took no
// network interrupts: a thread that shares its CPU with softirqs does not get enough time.
func (k *maker) placeEmulators() error {
	want, before := k.emulators(), k.given()
	guests := map[int]bool{}
	for id, r := range k.role {
		guests[k.byCPU[id].node] = guests[k.byCPU[id].node] || r == Guests
	}
	for i := k.w.EmulatorCPUs.Len(); i < want; i++ {
		cores := k.near(k.homes[0])
		slices.SortStableFunc(cores, func(a, b *core) int {
			return cmp.Or(order(a.cpus.Overlaps(k.busy), b.cpus.Overlaps(k.busy)),
				order(guests[b.node], guests[a.node]), order(b.speed.Slow, a.speed.Slow))
		})
		id := k.takeOther(Emulator, slices.DeleteFunc(cores, func(c *core) bool {
			return k.has(c, func(r Role) bool { return r == Guests })
		}))
		if id < 0 && k.w.Emulator > 0 {
			return k.short("emulator", "CPU", k.w.Emulator, i, before)
		}
		if id < 0 {
			return nil
		}
		k.give(id, Emulator, k.whyEmulator(id))
	}
	return nil
}

// emulators returns the number of CPUs for the guests' other threads: the requested number, or one for each vhost
// thread that the kernel has now, and at least a core.
func (k *maker) emulators() int {
	if k.w.Emulator > 0 || k.w.Guests == 0 {
		return k.w.Emulator
	}
	n := k.threads()
	if k.w.Forwarding == 0 {
		vhost := 0
		for _, g := range k.m.Guests {
			vhost += len(g.Vhost)
		}
		n = max(n, vhost)
	}
	return min(n, k.usable.Len())
}

func (k *maker) whyEmulator(id int) string {
	switch {
	case k.busy.Empty():
		return "guests' other threads, without workers, vCPUs and interrupts"
	case k.busy.Has(id):
		return "guests' other threads; so far it took network interrupts, which the plan moves to the host's CPUs"
	}
	return fmt.Sprintf("guests' other threads, away from the network interrupts that were counted on CPU %s", k.busy)
}

// rest gives the remaining CPUs to the host, except siblings of workers and guests, which stay idle.
func (k *maker) rest() {
	disturbed := func(r Role) bool { return r.worker() || r == Guests }
	for _, id := range k.usable.IDs() {
		c := k.byCPU[id]
		switch {
		case k.role[id] != "":
		case k.has(c, disturbed) && !k.isSpare(id):
			k.give(id, Idle, "sibling of a worker or guest, which would slow down if this CPU were used")
		case k.w.HousekeepingCPUs.Empty():
			k.give(id, Housekeeping, "not requested by any role: the host may use it")
		default:
			k.give(id, Idle, "not requested by any role, and not in housekeeping_cpus")
		}
	}
}

func (k *maker) isSpare(id int) bool {
	return slices.ContainsFunc(k.spare, func(c *core) bool { return c.cpus.Has(id) })
}
