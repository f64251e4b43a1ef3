// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const nodeDir = "sys/devices/system/node" // Documentation/ABI/stable/sysfs-devices-node

// nodes reads NUMA nodes and gives each CPU its own.
func (r *reader) nodes() {
	ids := r.numbered(nodeDir, "node", maybe)
	if len(ids) == 0 {
		r.oneNode()
		return
	}
	for _, id := range ids {
		dir := fmt.Sprintf("%s/node%d/", nodeDir, id)
		n := Node{ID: id}
		n.CPUs, _ = value(r, dir+"cpulist", needed, cpuset.Parse)
		n.MemoryKiB, _ = value(r, dir+"meminfo", needed, memTotal)
		n.Distances, _ = value(r, dir+"distance", needed, distances)
		n.Hugepages = r.hugepages(dir+"hugepages", "free_hugepages")
		r.m.Nodes = append(r.m.Nodes, n)
	}
	r.nodeOfCPUs()
}

// oneNode handles a machine without information about nodes.
func (r *reader) oneNode() {
	r.trouble(nodeDir, "is missing: all CPUs and memory are taken as one node")
	n := Node{}
	for i := range r.m.CPUs {
		n.CPUs = n.CPUs.Or(cpuset.Of(r.m.CPUs[i].ID))
	}
	n.MemoryKiB, _ = value(r, "proc/meminfo", needed, memTotal)
	n.Hugepages = r.hugepages("sys/kernel/mm/hugepages", "free_hugepages")
	r.m.Nodes = []Node{n}
}

// nodeOfCPUs takes the node of an online CPU from the nodes' lists. The lists lack offline CPUs, whose node is taken
// from their own directory.
func (r *reader) nodeOfCPUs() {
	for i := range r.m.CPUs {
		c := &r.m.CPUs[i]
		c.Node = -1
		for _, n := range r.m.Nodes {
			if !n.CPUs.Has(c.ID) {
				continue
			}
			if c.Node >= 0 {
				r.trouble(fmt.Sprintf("%s/node%d/cpulist", nodeDir, n.ID),
					"has CPU %d, but node %d has it too: the CPU is assigned to the latter", c.ID, c.Node)
				continue
			}
			c.Node = n.ID
		}
		if c.Node < 0 {
			c.Node = r.ownNode(c)
		}
	}
}

func (r *reader) ownNode(c *CPU) int {
	dir := fmt.Sprintf("%s/cpu%d", cpuDir, c.ID)
	if own := r.numbered(dir, "node", maybe); len(own) > 0 {
		return own[0]
	}
	if c.Online {
		r.trouble(dir, "CPU %d is online, but in no node", c.ID)
	}
	return -1
}

// Distance returns the firmware's distance between nodes: 10 is the node itself, 255 is unknown.
func (m *Machine) Distance(from, to int) int {
	if from == to {
		return 10
	}
	at := slices.IndexFunc(m.Nodes, func(n Node) bool { return n.ID == to })
	for i := range m.Nodes {
		if m.Nodes[i].ID == from && at >= 0 && at < len(m.Nodes[i].Distances) {
			return m.Nodes[i].Distances[at]
		}
	}
	return 255
}

// memTotal finds "MemTotal:" in meminfo, in KiB. In a node's meminfo "Node 0" precedes it.
func memTotal(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if _, after, ok := strings.Cut(line, "MemTotal:"); ok {
			return large(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "kB")))
		}
	}
	return 0, fmt.Errorf("has no MemTotal")
}

func distances(text string) ([]int, error) {
	var all []int
	for word := range strings.FieldsSeq(text) {
		n, err := number(word)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// hugepages reads the pools of each size: hugepages-2048kB.
func (r *reader) hugepages(dir, free string) []Hugepages {
	var all []Hugepages
	for _, name := range r.list(dir, "hugepages-*kB", maybe) {
		kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "hugepages-"), "kB"))
		if err != nil {
			continue
		}
		h := Hugepages{KiB: kib}
		h.Total, _ = value(r, dir+"/"+name+"/nr_hugepages", needed, number)
		h.Free, _ = value(r, dir+"/"+name+"/"+free, needed, number)
		all = append(all, h)
	}
	return all
}
