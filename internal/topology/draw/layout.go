// SPDX-License-Identifier: Apache-2.0

// Package draw draws a map of a machine's CPUs by socket, NUMA node, cache and core, each with its use, as text for a
// terminal and as SVG.
package draw

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/topology"
)

// node of a socket; a socket without information about nodes has one.
type node struct {
	socket, id int
	title      string
	caches     []cache
}

// cache is a last-level cache with its cores.
type cache struct {
	key   string
	cores []core
}

type core struct {
	id, die int
	cpus    []int
	speed   topology.Speed
}

// layout sorts the CPUs by their position. The core of an offline CPU is not known: it is drawn as a core of its own,
// and where its socket is not known either, in a block for all such CPUs.
func layout(m *topology.Machine) []node {
	var all []node
	speeds := m.Speeds()
	for i := range m.CPUs {
		c := &m.CPUs[i]
		id := c.Node
		if !c.Online && c.Socket < 0 {
			id = -1 // one block for all of them
		}
		at := slices.IndexFunc(all, func(n node) bool { return n.socket == c.Socket && n.id == id })
		if at < 0 {
			at = len(all)
			all = append(all, node{socket: c.Socket, id: id, title: title(m, c)})
		}
		all[at].add(c, speeds[c.ID])
	}
	slices.SortStableFunc(all, func(a, b node) int {
		return cmp.Or(cmp.Compare(order(a.socket), order(b.socket)), cmp.Compare(a.id, b.id))
	})
	for _, n := range all {
		slices.SortStableFunc(n.caches, func(a, b cache) int {
			return cmp.Compare(a.cores[0].cpus[0], b.cores[0].cpus[0])
		})
	}
	return all
}

// order sorts unknown numbers last.
func order(id int) int {
	if id < 0 {
		return 1 << 30
	}
	return id
}

func (n *node) add(c *topology.CPU, speed topology.Speed) {
	key := c.L3.String()
	at := slices.IndexFunc(n.caches, func(k cache) bool { return k.key == key })
	if at < 0 {
		at = len(n.caches)
		n.caches = append(n.caches, cache{key: key})
	}
	k := &n.caches[at]
	for i := range k.cores {
		if slices.Contains(k.cores[i].cpus, c.Siblings.First()) {
			k.cores[i].cpus = append(k.cores[i].cpus, c.ID)
			return
		}
	}
	k.cores = append(k.cores, core{id: c.Core, die: c.Die, cpus: []int{c.ID}, speed: speed})
}

// title returns the heading of a node: its socket, memory and NICs.
func title(m *topology.Machine, c *topology.CPU) string {
	text := fmt.Sprintf("socket %d", c.Socket)
	if !c.Online && c.Socket < 0 {
		return "offline"
	}
	if c.Socket < 0 {
		text = "socket unknown"
	}

	if c.Node < 0 {
		return text + ", node unknown"
	}
	text += fmt.Sprintf(", node %d", c.Node)
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.ID == c.Node && n.MemoryKiB > 0 {
			text += ", " + GiB(n.MemoryKiB)
		}
	}
	for i := range m.NICs {
		if m.NICs[i].Node == c.Node {
			text += ", NIC " + m.NICs[i].Address
		}
	}
	return text
}

// GiB formats an amount of memory.
func GiB(kib int64) string {
	if kib < 10<<20 {
		return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
	}
	return fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
}
