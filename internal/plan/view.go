// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// core holds the usable CPUs of one physical core.
type core struct {
	cpus     cpuset.Set
	foreign  cpuset.Set // its other online threads, which we may not use
	node     int
	domain   int  // lowest CPU that shares the last-level cache; the node's lowest CPU if caches are unknown
	isolated bool // the whole core was isolated at boot
	speed    topology.Speed
}

// view is a machine as the planner needs it: cores instead of CPUs, and only usable ones.
type view struct {
	m      *topology.Machine
	cpu    map[int]topology.CPU
	online cpuset.Set
	usable cpuset.Set
	cores  []*core // by lowest CPU
	byCPU  map[int]*core
	nodes  []int      // nodes with usable CPUs, ascending
	busy   cpuset.Set // CPUs that took the network devices' interrupts so far
	unsure bool       // siblings of some CPU are unknown
}

func newView(m *topology.Machine) *view {
	v := &view{m: m, cpu: map[int]topology.CPU{}, byCPU: map[int]*core{}}
	var online []int
	for _, c := range m.CPUs {
		v.cpu[c.ID] = c
		if c.Online {
			online = append(online, c.ID)
		}
	}
	v.online = cpuset.Of(online...)
	v.usable = m.Usable()
	v.group()
	for _, c := range v.cores {
		if !slices.Contains(v.nodes, c.node) {
			v.nodes = append(v.nodes, c.node)
		}
	}
	slices.Sort(v.nodes)
	v.busy = softirqCPUs(m, online)
	return v
}

// group groups CPUs into cores. CPUs belong together even if only one of them names the other as its sibling.
func (v *view) group() {
	leader := map[int]int{}
	find := func(id int) int {
		for leader[id] != id {
			id = leader[id]
		}
		return id
	}
	for _, id := range v.online.IDs() {
		leader[id] = id
	}
	for _, id := range v.online.IDs() {
		v.unsure = v.unsure || v.cpu[id].Siblings.Empty() || v.cpu[id].Core < 0
		for _, s := range v.cpu[id].Siblings.And(v.online).IDs() {
			a, b := find(id), find(s)
			leader[max(a, b)] = min(a, b)
		}
	}
	members := map[int][]int{}
	for _, id := range v.online.IDs() {
		members[find(id)] = append(members[find(id)], id)
	}
	speeds := v.m.Speeds()
	for _, id := range v.usable.IDs() {
		if v.byCPU[id] != nil {
			continue
		}
		all := cpuset.Of(members[find(id)]...)
		c := &core{cpus: all.And(v.usable), foreign: all.Without(v.usable), node: v.cpu[id].Node, domain: v.domain(id),
			speed: speeds[id]}
		c.isolated = c.cpus.Within(v.m.Kernel.Isolated)
		v.cores = append(v.cores, c)
		for _, s := range c.cpus.IDs() {
			v.byCPU[s] = c
		}
	}
}

func (v *view) domain(id int) int {
	if l3 := v.cpu[id].L3; !l3.Empty() {
		return l3.First()
	}
	return -1 - v.cpu[id].Node
}

// threads returns the number of CPUs of the widest core.
func (v *view) threads() int {
	n := 1
	for _, c := range v.cores {
		n = max(n, c.cpus.Len())
	}
	return n
}

// first returns the core of the machine's lowest CPU, which always has kernel work, or nil if it may not be used.
func (v *view) first() *core { return v.byCPU[v.online.First()] }

// of returns the cores of a node.
func (v *view) of(node int) []*core {
	return slices.DeleteFunc(slices.Clone(v.cores), func(c *core) bool { return c.node != node })
}

// known reports whether the machine has a node, with or without CPUs.
func (v *view) known(node int) bool {
	return slices.ContainsFunc(v.m.Nodes, func(n topology.Node) bool { return n.ID == node })
}

// nic finds a device by its address or its interface.
func (v *view) nic(name string) (topology.NIC, bool) {
	for _, n := range v.m.NICs {
		if n.Address == name || (n.Interface != "" && n.Interface == name) ||
			strings.TrimPrefix(n.Address, "0000:") == name {
			return n, true
		}
	}
	return topology.NIC{}, false
}

// softirqCPUs returns the CPUs that took more than one in a hundred of the network devices' interrupts: softirqs run
// where the interrupt was taken.
func softirqCPUs(m *topology.Machine, online []int) cpuset.Set {
	counts := make([]int64, len(online))
	var total int64
	for _, irq := range m.IRQs {
		if !isNIC(m, irq) {
			continue
		}
		for i, n := range irq.Counts {
			if i < len(counts) && n > 0 {
				counts[i] += n
				total += n
			}
		}
	}
	var ids []int
	for i, n := range counts {
		if n > total/100 {
			ids = append(ids, online[i])
		}
	}
	return cpuset.Of(ids...)
}

func isNIC(m *topology.Machine, irq topology.IRQ) bool {
	for _, n := range m.NICs {
		if slices.Contains(n.IRQs, irq.Number) || (n.Interface != "" && strings.HasPrefix(irq.Name, n.Interface)) {
			return true
		}
	}
	return false
}

// Layout lists what a plan depends on: the cores of each node, and the nodes of the network devices.
func Layout(m *topology.Machine) []string {
	v := newView(m)
	var lines []string
	for _, node := range v.nodes {
		var cores []string
		for _, c := range v.of(node) {
			cores = append(cores, strings.ReplaceAll(c.cpus.String(), ",", "+"))
		}
		lines = append(lines, fmt.Sprintf("node %d: cores %s", node, strings.Join(cores, " ")))
	}
	for _, n := range m.NICs {
		lines = append(lines, fmt.Sprintf("NIC %s: node %d", n.Address, n.Node))
	}
	return lines
}
