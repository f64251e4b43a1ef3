// SPDX-License-Identifier: Apache-2.0
package topology_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// The machine that runs the test matches lscpu, and this test is among its threads.
func TestThisMachine(t *testing.T) {
	m := read(t, "/")
	own := false
	for _, thread := range m.Threads {
		own = own || thread.PID == os.Getpid() && thread.TID == os.Getpid() && !thread.Allowed.Empty()
	}
	if !own {
		t.Error("this process is not among the threads")
	}
	out, err := exec.Command("lscpu", "-p=CPU,SOCKET,NODE").Output()
	if err != nil {
		t.Skip("lscpu:", err)
	}
	for line := range strings.Lines(string(out)) {
		var id, socket, node int
		if _, err := fmt.Sscanf(line, "%d,%d,%d", &id, &socket, &node); err != nil {
			continue // a comment, or a machine without nodes
		}
		c := m.CPU(id)
		if c == nil || !c.Online || c.Socket >= 0 && c.Socket != socket || c.Node != node {
			t.Errorf("lscpu has %s, we have %+v", strings.TrimSpace(line), c)
		}
	}
}

// A captured machine with cgroup version 1.
func TestCapturedVM(t *testing.T) {
	m := topologytest.Machine(t, "vm-cgroup-v1")
	equal(t, "unread", unread(m), "")
	equal(t, "cgroups", fmt.Sprint(m.Cgroups.Version, " ", m.Cgroups.Groups[0].Path, " ",
		m.Cgroups.Groups[0].Effective), "1 / 0-1")
	equal(t, "NIC", fmt.Sprint(m.NICs), "[{0000:00:03.0 0 0x1af4 0x1041 virtio-pci eth0 1 1 [37 38 39]  0}]")
	equal(t, "kind", fmt.Sprint(m.Virtual, " ", m.Container), "unknown true")
	equal(t, "caches", fmt.Sprint(m.CPU(1).L2, " ", m.CPU(1).L3), "1 0-1")
	equal(t, "interrupt", fmt.Sprint(m.IRQs[13].Name, " ", m.IRQs[13].Number), "virtio2-input.0 38")
}

func TestFingerprint(t *testing.T) {
	m := topologytest.Machine(t, "odd-even-16")
	want := topology.Fingerprint(m)
	m.NICs[0], m.NICs[1] = m.NICs[1], m.NICs[0]
	m.Threads, m.IRQs, m.Hostname, m.CPUs[0].Governor, m.NICs[0].Driver = nil, nil, "other", "powersave", "vfio-pci"
	equal(t, "of the same machine under other load", topology.Fingerprint(m), want)
	for what, change := range map[string]func(*topology.Machine){
		"core": func(m *topology.Machine) {
			m.CPUs[3].Core++
		}, "node": func(m *topology.Machine) { m.CPUs[3].Node = 0 },
		"offline": func(m *topology.Machine) {
			m.CPUs[3].Online = false
		}, "NIC": func(m *topology.Machine) { m.NICs[0].Address = "0000:05:00.0" },
		"cache": func(m *topology.Machine) {
			m.CPUs[3].L3 = m.CPUs[3].L2
		}, "fewer": func(m *topology.Machine) { m.CPUs = m.CPUs[1:] },
	} {
		m := topologytest.Machine(t, "odd-even-16")
		change(m)
		if topology.Fingerprint(m) == want {
			t.Errorf("%s: the fingerprint did not change", what)
		}
	}
}

// From Linux 6.9 on the kernel numbers dies over the whole machine, and before that within each socket. A plan stays
// one for this machine when its kernel is replaced.
func TestFingerprintOfOtherKernel(t *testing.T) {
	m := topologytest.Machine(t, "odd-even-16")
	want := topology.Fingerprint(m)
	for i := range m.CPUs {
		m.CPUs[i].Die += m.CPUs[i].Socket
	}
	equal(t, "with dies of the whole machine", topology.Fingerprint(m), want)
	m.CPUs[3].Die = 7
	if topology.Fingerprint(m) == want {
		t.Error("two dies in a socket: the fingerprint did not change")
	}
}

// A guest of libvirt and its running process are one guest.
func TestGuest(t *testing.T) {
	m := topologytest.Machine(t, "odd-even-16")
	equal(t, "guests", len(m.Guests), "1")
	g := m.Guests[0]
	equal(t, "guest", fmt.Sprint(g.Name, " ", g.PID, " ", g.Source, " ", g.VCPUs, " ", g.Nodes, " ", g.Queues),
		"bigip-virtio 23329 libvirt [0 2 4 6 8 10 12 14 2 4] [0] [1 4 4]")
	equal(t, "vhost", fmt.Sprint(len(g.Vhost), " ", g.Vhost[7].LastCPU, " ", g.Vhost[7].Kernel), "8 14 true")
	s := topologytest.Describe(t, "odd-even-16")
	delete(s.Files, "etc/libvirt/qemu/bigip-virtio.xml")
	g = s.Machine(t).Guests[0]
	equal(t, "without libvirt", fmt.Sprint(g.Name, " ", g.Source, " ", len(g.VCPUs), " ", g.Emulator),
		"bigip-virtio qemu 10 0,2,4,6,8,10,12,14")
	s = topologytest.Describe(t, "odd-even-16")
	s.Threads = nil
	g = s.Machine(t).Guests[0]
	equal(t, "not running", fmt.Sprint(g.Name, " ", g.PID, " ", len(g.VCPUs), " ", len(g.Vhost)), "bigip-virtio 0 10 0")
}

