// SPDX-License-Identifier: Apache-2.0
package draw

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// Summary describes a machine's hardware and settings in some lines. Long lists (threads, interrupts) are counted.
func Summary(m *topology.Machine) string {
	s := &summary{m: m}
	s.line("host", "%s, Linux %s%s", m.Hostname, m.Kernel.Release, s.kind())
	s.line("topology", "%s", topology.Fingerprint(m))
	s.cpus()
	s.nodes()
	s.nics()
	s.kernel()
	s.work()
	s.guests()
	s.cgroups()
	s.services()
	s.knobs()
	for _, u := range m.Unread {
		s.line("unread", "%s %s", u.Path, u.Why)
	}
	return s.out.String()
}

type summary struct {
	m    *topology.Machine
	out  strings.Builder
	last string
}

// line writes one line. A name is written only before its first line.
func (s *summary) line(name, format string, args ...any) {
	if name == s.last {
		name = ""
	} else {
		s.last = name
	}
	fmt.Fprintf(&s.out, "%-12s%s\n", name, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (s *summary) kind() string {
	text := ""
	if s.m.Virtual != "" {
		text += ", virtual (hypervisor " + s.m.Virtual + ")"
	}
	if s.m.Container {
		text += ", seen from a container"
	}
	return text
}

func (s *summary) cpus() {
	sockets, cores, offline := map[int]bool{}, map[string]bool{}, cpuset.Set{}
	for i := range s.m.CPUs {
		c := &s.m.CPUs[i]
		if !c.Online {
			offline = offline.Or(cpuset.Of(c.ID))
			continue
		}
		sockets[c.Socket] = true
		cores[c.Siblings.String()] = true
	}
	text := fmt.Sprintf("%s online on %s of %s", count(s.m.Online().Len(), "CPU"), count(len(cores), "core"),
		count(len(sockets), "socket"))
	if !offline.Empty() {
		text += ", offline " + offline.String()
	}
	s.line("CPUs", "%s", text)
	if model := s.m.CPUs[0].Model; model != "" {
		s.line("CPUs", "%s", model)
	}
	for _, line := range speeds(s.m) {
		s.line("CPUs", "%s", line[len("[] "):])
	}
}

func (s *summary) nodes() {
	for i := range s.m.Nodes {
		n := &s.m.Nodes[i]
		text := fmt.Sprintf("%d: CPUs %s, %s", n.ID, n.CPUs, GiB(n.MemoryKiB))
		if n.CPUs.Empty() {
			text = fmt.Sprintf("%d: no CPUs, %s", n.ID, GiB(n.MemoryKiB))
		}
		for _, h := range n.Hugepages {
			if h.Total > 0 {
				text += fmt.Sprintf(", %d hugepages of %d KiB (%d free)", h.Total, h.KiB, h.Free)
			}
		}
		s.line("nodes", "%s", text)
	}
}

func (s *summary) nics() {
	for i := range s.m.NICs {
		n := &s.m.NICs[i]
		where := fmt.Sprintf("node %d", n.Node)
		if n.Node < 0 {
			where = "node unknown"
		}
		text := fmt.Sprintf("%s %s:%s, %s, %s", n.Address, n.Vendor, n.Device, or(n.Driver, "no driver"), where)
		if n.Interface != "" {
			text += fmt.Sprintf(", %s, queues %d in %d out", n.Interface, n.RxQueues, n.TxQueues)
		}
		if len(n.IRQs) > 0 {
			text += fmt.Sprintf(", IRQs %s on CPUs %s", cpuset.Of(n.IRQs...), s.irqCPUs(n.IRQs))
		}
		s.line("NICs", "%s", text)
	}
}

// irqCPUs returns the CPUs to which interrupts go, or may go if that is not known.
func (s *summary) irqCPUs(numbers []int) string {
	var all cpuset.Set
	for i := range s.m.IRQs {
		if irq := &s.m.IRQs[i]; slices.Contains(numbers, irq.Number) {
			if irq.Effective.Empty() {
				all = all.Or(irq.Affinity)
			}
			all = all.Or(irq.Effective)
		}
	}
	return or(all.String(), "unknown")
}

func (s *summary) kernel() {
	k := &s.m.Kernel
	s.line("kernel", "isolated %s, nohz_full %s", or(k.Isolated.String(), "none"), or(k.NohzFull.String(), "none"))
	s.line("kernel", "%s", k.Cmdline)
}

func (s *summary) work() {
	kernel, fixed, pinned := 0, 0, 0
	online := s.m.Online()
	for i := range s.m.Threads {
		t := &s.m.Threads[i]
		switch {
		case t.Kernel && t.Fixed:
			fixed++
		case t.Kernel:
			kernel++
		case !online.Within(t.Allowed):
			pinned++
		}
	}
	s.line("threads", "%d: %d kernel threads that can be moved, %d that cannot, %d other threads that may not run "+
		"on all CPUs",
		len(s.m.Threads), kernel, fixed, pinned)
	s.line("interrupts", "%s; most go to CPUs %s", count(len(s.m.IRQs), "line"), or(Interrupted(s.m).String(), "none"))
}

func (s *summary) guests() {
	for i := range s.m.Guests {
		g := &s.m.Guests[i]
		var vcpus []string
		for _, set := range g.VCPUs {
			vcpus = append(vcpus, or(set.String(), "any"))
		}
		state := "not running"
		if g.PID > 0 {
			state = fmt.Sprintf("pid %d", g.PID)
		}
		s.line("guests", "%s (%s, %s): vCPUs on %s; emulator on %s; %s; queues %v", g.Name, g.Source, state,
			strings.Join(vcpus, " "), or(g.Emulator.String(), "any"), count(len(g.Vhost), "vhost thread"), g.Queues)
	}
}

func (s *summary) cgroups() {
	c := &s.m.Cgroups
	if c.Version == 0 {
		s.line("cgroups", "none found")
		return
	}
	s.line("cgroups", "version %d", c.Version)
	for i := range c.Groups {
		g := &c.Groups[i]
		text := fmt.Sprintf("%s: CPUs %s", g.Path, or(g.Effective.String(), "of the group above"))
		if g.Partition != "" {
			text += ", " + g.Partition
		}
		if g.QuotaUS > 0 {
			text += fmt.Sprintf(", quota %.2f CPUs, throttled %d times", float64(g.QuotaUS)/float64(max(g.PeriodUS, 1)),
				g.Throttled)
		}
		s.line("cgroups", "%s", text)
	}
}

func (s *summary) services() {
	v := &s.m.Services
	if v.Tuned != "" {
		s.line("TuneD", "%s%s", v.Tuned, settings(v.TunedVariables))
	}
	if v.Irqbalance || !v.IrqbalanceBans.Empty() {
		s.line("irqbalance", "%s, keeps off CPUs %s",
			map[bool]string{true: "runs", false: "does not run"}[v.Irqbalance], or(v.IrqbalanceBans.String(), "none"))
	}
	if !v.SystemdAffinity.Empty() {
		s.line("systemd", "CPUAffinity %s", v.SystemdAffinity)
	}
	for _, told := range []struct {
		name string
		all  map[string]string
	}{{"kubelet", v.Kubelet}, {"Nova", v.Nova}, {"vRouter", v.VRouter}} {
		if len(told.all) > 0 {
			s.line(told.name, "%s", strings.TrimPrefix(settings(told.all), ", "))
		}
	}
}

func (s *summary) knobs() {
	k := &s.m.Knobs
	all := map[string]string{
		"THP": k.THP, "KSM": k.KSM, "numa_balancing": k.NUMABalancing, "nmi_watchdog": k.NMIWatchdog,
		"sched_rt_runtime_us": k.RTRuntimeUS,
		"timer_migration":     k.TimerMigration, "stat_interval": k.StatInterval, "SMT": k.SMT,
		"clocksource": k.Clocksource,
		"workqueues":  k.WorkqueueMask.String(), "default IRQ affinity": k.DefaultIRQAffinity.String(),
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	s.line("settings", "%s", strings.TrimPrefix(settings(all), ", "))
}

// settings lists names with values, by name.
func settings(all map[string]string) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += ", " + name + " " + all[name]
	}
	return text
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
