// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// placeForwarding gives each forwarding worker a core, and a receiving worker its sibling or the next core.
func (k *maker) placeForwarding() error {
	before := k.given()
	forwarding := k.w.ForwardingCPUs.IDs()
	for i := len(forwarding); i < k.w.Forwarding; i++ {
		id := k.takeWorker(k.homes[i%len(k.homes)])
		if id < 0 {
			return k.short("forwarding", "cores", k.w.Forwarding, i, before)
		}
		k.give(id, Forwarding, k.whyWorker(id, k.homes[i%len(k.homes)]))
		forwarding = append(forwarding, id)
		if k.w.IsolatedRx > 0 && k.w.IsolatedRxCPUs.Empty() && k.placeReceiver(id) < 0 {
			return k.short("forwarding", "pairs with isolated_rx", k.w.Forwarding, i, before)
		}
	}
	if !k.w.ForwardingCPUs.Empty() && k.w.IsolatedRxCPUs.Empty() && k.w.IsolatedRx > 0 {
		for i, id := range forwarding {
			if k.placeReceiver(id) < 0 {
				return k.short("isolated_rx", "CPUs", k.w.IsolatedRx, i, before)
			}
		}
	}
	slices.Sort(forwarding)
	for i, id := range forwarding {
		k.workers = append(k.workers, Worker{i, Forwarding, id, k.cpu[id].Node, -1})
	}
	k.pair()
	return nil
}

// placeReceiver puts a receiving worker beside its forwarding one.
func (k *maker) placeReceiver(forwarder int) int {
	c := k.byCPU[forwarder]
	if free := k.free(c); len(free) > 0 && !k.has(c, func(r Role) bool { return !r.worker() }) {
		k.give(free[0], IsolatedRx, fmt.Sprintf("sibling of CPU %d, whose packets it receives: the one pair that gains from sharing a core", forwarder))
		return free[0]
	}
	id := k.takeWorker(c.node)
	if id >= 0 {
		why := fmt.Sprintf("receives for CPU %d", forwarder)
		if k.byCPU[id].node == c.node {
			why += ", on the same node: the ring between them stays in its caches"
		}
		k.give(id, IsolatedRx, why)
	}
	return id
}

// pair says which receiving worker serves which forwarding one: siblings first, then of the same node, then in order.
func (k *maker) pair() {
	left := []int{}
	for _, c := range k.usable.IDs() {
		if k.role[c] == IsolatedRx {
			left = append(left, c)
		}
	}
	serves := map[int]int{}
	matches := []func(a, b int) bool{
		func(a, b int) bool { return k.byCPU[a] == k.byCPU[b] },
		func(a, b int) bool { return k.domain(a) == k.domain(b) && k.cpu[a].Node == k.cpu[b].Node },
		func(a, b int) bool { return k.cpu[a].Node == k.cpu[b].Node },
		func(a, b int) bool { return true },
	}
	for _, match := range matches {
		for _, f := range k.workers {
			if _, served := serves[f.ID]; served {
				continue
			}
			if at := slices.IndexFunc(left, func(id int) bool { return match(id, f.CPU) }); at >= 0 {
				serves[f.ID] = left[at]
				left = slices.Delete(left, at, at+1)
			}
		}
	}
	n := len(k.workers)
	for i := range n {
		if id, ok := serves[i]; ok {
			k.workers = append(k.workers, Worker{len(k.workers), IsolatedRx, id, k.cpu[id].Node, i})
		}
	}
}

func (k *maker) placeHostPath() error {
	before := k.given()
	ids := k.w.HostPathCPUs.IDs()
	for i := len(ids); i < k.w.HostPath; i++ {
		id := k.takeWorker(k.homes[0])
		if id < 0 {
			return k.short("host_path", "cores", k.w.HostPath, i, before)
		}
		k.give(id, HostPath, "the kernel's traffic: "+k.whyWorker(id, k.homes[0]))
		ids = append(ids, id)
	}
	for _, id := range ids {
		k.workers = append(k.workers, Worker{len(k.workers), HostPath, id, k.cpu[id].Node, -1})
	}
	return nil
}

// takeWorker finds a CPU for a worker: a core with workers and room when cores may be shared, else a free core, else a spare.
func (k *maker) takeWorker(node int) int {
	var found *core
	for _, c := range k.near(node) {
		free := k.free(c)
		if len(free) == 0 {
			continue
		}
		near := found == nil || found.node == c.node
		if near && k.w.ShareCores && k.has(c, Role.worker) && !k.has(c, func(r Role) bool { return !r.worker() }) {
			return free[0]
		}
		if found == nil && len(free) == c.cpus.Len() {
			found = c
		}
	}
	if found == nil {
		return -1
	}
	return k.free(found)[0]
}

// whyWorker is the reason for a worker's place.
func (k *maker) whyWorker(id, home int) string {
	c := k.byCPU[id]
	why := fmt.Sprintf("%s %d", k.homeName(), c.node)
	if c.node != home {
		why = fmt.Sprintf("no core is left on node %d: the nearest other node is %d", home, c.node)
	}
	switch {
	case k.single:
		return "the only CPU: everything shares it, as allow_overlap permits"
	case k.role[c.cpus.First()] == Housekeeping:
		return why + fmt.Sprintf(", beside the host's CPU %d, as allow_overlap permits", c.cpus.First())
	case k.has(c, Role.worker):
		return why + ", second worker of its core, as share_cores permits"
	case c.cpus.Len() > 1 && !k.w.ShareCores:
		return why + ", a core of its own, siblings included"
	}
	return why + ", a core of its own"
}