func TestServices(t *testing.T) {
	s := topologytest.Describe(t, "xeon-4210")
	s.Files["etc/tuned/active_profile"] = "corelane"
	s.Files["etc/tuned/corelane/tuned.conf"] = "[main]\ninclude=cpu-partitioning\n[scheduler]\n" +
		"ps_blacklist=.*pmd.*;^svc-.*\n"
	s.Files["etc/systemd/system.conf.d/10-a.conf"] = "[Manager]\nCPUAffinity=\nCPUAffinity=0,10\n"
	s.Files["usr/lib/systemd/system.conf.d/10-a.conf"] = "[Manager]\nCPUAffinity=5\n"
	s.Files["run/systemd/system.conf.d/20-b.conf"] = "[Manager]\nCPUAffinity=20 30\n[Other]\nCPUAffinity=7\n"
	s.Files["etc/sysconfig/irqbalance"] = "# IRQBALANCE_BANNED_CPULIST=9\nIRQBALANCE_BANNED_CPULIST=\"1-4\"\n" +
		"IRQBALANCE_BANNED_CPUS=20\n"
	s.Threads = append(s.Threads, topologytest.Thread{TID: 951, PID: 951, Name: "irqbalance", Allowed: s.HostCPUs})
	v := s.Machine(t).Services
	equal(t, "spares of the child profile", v.TunedBlacklist, "[.*pmd.* ^svc-.*]")
	equal(t, "variables of the included one", v.TunedVariables["isolated_cores"], "1-9,11-19,21-29,31-39")
	equal(t, "systemd", v.SystemdAffinity, "0,10,20,30")
	equal(t, "irqbalance", fmt.Sprint(v.Irqbalance, " ", v.IrqbalanceBans), "true 1-5")
}

func TestManagedIRQ(t *testing.T) {
	tree := topologytest.Describe(t, "one-cpu").Tree(t)
	for n, line := range map[string]string{"5": "read-only", "6": "writable"} {
		put := map[string]func(string, string) error{"read-only": tree.PutReadOnly, "writable": tree.Put}[line]
		if err := put("proc/irq/"+n+"/smp_affinity_list", "0"); err != nil {
			t.Fatal(err)
		}
	}
	tree.Replace("proc/interrupts", " CPU0\n 5: 1 x edge nvme0q1\n 6: 1 x edge eth0\n")
	m, err := topology.ReadTree(tree)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "managed", fmt.Sprint(m.IRQs[0].Managed, m.IRQs[1].Managed), "true false")
}

// countingTree counts how often something is asked of a tree.
type countingTree struct {
	topology.Tree
	asked map[string]int
}

func (c countingTree) Read(name string) (string, error) {
	c.asked[name]++
	return c.Tree.Read(name)
}

func (c countingTree) List(name string) ([]topology.Entry, error) {
	c.asked[name]++
	return c.Tree.List(name)
}

func (c countingTree) Link(name string) (string, error) {
	c.asked[name]++
	return c.Tree.Link(name)
}

// Reading a machine is fast even with hundreds of processes: of each, a directory and three files are read, once.
func TestEachProcessIsReadOnce(t *testing.T) {
	const more = 300
	count := func(processes int) (sum int, m *topology.Machine) {
		s := topologytest.Describe(t, "xeon-4210")
		for n := range processes {
			s.Threads = append(s.Threads, topologytest.Thread{TID: 20000 + n, PID: 20000 + n, Name: "sleep",
				Allowed: s.HostCPUs})
		}
		c := countingTree{s.Tree(t), map[string]int{}}
		m, err := topology.ReadTree(c)
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range c.asked {
			if sum += n; n > 1 && strings.HasPrefix(name, "proc/2") {
				t.Errorf("%s is read %d times", name, n)
			}
		}
		return sum, m
	}
	few, before := count(0)
	many, after := count(more)
	if len(after.Threads) != len(before.Threads)+more || many-few > 4*more {
		t.Errorf("%d threads by %d files, and %d by %d", len(before.Threads), few, len(after.Threads), many)
	}
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := topology.Read("/"); err != nil {
			b.Fatal(err)
		}
	}
}
