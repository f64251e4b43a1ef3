// SPDX-License-Identifier: Apache-2.0
package topologytest

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
)

// xeon64 is a host of two sockets with 16 cores each; a sibling is 32 higher.
func xeon64(name string) *Spec {
	return &Spec{
		Hostname: name, Release: "5.14.0-427.el9.x86_64", Model: "Intel(R) Xeon(R) Gold 6346 CPU @ 3.10GHz",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		CPUs:    grid(2, 1, 16, 2, func(s, _, c, t int) int { return s*16 + c + t*32 }, same),
		Nodes:   two(128),
		NICs: []NIC{{Address: "0000:17:00.0", Driver: "vfio-pci", Vendor: "0x8086", Device: "0x1592", Node: 0},
			{Address: "0000:18:00.0", Driver: "ice", Interface: "ens1", Vendor: "0x8086", Device: "0x1592", Node: 0,
				Queues: 7, IRQ: 70, At: cpuset.Range(40, 46).IDs(), Count: 90000}},
	}
}

// nova is a compute host on which Nova's set of dedicated CPUs and isolcpus= disagree. A guest is pinned well: one CPU
// for each vCPU, siblings together.
func nova() *Spec {
	s := xeon64("nova")
	s.Cmdline += " isolcpus=4-15,36-47 nohz_full=4-15,36-47 rcu_nocbs=4-15,36-47"
	s.NICs[1].At = []int{0, 32, 16, 48}
	const pid = 5000
	host := cpuset.Range(0, 63).Without(cpuset.Range(4, 15)).Without(cpuset.Range(36, 47))
	s.HostCPUs = host
	s.Threads = []Thread{{TID: pid, PID: pid, Name: "qemu-kvm", Allowed: cpuset.Of(8, 9, 40, 41), CPU: 8}}
	xml := "<domain type='kvm'><name>g1</name><vcpu placement='static'>4</vcpu><cputune>"
	for n, cpu := range []int{8, 40, 9, 41} {
		s.Threads = append(s.Threads, Thread{TID: pid + 1 + n, PID: pid, Name: fmt.Sprintf("CPU %d/KVM", n),
			Allowed: cpuset.Of(cpu), CPU: cpu, Ticks: 9000})
		xml += fmt.Sprintf("<vcpupin vcpu='%d' cpuset='%d'/>", n, cpu)
	}
	s.Files = map[string]string{
		"etc/libvirt/qemu/g1.xml": xml + "<emulatorpin cpuset='8-9,40-41'/></cputune><numatune><memory mode='strict' " +
			"nodeset='0'/></numatune><devices><interface type='vhostuser'><driver queues='4'/></interface></devices>" +
			"</domain>",
		"proc/5000/cmdline":  "/usr/libexec/qemu-kvm\x00-name\x00guest=g1,debug-threads=on",
		"etc/nova/nova.conf": "[compute]\ncpu_dedicated_set=6-31,38-63\ncpu_shared_set=2-3,34-35",
	}
	return s
}

// containerHost is the view of a privileged container: it may use 6 of 64 CPUs, but sees the host's interrupts and
// settings and could change them.
func containerHost() *Spec {
	s := xeon64("pod")
	own := cpuset.Of(3, 19, 20, 21, 35, 53)
	s.OwnPIDs = true
	s.Threads = []Thread{
		{TID: 1, PID: 1, Name: "sh", Allowed: own, CPU: 3},
		{TID: 8, PID: 8, Name: "app", Allowed: own, CPU: 19},
	}
	s.Files = map[string]string{
		"run/.containerenv":                   "",
		"sys/fs/cgroup/cgroup.controllers":    "cpuset cpu io memory pids",
		"sys/fs/cgroup/cpuset.cpus.effective": own.String(),
		"sys/fs/cgroup/cpuset.cpus":           own.String(),
	}
	return s
}

// hybrid has six performance cores with siblings (CPUs 0-11, of which two cores reach a higher clock), eight efficient
// ones (12-19) and two low-power ones with a cache of their own (20-21).
func hybrid() *Spec {
	s := &Spec{
		Hostname: "hybrid", Release: "6.14.0-15-generic", Model: "Intel(R) Core(TM) Ultra 7 165H",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		Nodes:   []Node{{MemoryGiB: 64, Distances: []int{10}}},
		NICs: []NIC{{Address: "0000:01:00.0", Driver: "vfio-pci", Vendor: "0x8086", Device: "0x1592"},
			{Address: "0000:02:00.0", Driver: "igc", Interface: "eth0", Vendor: "0x8086", Device: "0x125c", Queues: 4,
				IRQ: 120, At: []int{0, 1, 12, 13}, Count: 7000}},
		Files: map[string]string{"sys/devices/cpu_core/cpus": "0-11", "sys/devices/cpu_atom/cpus": "12-19",
			"sys/devices/cpu_lowpower/cpus": "20-21"},
	}
	for id := range 22 {
		c := CPU{ID: id, Core: id / 2, MHz: 4900, HighestPerf: 61}
		switch {
		case id >= 20:
			c = CPU{ID: id, Core: id, L3: 1, MHz: 2500, HighestPerf: 24}
		case id >= 12:
			c = CPU{ID: id, Core: id, MHz: 3800, HighestPerf: 38}
		case id >= 4 && id < 8:
			c.MHz, c.HighestPerf = 5000, 65
		}
		s.CPUs = append(s.CPUs, c)
	}
	return s
}
