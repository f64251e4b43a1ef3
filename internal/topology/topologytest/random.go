// SPDX-License-Identifier: Apache-2.0
package topologytest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// Random describes a random machine of 12 to 48 CPUs, with guests, a data plane and services that are often configured
// badly. The same seed gives the same machine.
func Random(seed uint64) *Spec {
	d := dice{rand.New(rand.NewPCG(seed, 17))}
	s, all := d.hardware(fmt.Sprintf("random-%d", seed))
	d.dataPlane(s, all)
	for g := range d.IntN(3) {
		d.guest(s, all, g)
	}
	d.services(s, all)
	return s
}

// hardware describes CPUs, memory, devices and kernel arguments. It also returns all CPUs.
func (d dice) hardware(name string) (*Spec, cpuset.Set) {
	nodes, threads := 1+d.IntN(3), 1+d.IntN(2)
	cores := 12/nodes + d.IntN(5)
	s := &Spec{Hostname: name, Release: "6.8.0-45-generic", Model: "CPU",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet", Files: map[string]string{},
		CPUs: grid(nodes, 1, cores, threads, func(s, _, c, t int) int { return s*cores + c + t*nodes*cores }, same)}
	for n := range nodes {
		distances := make([]int, nodes)
		for to := range distances {
			distances[to] = 20
		}
		distances[n] = 10
		pages := map[int][2]int{}
		if d.one(2) {
			pages[1048576] = [2]int{4, 2}
		}
		s.Nodes = append(s.Nodes, Node{ID: n, MemoryGiB: 64, Distances: distances, Pages: pages})
	}
	all := cpuset.Range(0, nodes*cores*threads-1)
	s.NICs = []NIC{{Address: "0000:17:00.0", Driver: "vfio-pci", Vendor: "0x8086", Device: "0x1592",
		Node: d.IntN(nodes)}, {Address: "0000:18:00.0", Driver: "ice", Interface: "ens1", Vendor: "0x8086",
		Device: "0x1592", Node: d.IntN(nodes), Queues: 1 + d.IntN(4), IRQ: 70, At: d.some(all, 4).IDs(), Count: 9000}}
	if d.one(2) {
		list := d.some(all.Without(cpuset.Of(0)), cores).String()
		s.Cmdline += " isolcpus=" + list
		if d.one(2) {
			s.Cmdline += " nohz_full=" + list + " rcu_nocbs=" + list
		}
	}
	return s, all
}

type dice struct{ *rand.Rand }

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

// some returns up to most CPUs of a set, at least one.
func (d dice) some(of cpuset.Set, most int) cpuset.Set {
	ids := of.IDs()
	d.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return cpuset.Of(ids[:1+d.IntN(min(most, len(ids)))]...)
}

func (d dice) dataPlane(s *Spec, all cpuset.Set) {
	if d.one(3) {
		return
	}
	const pid = 2000
	s.Threads = append(s.Threads, Thread{TID: pid, PID: pid, Name: "corelaned", Allowed: all,
		Cgroup: "/system.slice/corelaned.service"})
	for n, cpu := range d.some(all.Without(cpuset.Of(0)), 2).IDs() {
		s.Threads = append(s.Threads, Thread{TID: pid + 1 + n, PID: pid, Name: fmt.Sprintf("pmd-fwd-%d", n),
			Allowed: cpuset.Of(cpu), CPU: cpu, Cgroup: "/system.slice/corelaned.service"})
	}
}

// guest adds a guest that is pinned well, badly or not at all.
func (d dice) guest(s *Spec, all cpuset.Set, number int) {
	pid, name := 5000+100*number, fmt.Sprintf("g%d", number)
	emulator := d.some(all, 4)
	s.Threads = append(s.Threads, Thread{TID: pid, PID: pid, Name: "qemu-kvm", Allowed: emulator,
		CPU: emulator.First()})
	var tune strings.Builder
	vcpus := 1 + d.IntN(4)
	for n := range vcpus {
		cpus := all
		if !d.one(4) {
			cpus = d.some(all, 1)
		}
		s.Threads = append(s.Threads, Thread{TID: pid + 1 + n, PID: pid, Name: fmt.Sprintf("CPU %d/KVM", n),
			Allowed: cpus, CPU: cpus.First(), Ticks: 900})
		fmt.Fprintf(&tune, "<vcpupin vcpu='%d' cpuset='%s'/>", n, cpus)
	}
	for n := range d.IntN(3) {
		s.Threads = append(s.Threads, Thread{TID: pid + 50 + n, PID: pid + 50 + n, Name: fmt.Sprintf("vhost-%d", pid),
			Kernel: true, Allowed: emulator, CPU: emulator.First()})
	}
	memory := ""
	if d.one(2) {
		memory = fmt.Sprintf("<numatune><memory mode='strict' nodeset='%d'/></numatune>", d.IntN(len(s.Nodes)))
	}
	xml := "etc/libvirt/qemu/" + name + ".xml"
	s.Files[xml] = fmt.Sprintf("<domain type='kvm'><name>%s</name><vcpu>%d</vcpu>"+
		"<cputune>%s<emulatorpin cpuset='%s'/></cputune>%s<devices><interface type='vhostuser'><driver queues='%d'/>"+
		"</interface></devices></domain>", name, vcpus, tune.String(), emulator, memory, 1+d.IntN(4))
	s.Files[fmt.Sprintf("proc/%d/cmdline", pid)] = "qemu-kvm\x00-name\x00guest=" + name + ",debug-threads=on"
}

func (d dice) services(s *Spec, all cpuset.Set) {
	if d.one(2) {
		s.Files["etc/nova/nova.conf"] = "[compute]\ncpu_dedicated_set=" + d.some(all, 12).String() +
			"\ncpu_shared_set=" + d.some(all, 4).String()
	}
	if d.one(3) {
		s.Files["var/lib/kubelet/config.yaml"] = "kind: KubeletConfiguration\ncpuManagerPolicy: static\n" +
			"reservedSystemCPUs: \"" + d.some(all, 6).String() + "\""
	}
	if d.one(3) {
		s.Threads = append(s.Threads, Thread{TID: 940, PID: 940, Name: "irqbalance", Allowed: all})
	}
	if d.one(3) {
		s.Files["sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io memory pids"
		s.Files["sys/fs/cgroup/cpuset.cpus.effective"] = all.String()
	}
	if d.one(4) {
		s.Files["etc/tuned/active_profile"] = "cpu-partitioning"
		s.Files["etc/tuned/cpu-partitioning-variables.conf"] = "isolated_cores=" + d.some(all, 9).String()
		s.Files["usr/lib/tuned/cpu-partitioning/tuned.conf"] = cpuPartitioning
		s.Files["usr/lib/tuned/network-latency/tuned.conf"] = "[main]\nsummary=Low latency\n"
	}
	if d.one(4) {
		s.Files["sys/class/net/ens1/queues/rx-0/rps_cpus"] = d.some(all, 9).MaskWords()
	}
	if d.one(4) {
		s.Files["etc/systemd/system.conf"] = "[Manager]\nCPUAffinity=" + d.some(all, 6).String()
	}
}
