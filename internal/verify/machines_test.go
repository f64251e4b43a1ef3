// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

func set(list string) cpuset.Set {
	s, err := cpuset.Parse(list)
	if err != nil {
		panic(err)
	}
	return s
}

// xeon is the 2x10-core host of contrail-specs: CPUs 0-9 and 20-29 on node 0, CPU n+20 is the sibling of n.
func xeon() *topology.Machine {
	m := &topology.Machine{Hostname: "compute", Kernel: topology.Kernel{Release: "3.10.0-1062.9.1.el7.x86_64"}}
	for id := range 40 {
		core := id % 20
		m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Socket: core / 10, Core: core % 10, Node: core / 10,
			Siblings: cpuset.Of(core, core+20), Governor: "performance"})
	}
	pages := []topology.Hugepages{{KiB: 1048576, Total: 16, Free: 10}}
	m.Nodes = []topology.Node{{ID: 0, CPUs: set("0-9,20-29"), Hugepages: pages},
		{ID: 1, CPUs: set("10-19,30-39"), Hugepages: pages}}
	m.NICs = []topology.NIC{{Address: "0000:3b:00.0", Node: 0, Driver: "vfio-pci"},
		{Address: "0000:19:00.0", Node: 0, Driver: "ixgbe", Interface: "em1",
			IRQs: []int{40}}}
	m.Cgroups = topology.Cgroups{Version: 1}
	m.Knobs = topology.Knobs{WorkqueueMask: set("0,10,20,30"), DefaultIRQAffinity: set("0,10,20,30"),
		THP: "always madvise [never]", KSM: "0", NUMABalancing: "0", NMIWatchdog: "0", RTRuntimeUS: "950000",
		StatInterval: "10", SMT: "on", Clocksource: "tsc"}
	m.Load = &topology.Load{Seconds: 1, Threads: map[int]int64{}}
	for _, c := range m.CPUs {
		m.Load.CPUs = append(m.Load.CPUs,
			topology.CPULoad{CPU: c.ID, User: 1, Idle: 99, Interrupts: map[string]int64{"LOC": 1},
				Softirqs: map[string]int64{"TIMER": 1}})
	}
	return m
}

// fieldPlan is the assignment of contrail-specs: workers on 1-4 and their siblings.
func fieldPlan() *plan.Plan {
	p := &plan.Plan{Version: 1, Machine: "compute", Isolated: set("1-9,11-19,21-29,31-39"), IRQs: set("0,10,20,30"),
		Request: plan.Request{Boot: true, ShareCores: true}}
	for id := range 40 {
		role := plan.Guests
		switch id % 20 {
		case 0, 10:
			role = plan.Housekeeping
		case 1, 2, 3, 4:
			role = plan.Forwarding
		case 5:
			role = plan.Service
		}
		p.CPUs = append(p.CPUs, plan.CPU{ID: id, Role: role})
		if role == plan.Forwarding {
			p.Workers = append(p.Workers, plan.Worker{ID: len(p.Workers), Role: role, CPU: id, Node: 0, Target: -1})
		}
	}
	return p
}

const fieldCmdline = "BOOT_IMAGE=/boot/vmlinuz-3.10.0-1062.9.1.el7.x86_64 ro iommu=pt intel_iommu=on isolcpus=%[1]s " +
	"default_hugepagesz=1GB hugepagesz=1G " +
	"hugepages=128 hugepagesz=2M hugepages=2048 skew_tick=1 nohz=on nohz_full=%[1]s rcu_nocbs=%[1]s " +
	"tuned.non_isolcpus=%[2]s intel_pstate=disable nosoftlockup"

