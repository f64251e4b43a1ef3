// SPDX-License-Identifier: Apache-2.0
package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

const cpu = "sys/devices/system/cpu/"

// Machines with wrong files: the content of a file ("-": missing, "!": not readable), what Unread must say, and what
// must be known then.
func TestLies(t *testing.T) {
	for _, lie := range []struct {
		name   string
		files  map[string]string
		unread string // all of it
		fact   func(m *topology.Machine) any
		want   string
	}{
		{"no list of CPUs", map[string]string{cpu + "present": "-"}, "/sys/devices/system/cpu/present is missing", cpus,
			"0-15"},
		{"list of CPUs is not valid", map[string]string{cpu + "present": "0-x"},
			"/sys/devices/system/cpu/present '0-x' is not a CPU or range of CPUs; valid: a list, 0,5-7", cpus, "0-15"},
		{"CPU without directory", map[string]string{cpu + "present": "0-17", cpu + "online": "0-17"},
			"/sys/devices/system/cpu/present has CPUs 16-17, which have no directory: they are left out\n" +
				"/sys/devices/system/cpu/online has CPUs 16-17, which are not present: they are left out", cpus,
			"0-15"},
		{"directory of a slot", map[string]string{cpu + "present": "0-14", cpu + "online": "0-14",
			cpu + "cpu7/topology/thread_siblings_list": "7", cpu + "cpu7/topology/core_cpus_list": "7"}, "", cpus,
			"0-14"},
		{"online is unreadable", map[string]string{cpu + "online": "!"},
			"/sys/devices/system/cpu/online permission denied\n/sys/devices/system/cpu/online all CPUs 0-15 are " +
				"taken as online", cpus, "0-15"},
		{"online are others", map[string]string{cpu + "online": "99"},
			"/sys/devices/system/cpu/online has none of the CPUs 0-15: all of them are taken as online", cpus, "0-15"},
		{"core ids are gone", map[string]string{cpu + "cpu4/topology/core_id": "-", cpu + "cpu5/topology/core_id": "-",
			cpu + "cpu6/topology/core_id": "-"},
			"/sys/devices/system/cpu/cpu4/topology/core_id is missing; and 2 more like it",
			func(m *topology.Machine) any { return []int{m.CPU(4).Core, m.CPU(7).Core} }, "[-1 7]"},
		{"socket is not a number", map[string]string{cpu + "cpu4/topology/physical_package_id": "zero"},
			"/sys/devices/system/cpu/cpu4/topology/physical_package_id 'zero' is not a number",
			func(m *topology.Machine) any { return m.CPU(4).Socket }, "-1"},
		{"siblings without itself", map[string]string{cpu + "cpu4/topology/core_cpus_list": "12"},
			"/sys/devices/system/cpu/cpu4/topology/thread_siblings_list '12' lacks CPU 4 itself: this CPU is taken " +
				"as alone on its core\n" +
				"/sys/devices/system/cpu/cpu12/topology/thread_siblings_list CPU 12 has siblings 4,12, but CPU 4 " +
				"has others: it is taken as alone on its core",
			func(m *topology.Machine) any { return fmt.Sprint(m.CPU(4).Siblings, " ", m.CPU(12).Siblings) }, "4 12"},
		{"node is gone from one CPU", map[string]string{"sys/devices/system/node/node0/cpulist": "0-14",
			cpu + "cpu15/node0": "-"},
			"/sys/devices/system/cpu/cpu15 CPU 15 is online, but in no node",
			func(m *topology.Machine) any { return m.CPU(15).Node }, "-1"},
		{"CPU in two nodes", map[string]string{
			"sys/devices/system/node/node1/cpulist":  "3-4",
			"sys/devices/system/node/node1/meminfo":  "Node 1 MemTotal: 5 kB",
			"sys/devices/system/node/node1/distance": "10 20"},
			"/sys/devices/system/node/node1/cpulist has CPU 3, but node 0 has it too: the CPU is assigned to the " +
				"latter; and 1 more like it",
			func(m *topology.Machine) any { return m.CPU(3).Node }, "0"},
		{"memory without total", map[string]string{"sys/devices/system/node/node0/meminfo": "nothing"},
			"/sys/devices/system/node/node0/meminfo has no MemTotal",
			func(m *topology.Machine) any { return m.Nodes[0].MemoryKiB }, "0"},
		{"interrupts without CPUs", map[string]string{"proc/interrupts": "rubbish"},
			"/proc/interrupts does not begin with a line of CPUs", func(m *topology.Machine) any {
				return m.IRQs[0].Name
			}, "timer"},
		{"interrupts cut off", map[string]string{"proc/interrupts": "  CPU0 CPU1\n 0: 7"},
			"/proc/interrupts IRQ 0 has no count for CPU 1", func(m *topology.Machine) any { return len(m.IRQs) }, "0"},
		{"interrupt that is the kernel's", map[string]string{"proc/irq/0/smp_affinity_list": "-"},
			"/proc/irq/0/smp_affinity_list is missing", func(m *topology.Machine) any {
				return m.IRQs[0].Affinity
			}, ""},
		{"stat is cut off", map[string]string{"proc/900/task/900/stat": "900 (sshd) S 1"},
			"/proc/900/task/900/stat has 4 fields, not 41 or more", names, "0"},
		{"stat has no name", map[string]string{"proc/900/task/900/stat": ""},
			"/proc/900/task/900/stat has no name in brackets", names, "0"},
		{"status is gone, the thread is not", map[string]string{"proc/900/task/900/status": "-"},
			"/proc/900/task/900/status is missing", names, "0"},
		{"a thread that has just ended", map[string]string{"proc/900/task/900": "-"}, "", names, "0"},
		{"other users' threads are hidden", map[string]string{"proc/1": "-"},
			"/proc/1 is missing: threads of other users are hidden", names, "1"},
		{"quota is not valid", map[string]string{"sys/fs/cgroup/user.slice/user-0.slice/cpu.max": "fast"},
			"/sys/fs/cgroup/user.slice/user-0.slice/cpu.max 'fast' is not a quota and a period",
			func(m *topology.Machine) any { return len(m.Cgroups.Groups) }, "3"},
		{"no kind of cgroup", map[string]string{"sys/fs/cgroup/cgroup.controllers": "-"},
			"/sys/fs/cgroup has neither version 2 nor the controllers cpuset and cpu of version 1",
			func(m *topology.Machine) any { return m.Cgroups.Version }, "0"},
		{"isolated as before Linux 4.15", map[string]string{cpu + "isolated": "(null)"}, "",
			func(m *topology.Machine) any { return m.Kernel.Isolated }, ""},
		{"profile that is not installed", map[string]string{"etc/tuned/active_profile": "mine"},
			"/etc/tuned/mine/tuned.conf is missing here and in etc/tuned/profiles, etc/tuned, " +
				"usr/lib/tuned/profiles, usr/lib/tuned",
			func(m *topology.Machine) any { return m.Services.Tuned }, "mine"},
		{"profile that reads elsewhere", map[string]string{
			"etc/tuned/active_profile": "mine", "etc/tuned/mine/tuned.conf": "[main]\ninclude=mine\n[variables]\n" +
				"include=/etc/tuned/../shadow"},
			"/etc/shadow is outside /etc/tuned and /usr/lib/tuned: this file of variables is not read",
			func(m *topology.Machine) any { return m.Services.Tuned }, "mine"},
		{"bans are not valid", map[string]string{"etc/sysconfig/irqbalance": "IRQBALANCE_BANNED_CPUS=zz"},
			"/etc/sysconfig/irqbalance IRQBALANCE_BANNED_CPUS: 'zz' is not a mask of CPUs; valid: hexadecimal, 0x60",
			func(m *topology.Machine) any { return m.Services.IrqbalanceBans }, ""},
		{"systemd's CPUs are not valid", map[string]string{"etc/systemd/system.conf": "[Manager]\nCPUAffinity=numa"},
			"/etc/systemd/system.conf CPUAffinity: 'numa' is not a CPU or range of CPUs; valid: a list, 0,5-7",
			func(m *topology.Machine) any { return m.Services.SystemdAffinity }, ""},
		{"guest that is not XML", map[string]string{
			"etc/libvirt/qemu/a.xml": "<domain"},
			"/etc/libvirt/qemu/a.xml is not libvirt XML: XML syntax error on line 1: unexpected EOF",
			func(m *topology.Machine) any { return len(m.Guests) }, "0"},
		{"guest pins a vCPU that it does not have", map[string]string{
			"etc/libvirt/qemu/a.xml": "<domain><name>a</name><vcpu>1</vcpu><cputune><vcpupin vcpu='3' " +
				"cpuset='1'/></cputune></domain>"},
			"/etc/libvirt/qemu/a.xml vcpupin: names a thread that the guest does not have",
			func(m *topology.Machine) any {
				return len(m.Guests)
			}, "0"},
		{"kubelet's state is not JSON", map[string]string{
			"var/lib/kubelet/cpu_manager_state": "{"}, "/var/lib/kubelet/cpu_manager_state is not JSON: unexpected " +
			"end of JSON input",
			func(m *topology.Machine) any { return m.Services.Kubelet }, "map[]"},
	} {
		s := topologytest.Describe(t, "partition")
		for file, text := range lie.files {
			switch text {
			case "-":
				s.Without = append(s.Without, file)
			case "!":
				s.Denied = append(s.Denied, file)
			default:
				s.Files[file] = text
			}
		}
		m := s.Machine(t)
		equal(t, lie.name+": unread", unread(m), lie.unread)
		equal(t, lie.name, lie.fact(m), lie.want)
	}
}

