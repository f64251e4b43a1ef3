// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// shape is a machine made of equal parts. at gives the place of a CPU: node and core within the machine.
type shape struct {
	cpus, nodes, domains int // domains: last-level caches per node
	at                   func(id int) (node, core int)
}

// build makes the machine of a shape.
func build(s shape) *topology.Machine {
	m := &topology.Machine{Hostname: "host"}
	cores, domains := map[int][]int{}, map[int][]int{}
	perNode := map[int][]int{} // cores
	for id := range s.cpus {
		node, core := s.at(id)
		if len(cores[core]) == 0 {
			perNode[node] = append(perNode[node], core)
		}
		cores[core] = append(cores[core], id)
	}
	domain := map[int]int{}
	for node, list := range perNode {
		for i, core := range list {
			domain[core] = node*s.domains + i*s.domains/len(list)
			domains[domain[core]] = append(domains[domain[core]], cores[core]...)
		}
	}
	for id := range s.cpus {
		node, core := s.at(id)
		m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Socket: node, Core: core, Node: node, Siblings: cpuset.Of(cores[core]...),
			L3: cpuset.Of(domains[domain[core]]...)})
	}
	for node := range s.nodes {
		n := topology.Node{ID: node, MemoryKiB: 64 << 20, Hugepages: []topology.Hugepages{{KiB: 1 << 20, Total: 16, Free: 16}}}
		for other := range s.nodes {
			n.Distances = append(n.Distances, map[bool]int{true: 10, false: 21}[other == node])
		}
		for _, c := range m.CPUs {
			if c.Node == node {
				n.CPUs = n.CPUs.Or(cpuset.Of(c.ID))
			}
		}
		m.Nodes = append(m.Nodes, n)
	}
	return m
}

func withNIC(m *topology.Machine, address string, node int) *topology.Machine {
	m.NICs = append(m.NICs, topology.NIC{Address: address, Node: node, Vendor: "0x8086", Device: "0x1583"})
	return m
}

// xeon is the host with 2 x 10 cores and two siblings each of a field report: node 0 is 0-9,20-29.
func xeon() *topology.Machine {
	return withNIC(build(shape{40, 2, 1, func(id int) (int, int) { return id % 20 / 10, id % 20 }}), "0000:3b:00.0", 0)
}

// twenty is the host with 20 cores without siblings of a field report.
func twenty() *topology.Machine {
	return withNIC(build(shape{20, 2, 1, func(id int) (int, int) { return id / 10, id }}), "0000:01:00.0", 0)
}

// sixteen is the host of a field report whose even CPUs are node 0: two devices there, whose interrupts all its CPUs took,
// and a guest with eight vhost threads.
func sixteen() *topology.Machine {
	m := build(shape{16, 2, 1, func(id int) (int, int) { return id % 2, id % 8 }})
	for i, name := range []string{"enp4s0f0", "enp4s0f1"} {
		nic := topology.NIC{Address: fmt.Sprintf("0000:04:00.%d", i), Node: 0, Driver: "ixgbe", Interface: name}
		for q := range 8 {
			irq := topology.IRQ{Number: 60 + 10*i + q, Name: fmt.Sprintf("%s-TxRx-%d", name, q), Affinity: cpuset.Of(2 * q),
				Counts: make([]int64, 16)}
			irq.Counts[2*q] = 1_000_000
			irq.Counts[1] = 12
			nic.IRQs = append(nic.IRQs, irq.Number)
			m.IRQs = append(m.IRQs, irq)
		}
		m.NICs = append(m.NICs, nic)
	}
	guest := topology.Guest{Name: "bigip-virtio", PID: 23329, Source: "libvirt", Emulator: cpuset.Of(0, 2, 4, 6, 8, 10, 12, 14)}
	for i := range 10 {
		guest.VCPUs = append(guest.VCPUs, cpuset.Of([]int{0, 2, 4, 6, 8, 10, 12, 14, 2, 4}[i]))
	}
	for i := range 8 {
		guest.Vhost = append(guest.Vhost, topology.Thread{TID: 23332 + i, PID: 23332 + i, Name: "vhost-23329", Kernel: true})
	}
	m.Guests = []topology.Guest{guest}
	return m
}

// nps4 is a server with two sockets of 64 cores, four nodes per socket, and two last-level caches per node.
func nps4() *topology.Machine {
	m := build(shape{256, 8, 2, func(id int) (int, int) { return id % 128 / 16, id % 128 }})
	for i := range m.Nodes {
		for j := range m.Nodes[i].Distances {
			switch {
			case i == j:
			case i/4 == j/4:
				m.Nodes[i].Distances[j] = 12
			default:
				m.Nodes[i].Distances[j] = 32
			}
		}
	}
	for i := range m.CPUs {
		m.CPUs[i].Socket = m.CPUs[i].Node / 4
	}
	return withNIC(m, "0000:c1:00.0", 5)
}

func fourSockets() *topology.Machine {
	return withNIC(build(shape{96, 4, 1, func(id int) (int, int) { return id % 4, id % 48 }}), "0000:81:00.0", 2)
}

func big() *topology.Machine {
	return withNIC(build(shape{384, 2, 12, func(id int) (int, int) { return id % 192 / 96, id % 192 }}), "0000:41:00.0", 1)
}

func oneCore() *topology.Machine {
	return withNIC(build(shape{2, 1, 1, func(int) (int, int) { return 0, 0 }}), "0000:00:03.0", -1)
}

func oneCPU() *topology.Machine { return build(shape{1, 1, 1, func(int) (int, int) { return 0, 0 }}) }

// vm is a small virtual machine whose cores are as its host says.
func vm() *topology.Machine {
	m := withNIC(build(shape{4, 1, 1, func(id int) (int, int) { return 0, id }}), "0000:00:05.0", -1)
	m.Virtual = "kvm"
	return m
}

// offline is the Xeon with the siblings of cores 1 and 2 and all of core 3 taken offline.
func offline() *topology.Machine {
	m := xeon()
	gone := cpuset.Of(21, 22, 3, 23)
	for i := range m.CPUs {
		c := &m.CPUs[i]
		c.Online = !gone.Has(c.ID)
		c.Siblings = c.Siblings.Without(gone)
		if !c.Online {
			c.Siblings, c.Core, c.Node = cpuset.Of(c.ID), -1, 0
		}
	}
	return m
}

// container sees the whole Xeon and may use eight CPUs for at most six CPUs' time.
func container() *topology.Machine {
	m := xeon()
	m.Container = true
	m.Cgroups = topology.Cgroups{Version: 2, Groups: []topology.Cgroup{
		{Path: "/", Effective: cpuset.Of(4, 5, 6, 7, 24, 25, 26, 27), QuotaUS: 600000, PeriodUS: 100000}}}
	return m
}