// vrouter returns the threads of a data plane with forwarding lcores on CPUs, and other lcores and threads elsewhere.
func vrouter(m *topology.Machine, workers, others cpuset.Set) {
	const pid = 7000
	add := func(name string, allowed cpuset.Set) {
		m.Threads = append(m.Threads, topology.Thread{TID: pid + len(m.Threads), PID: pid, Name: name,
			Process: "contrail-vroute", Allowed: allowed, LastCPU: allowed.First(), Policy: "other", Cgroup: "/docker"})
	}
	add("contrail-vroute", others)
	for n, cpu := range workers.IDs() {
		add(fmt.Sprintf("lcore-slave-%d", 10+n), cpuset.Of(cpu))
	}
	for _, name := range []string{"lcore-slave-1", "lcore-slave-2", "lcore-slave-8", "lcore-slave-9", "rte_mp_handle",
		"eal-intr-thread"} {
		add(name, others)
	}
}

// host adds what every machine has: kernel threads, systemd, some daemons, interrupts.
func host(m *topology.Machine, allowed cpuset.Set) {
	for n, name := range []string{"systemd", "sshd", "dockerd", "nova-compute"} {
		tid := 1 + 100*n
		m.Threads = append(m.Threads, topology.Thread{TID: tid, PID: tid, Name: name, Process: name, Allowed: allowed,
			LastCPU: allowed.First(), Cgroup: "/system.slice"})
	}
	m.Threads = append(m.Threads,
		topology.Thread{TID: 2, PID: 2, Name: "kthreadd", Process: "kthreadd", Kernel: true,
			Allowed: set("0,10,20,30")},
		topology.Thread{TID: 12, PID: 12, Name: "ksoftirqd/3", Process: "ksoftirqd/3", Kernel: true, Fixed: true,
			Allowed: set("3"), LastCPU: 3})
	m.IRQs = []topology.IRQ{{Number: 40, Name: "em1-TxRx-0", Affinity: set("0,10,20,30"), Effective: set("0")}}
	m.Interfaces = []topology.Interface{{Name: "em1", RPS: []cpuset.Set{{}}, XPS: []cpuset.Set{set("0")}}}
}

// full is the fully isolated host of contrail-specs.
func full() *topology.Machine {
	m := xeon()
	iso := set("1-9,11-19,21-29,31-39")
	m.Kernel.Cmdline = fmt.Sprintf(fieldCmdline, iso, "40100401")
	m.Kernel.Isolated, m.Kernel.NohzFull = iso, iso
	m.Services = topology.Services{Tuned: "cpu-partitioning",
		TunedVariables: map[string]string{"isolated_cores": iso.String()},
		TunedBlacklist: []string{".*pmd.*", ".*PMD.*", "^DPDK", ".*qemu-kvm.*", "^contrail-vroute$", "^lcore-slave-.*",
			"^rte_mp_handle$", "^rte_mp_async$", "^eal-intr-thread$"},
		SystemdAffinity: set("0,10,20,30"), VRouter: map[string]string{"CPU_LIST": "1,2,3,4,21,22,23,24"},
		Nova: map[string]string{"vcpu_pin_set": "6-9,11-19,26-29,31-39"}}
	vrouter(m, set("1-4,21-24"), set("5,25"))
	for i := range m.Threads { // one thread, one isolated CPU
		if m.Threads[i].Allowed.Len() > 1 {
			m.Threads[i].Allowed = set("5")
		}
	}
	host(m, set("0,10,20,30"))
	return m
}

// partial is the same host with isolcpus and TuneD for Nova's CPUs only: all other threads use the workers' CPUs.
func partial() *topology.Machine {
	m := full()
	iso := set("6-9,11-19,26-29,31-39")
	rest := set("0-5,10,20-25,30")
	m.Kernel.Cmdline = fmt.Sprintf(fieldCmdline, iso, rest.Mask())
	m.Kernel.Isolated, m.Kernel.NohzFull = iso, iso
	m.Services.TunedVariables = map[string]string{"isolated_cores": iso.String()}
	m.Services.SystemdAffinity = rest
	m.Threads = nil
	vrouter(m, set("1-4,21-24"), rest)
	host(m, rest)
	m.Threads[len(m.Threads)-4].LastCPU = 2 // dockerd
	m.Load.Threads[m.Threads[len(m.Threads)-4].TID] = 40
	return m
}