func cpus(m *topology.Machine) any { return m.Online() }

// names returns how often sshd was found.
func names(m *topology.Machine) any {
	n := 0
	for _, t := range m.Threads {
		if t.Name == "sshd" {
			n++
		}
	}
	return n
}

// A machine without any CPU is an error.
func TestNoCPU(t *testing.T) {
	s := topologytest.Describe(t, "one-cpu")
	s.Without = []string{"sys/devices/system/cpu", "proc/cpuinfo"}
	if _, err := topology.ReadTree(s.Tree(t)); err == nil || !strings.Contains(err.Error(), "no CPU") {
		t.Error(err)
	}
	s.Without = []string{"sys"} // a container without /sys: /proc/cpuinfo has the number of CPUs
	m := s.Machine(t)
	equal(t, "CPUs", m.Online(), "0")
	equal(t, "node", m.Nodes[0].CPUs, "0")
}

// With all files rubbish, empty or denied Read returns a machine or an error, and never panics.
func TestAllRubbish(t *testing.T) {
	for _, name := range []string{"odd-even-16", "partition", "xeon-4210"} {
		for _, rubbish := range []string{"", "-1", "\x00\xff", "0-65535,0-65535", "a(b)c", "[x]\n=\n<",
			strings.Repeat("9", 100)} {
			s := topologytest.Describe(t, name)
			tree := s.Tree(t)
			for file := range topology.Texts(tree) {
				tree.Replace(file, rubbish)
			}
			if m, err := topology.ReadTree(tree); err == nil {
				equal(t, "CPUs", len(m.CPUs) > 0, "true")
				_ = topology.Fingerprint(m)
			}
		}
	}
}
