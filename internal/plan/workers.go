// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"slices"
	"strings"
)

// placeForwarding gives each forwarding worker a core, and each receiving worker a sibling or the next core.
func (k *maker) placeForwarding() error {
	before := k.given()
	forwarding := k.w.ForwardingCPUs.IDs()
	for i := len(forwarding); i < k.w.Forwarding; i++ {
		id := k.takeWorker(k.homes[i%len(k.homes)], k.w.IsolatedRx > 0)
		if id < 0 {
			return k.short("forwarding", k.unit(), k.w.Forwarding, i, before)
		}
		k.give(id, Forwarding, k.whyWorker(id, k.homes[i%len(k.homes)]))
		forwarding = append(forwarding, id)
		if k.w.IsolatedRx > 0 && k.w.IsolatedRxCPUs.Empty() && k.placeReceiver(id) < 0 {
			return k.short("forwarding", "pair with isolated_rx", k.w.Forwarding, i, before)
		}
	}
	if !k.w.ForwardingCPUs.Empty() && k.w.IsolatedRxCPUs.Empty() && k.w.IsolatedRx > 0 {
		for i, id := range forwarding {
			if k.placeReceiver(id) < 0 {
				return k.short("isolated_rx", k.unit(), k.w.IsolatedRx, i, before)
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

// placeReceiver places a receiving worker near its forwarding worker.
func (k *maker) placeReceiver(forwarder int) int {
	c := k.byCPU[forwarder]
	if free := k.free(c); len(free) > 0 && !k.has(c, func(r Role) bool { return !r.worker() }) {
		k.give(free[0], IsolatedRx, "receives for the forwarding worker on its sibling: only such a pair may share "+
			"a core")
		return free[0]
	}
	id := k.takeWorker(c.node, false)
	if id >= 0 {
		why := "receives for a forwarding worker on another node, which has no core left"
		if k.byCPU[id].node == c.node {
			why = "receives for a forwarding worker on the same node, so the ring between them stays in its caches"
		}
		k.give(id, IsolatedRx, why)
	}
	return id
}

// pair assigns receiving workers to forwarding workers: first siblings, then on the same node, then in order.
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
		id := k.takeWorker(k.homes[0], false)
		if id < 0 {
			return k.short("host_path", k.unit(), k.w.HostPath, i, before)
		}
		k.give(id, HostPath, "the kernel's traffic: "+k.whyWorker(id, k.homes[0]))
		ids = append(ids, id)
	}
	for _, id := range ids {
		k.workers = append(k.workers, Worker{len(k.workers), HostPath, id, k.cpu[id].Node, -1})
	}
	return nil
}

// takeWorker finds a CPU for a worker: on a core with workers and room if cores may be shared, else on a free core,
// else a spare CPU. A pair takes a core with siblings if its node has one.
func (k *maker) takeWorker(node int, pair bool) int {
	var found *core
	for _, c := range k.near(node) {
		free := k.free(c)
		same := found == nil || found.node == c.node
		switch {
		case len(free) == 0 || !same:
		case k.w.ShareCores && k.has(c, Role.worker) && !k.has(c, func(r Role) bool { return !r.worker() }):
			return free[0]
		case len(free) == c.cpus.Len() && (found == nil || pair && len(free) > 1 && found.cpus.Len() == 1):
			found = c
		case len(free) == c.cpus.Len() && k.wastesLess(c, found):
			found = c // no sibling has to stay idle
		}
	}
	if found == nil {
		return -1
	}
	return k.free(found)[0]
}

// wastesLess reports whether a core without siblings is as good for a worker alone as one with. Siblings that belong to
// others, as a container's may, do not count as missing.
func (k *maker) wastesLess(c, found *core) bool {
	real := k.cpu[c.cpus.First()].Siblings.Len()
	return !k.w.ShareCores && k.w.IsolatedRx == 0 && real == c.cpus.Len() && real < found.cpus.Len() &&
		c.kind() == found.kind() &&
		c.domain == found.domain && c.isolated == found.isolated && c.speed.Favoured == found.speed.Favoured
}

// unit names what a worker needs, for errors.
func (k *maker) unit() string {
	if k.w.ShareCores {
		return "CPU"
	}
	return "whole core"
}

// speedText tells a core whose speed differs from that of most.
func (c *core) speedText() string {
	switch {
	case c.speed.Slow:
		return fmt.Sprintf(", a slower core (%d %% of the fastest)", c.speed.Percent)
	case c.speed.Favoured:
		return ", a core with the highest clock"
	}
	return ""
}

// whyWorker returns the reason for a worker's place.
func (k *maker) whyWorker(id, home int) string {
	c := k.byCPU[id]
	why := "on " + k.nodeText(c.node)
	if c.node != home {
		why = fmt.Sprintf("on node %d, as no core is left on node %d", c.node, home)
	}
	why += c.speedText()
	switch {
	case k.single:
		return "the only CPU: all threads share it, as allow_overlap permits"
	case k.role[c.cpus.First()] == Housekeeping:
		return why + fmt.Sprintf(", beside the host's CPU %d, as allow_overlap permits", c.cpus.First())
	case k.has(c, Role.worker):
		return why + ", second worker of its core, as share_cores permits"
	case c.cpus.Len() > 1 && !k.w.ShareCores:
		return why + ", a core of its own, siblings included"
	}
	return why + ", a core of its own"
}

// nodeText names a node and its polled network devices.
func (k *maker) nodeText(node int) string {
	var there []string
	for _, name := range k.w.NICs {
		if n, _ := k.nic(name); n.Node == node {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return fmt.Sprintf("node %d", node)
	}
	return fmt.Sprintf("node %d with %s", node, strings.Join(there, ", "))
}