// homeName says why a node is the one to begin at.
func (k *maker) homeName() string {
	if len(k.w.NICs) == 0 {
		return "node"
	}
	return "NUMA node of " + strings.Join(k.w.NICs, ", ") + ":"
}

// takeOther finds a CPU for what does not poll: the rest of a core that has the role, a free core, or the sibling of something
// that does not mind.
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
	before, cores := k.given(), k.near(k.homes[0])
	for i := k.w.ServiceCPUs.Len(); i < k.w.Service; i++ {
		id := k.takeOther(Service, cores)
		if id < 0 {
			return k.short("service", "CPUs", k.w.Service, i, before)
		}
		why := fmt.Sprintf("on node %d", k.byCPU[id].node)
		if node := k.homes[0]; k.byCPU[id].node == node && len(k.workers) > 0 {
			why += ", beside the workers and apart from them"
		}
		k.give(id, Service, why)
	}
	return nil
}

// placeGuests gives guests whole cores, on the nodes and in the caches of the workers first.
func (k *maker) placeGuests() error {
	before, cores := k.given(), k.guestCores()
	for i := k.w.GuestCPUs.Len(); i < k.w.Guests; i++ {
		id := k.takeOther(Guests, cores)
		if id < 0 {
			return k.short("guests", "CPUs", k.w.Guests, i, before)
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
	slices.SortStableFunc(cores, func(a, b *core) int {
		return cmp.Or(order(nodes[b.node] > 0, nodes[a.node] > 0), k.distance(k.homes[0], a.node)-k.distance(k.homes[0], b.node),
			a.node-b.node, order(domains[b.domain] > 0, domains[a.domain] > 0))
	})
	return list
}

func (k *maker) whyGuest(id int) string {
	c := k.byCPU[id]
	if k.has(c, func(r Role) bool { return r == Guests }) {
		return fmt.Sprintf("sibling of a guest's CPU %d: guests have whole cores", firstOf(c, func(id int) bool { return k.role[id] == Guests }))
	}
	why := fmt.Sprintf("node %d", c.node)
	same := func(w Worker) bool { return w.Node == c.node }
	switch {
	case len(k.workers) == 0 && slices.Contains(k.homes, c.node):
		return k.homeName() + fmt.Sprintf(" %d", c.node)
	case len(k.workers) == 0:
		return why + fmt.Sprintf(", no core is left on node %d", k.homes[0])
	case slices.ContainsFunc(k.workers, func(w Worker) bool { return k.domain(w.CPU) == c.domain && c.domain >= 0 }):
		return why + ", shares its last level of cache with workers"
	case slices.ContainsFunc(k.workers, same):
		return why + ", that of workers"
	}
	return why + ", no core is left on a node with workers"
}

func firstOf(c *core, match func(int) bool) int {
	for _, id := range c.cpus.IDs() {
		if match(id) {
			return id
		}
	}
	return -1
}

// placeEmulators finds CPUs for the guests' other threads among what is left. They go where network interrupts were not
// taken: a thread that shares its CPU with softirqs does not get enough of it.
func (k *maker) placeEmulators() error {
	want, before := k.emulators(), k.given()
	guests := map[int]bool{}
	for id, r := range k.role {
		guests[k.byCPU[id].node] = guests[k.byCPU[id].node] || r == Guests
	}
	for i := k.w.EmulatorCPUs.Len(); i < want; i++ {
		cores := k.near(k.homes[0])
		slices.SortStableFunc(cores, func(a, b *core) int {
			return cmp.Or(order(a.cpus.Overlaps(k.busy), b.cpus.Overlaps(k.busy)), order(guests[b.node], guests[a.node]))
		})
		id := k.takeOther(Emulator, slices.DeleteFunc(cores, func(c *core) bool { return k.has(c, func(r Role) bool { return r == Guests }) }))
		if id < 0 && k.w.Emulator > 0 {
			return k.short("emulator", "CPUs", k.w.Emulator, i, before)
		}
		if id < 0 {
			return nil
		}
		k.give(id, Emulator, k.whyEmulator(id))
	}
	return nil
}

// emulators is how many CPUs the guests' other threads are given: what was asked for, else one for each vhost thread of the
// kernel that is there now, and a core at least.
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
		return "guests' other threads, where no worker, vCPU or interrupt is"
	case k.busy.Has(id):
		return "guests' other threads; it took network interrupts so far, which the plan moves to the host's CPUs"
	}
	return fmt.Sprintf("guests' other threads, away from the network interrupts that were counted on CPU %s", k.busy)
}

// rest gives the CPUs that nobody asked for to the host, but for siblings of what must not be disturbed.
func (k *maker) rest() {
	disturbed := func(r Role) bool { return r.worker() || r == Guests }
	for _, id := range k.usable.IDs() {
		c := k.byCPU[id]
		switch {
		case k.role[id] != "":
		case k.has(c, disturbed) && !k.isSpare(id):
			k.give(id, Idle, fmt.Sprintf("sibling of CPU %d, which loses speed to whatever runs here",
				firstOf(c, func(s int) bool { return k.role[s] != "" && disturbed(k.role[s]) })))
		case k.w.HousekeepingCPUs.Empty():
			k.give(id, Housekeeping, "nobody asked for it: the host may use it")
		default:
			k.give(id, Idle, "nobody asked for it, and housekeeping_cpus does not name it")
		}
	}
}

func (k *maker) isSpare(id int) bool {
	return slices.ContainsFunc(k.spare, func(c *core) bool { return c.cpus.Has(id) })
}
