// SPDX-License-Identifier: Apache-2.0

// Package topologytest has machines for tests: it turns short descriptions into the files that topology.Read reads.
//
//	m := topologytest.Machine(t, "xeon-4210")
package topologytest

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// Spec describes a machine.
type Spec struct {
	Hostname, Release, Model, Cmdline string

	CPUs    []CPU
	Nodes   []Node
	NICs    []NIC
	Threads []Thread
	// Host is where threads of every machine (systemd, kworkers, ksoftirqd, ...) may run; empty: on all CPUs.
	HostCPUs cpuset.Set
	// Files replaces generated files, or adds to them.
	Files map[string]string
	Links map[string]string // symbolic links: name -> target
	// Without lists paths that do not exist, with everything below them.
	Without []string
	// Denied lists files without read permission; in Dir, which root reads, they do not exist.
	Denied []string
	// OwnPIDs makes a container's view of processes, with Threads only.
	OwnPIDs bool
}

// CPU of a Spec. Siblings have the same Socket and Core; CPUs with the same L3 share this cache.
type CPU struct {
	ID, Socket, Die, Core, Node, L3 int
	Offline                         bool
	MHz                             int // highest clock; 0: 2201
	HighestPerf                     int // 0: none
}

// Node of a Spec.
type Node struct {
	ID        int
	MemoryGiB int
	Pages     map[int][2]int // KiB -> total, free
	Distances []int
}

// NIC of a Spec. It has one interrupt per queue, numbered from IRQ on, each on one CPU of At.
type NIC struct {
	Address, Driver, Interface string
	Vendor, Device             string
	Node, Queues, IRQ          int
	At                         []int
	Count                      int64 // interrupts of a queue so far
}

// Thread of a Spec.
type Thread struct {
	TID, PID    int
	Name        string
	Kernel      bool
	Fixed       bool
	Allowed     cpuset.Set
	CPU         int
	Policy      int // the kernel's number
	Priority    int
	Ticks       int
	Involuntary int
	Cgroup      string // empty: "/"
	Foreign     bool   // of a container's host or of another container; for tests
}

// grid makes CPUs. number returns the id of a CPU by socket, node, core and thread; core returns the kernel's id of a
// core.
func grid(sockets, nodes, cores, threads int, number func(socket, node, core, thread int) int,
	core func(node, core int) int) []CPU {
	var all []CPU
	for s := range sockets {
		for n := range nodes {
			for c := range cores {
				for t := range threads {
					all = append(all, CPU{ID: number(s, n, c, t), Socket: s, Core: core(n, c), Node: s*nodes + n,
						L3: s})
				}
			}
		}
	}
	return all
}

// file of a tree.
type file struct {
	name, text, link string
	readOnly         bool
}

// files makes the files of the tree.
func (s *Spec) files() []file {
	w := &writer{spec: s, at: map[string]int{}}
	w.host()
	w.cpus()
	w.nodes()
	w.nics()
	w.interrupts()
	w.threads()
	for name, text := range s.Files {
		w.put(name, "%s", text)
	}
	for name, to := range s.Links {
		w.add(file{name: name, link: to})
	}
	var kept []file
	for _, f := range w.all {
		if !s.without(f.name) {
			kept = append(kept, f)
		}
	}
	return kept
}

func (s *Spec) without(name string) bool {
	for _, gone := range s.Without {
		if name == gone || strings.HasPrefix(name, gone+"/") {
			return true
		}
	}
	return false
}

// writer collects files. A later file replaces an earlier one of the same name.
type writer struct {
	spec *Spec
	all  []file
	at   map[string]int
}

func (w *writer) add(f file) {
	if i, ok := w.at[f.name]; ok {
		w.all[i] = f
		return
	}
	w.at[f.name] = len(w.all)
	w.all = append(w.all, f)
}

func (w *writer) put(name, format string, args ...any) {
	w.add(file{name: name, text: fmt.Sprintf(format, args...) + "\n"})
}

func (w *writer) host() {
	s := w.spec
	w.put("proc/sys/kernel/hostname", "%s", s.Hostname)
	w.put("proc/sys/kernel/osrelease", "%s", s.Release)
	w.put("proc/cmdline", "%s", s.Cmdline)
	for name, text := range map[string]string{
		"proc/sys/kernel/numa_balancing": "1", "proc/sys/kernel/nmi_watchdog": "1",
		"proc/sys/kernel/sched_rt_runtime_us": "950000",
		"proc/sys/kernel/timer_migration":     "1", "proc/sys/vm/stat_interval": "1", "sys/kernel/mm/ksm/run": "0",
		"sys/kernel/mm/transparent_hugepage/enabled":                      "[always] madvise never",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
		"sys/devices/virtual/workqueue/cpumask":                           w.online().MaskWords(),
		"proc/irq/default_smp_affinity":                                   w.online().MaskWords(),
		"sys/class/net/lo/queues/rx-0/rps_cpus":                           "0",
		"sys/class/net/lo/queues/tx-0/traffic_class":                      "",
	} {
		w.put(name, "%s", text)
	}
}

// cpusWith returns the online CPUs that match.
func (w *writer) cpusWith(match func(c CPU) bool) cpuset.Set {
	var ids []int
	for _, c := range w.spec.CPUs {
		if !c.Offline && match(c) {
			ids = append(ids, c.ID)
		}
	}
	return cpuset.Of(ids...)
}

func (w *writer) online() cpuset.Set { return w.cpusWith(func(CPU) bool { return true }) }
