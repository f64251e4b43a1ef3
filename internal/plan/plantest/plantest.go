// SPDX-License-Identifier: Apache-2.0

// Package plantest has plans and machines for tests, which published documents describe.
package plantest

import (
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Assignment is a role and its CPUs.
type Assignment struct {
	Role plan.Role
	CPUs string
}

// Make returns a plan with these assignments. Workers are numbered in their order; isolated receivers serve the
// forwarding workers in the same order.
func Make(name string, isolated, irqs string, roles ...Assignment) *plan.Plan {
	p := &plan.Plan{Version: 1, Machine: name, Isolated: Set(isolated), IRQs: Set(irqs),
		Request: plan.Request{Boot: true}}
	byID := map[int]plan.Role{}
	all := cpuset.Set{}
	receivers := 0
	for _, r := range roles {
		cpus := Set(r.CPUs)
		all = all.Or(cpus)
		for _, id := range cpus.IDs() {
			byID[id] = r.Role
			switch r.Role {
			case plan.Forwarding, plan.HostPath:
				p.Workers = append(p.Workers, plan.Worker{ID: len(p.Workers), Role: r.Role, CPU: id, Target: -1})
			case plan.IsolatedRx:
				p.Workers = append(p.Workers, plan.Worker{ID: len(p.Workers), Role: r.Role, CPU: id, Target: receivers})
				receivers++
			}
		}
	}
	for _, id := range all.IDs() {
		p.CPUs = append(p.CPUs, plan.CPU{ID: id, Role: byID[id], Why: "from the report"})
	}
	return p
}

// Set parses a valid list.
func Set(list string) cpuset.Set {
	s, err := cpuset.Parse(list)
	if err != nil {
		panic(err)
	}
	return s
}

// Xeon40 returns the expert's plan for two sockets of ten cores with two threads each: workers use both threads of
// four cores.
func Xeon40() *plan.Plan {
	p := Make("compute-dpdk-0", "1-9,11-19,21-29,31-39", "0,10,20,30", Assignment{plan.Forwarding, "1-4,21-24"},
		Assignment{plan.Service, "5"}, Assignment{plan.Guests, "6-9,11-19,25-29,31-39"},
		Assignment{plan.Housekeeping, "0,10,20,30"})
	p.Layout = plan.Layout(Xeon40Machine())
	p.Topology = topology.Fingerprint(Xeon40Machine())
	p.Hugepages = []plan.HugepageRequest{{Node: 0, KiB: 1048576, Pages: 16}, {Node: 1, KiB: 1048576, Pages: 16}}
	return p
}

// Xeon40Machine returns the machine of Xeon40, on which siblings are 20 apart.
func Xeon40Machine() *topology.Machine {
	m := &topology.Machine{Hostname: "compute-dpdk-0", Nodes: []topology.Node{{ID: 0, CPUs: Set("0-9,20-29")},
		{ID: 1, CPUs: Set("10-19,30-39")}}}
	for id := range 40 {
		core := id % 20
		m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Socket: core / 10, Core: core % 10, Node: core / 10,
			Siblings: cpuset.Of(core, core+20)})
	}
	m.NICs = []topology.NIC{{Address: "0000:3b:00.0", Node: 0, Driver: "vfio-pci"}}
	return m
}

// Dpvs1 returns a plan with a master and four workers on a host of 20 cores without siblings.
func Dpvs1() *plan.Plan {
	return Make("dpvs", "1-5", "0,6-19", Assignment{plan.Service, "1"}, Assignment{plan.Forwarding, "2-5"},
		Assignment{plan.Housekeeping, "0,6-19"})
}

// Dpvs2 returns a plan with a master, four workers, and a receiver for each.
func Dpvs2() *plan.Plan {
	return Make("dpvs", "1-5,11-14", "0,6-10,15-19", Assignment{plan.Service, "3"},
		Assignment{plan.Forwarding, "1,2,4,5"}, Assignment{plan.IsolatedRx, "11-14"},
		Assignment{plan.Housekeeping, "0,6-10,15-19"})
}
