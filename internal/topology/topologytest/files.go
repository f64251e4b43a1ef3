// SPDX-License-Identifier: Apache-2.0
package topologytest

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

const cpuDir = "sys/devices/system/cpu"

func (w *writer) cpus() {
	var present, info []string
	for _, c := range w.spec.CPUs {
		present = append(present, fmt.Sprint(c.ID))
		dir := fmt.Sprintf("%s/cpu%d/", cpuDir, c.ID)
		w.put(fmt.Sprintf("%snode%d/cpumap", dir, c.Node), "")
		if c.ID > 0 {
			w.put(dir+"online", "%d", map[bool]int{false: 1, true: 0}[c.Offline])
		}
		if c.Offline {
			continue
		}
		info = append(info, fmt.Sprintf("processor\t: %d\nmodel name\t: %s\nflags\t\t: fpu vme sse2\n", c.ID,
			w.spec.Model))
		same := w.cpusWith(func(o CPU) bool { return o.Socket == c.Socket && o.Core == c.Core && o.Die == c.Die })
		shared := w.cpusWith(func(o CPU) bool { return o.L3 == c.L3 })
		w.put(dir+"topology/physical_package_id", "%d", c.Socket)
		w.put(dir+"topology/die_id", "%d", c.Die)
		w.put(dir+"topology/core_id", "%d", c.Core)
		w.put(dir+"topology/thread_siblings_list", "%s", same)
		w.put(dir+"topology/core_cpus_list", "%s", same)
		for i, level := range []int{1, 1, 2, 3} {
			w.put(fmt.Sprintf("%scache/index%d/level", dir, i), "%d", level)
			w.put(fmt.Sprintf("%scache/index%d/shared_cpu_list", dir, i), "%s",
				map[bool]cpuset.Set{false: same, true: shared}[level == 3])
		}
		w.put(dir+"cpufreq/cpuinfo_max_freq", "%d", 1000*cmp.Or(c.MHz, 2201))
		if c.HighestPerf > 0 {
			w.put(dir+"acpi_cppc/highest_perf", "%d", c.HighestPerf)
		}
		w.put(dir+"cpufreq/scaling_governor", "performance")
	}
	set, err := cpuset.Parse(strings.Join(present, ","))
	if err != nil {
		panic(err)
	}
	w.put("proc/cpuinfo", "%s", strings.Join(info, "\n"))
	w.put(cpuDir+"/present", "%s", set)
	w.put(cpuDir+"/online", "%s", w.online())
	w.put(cpuDir+"/smt/control", "on")
	w.kernelSets(set.IDs()[set.Len()-1])
}

// kernelSets writes the sets that the kernel derives from its arguments.
func (w *writer) kernelSets(last int) {
	k := topology.Kernel{Cmdline: w.spec.Cmdline}
	for arg, file := range map[string]string{"isolcpus": "isolated", "nohz_full": "nohz_full"} {
		a, err := k.CPUArg(arg, last)
		if err != nil {
			panic(err)
		}
		text := a.CPUs.String()
		if arg == "nohz_full" && !a.Given {
			text = "(null)"
		}
		w.put(cpuDir+"/"+file, "%s", text)
	}
}

func (w *writer) nodes() {
	total := 0
	for _, n := range w.spec.Nodes {
		dir := fmt.Sprintf("sys/devices/system/node/node%d/", n.ID)
		total += n.MemoryGiB
		w.put(dir+"cpulist", "%s", w.cpusWith(func(c CPU) bool { return c.Node == n.ID }))
		w.put(dir+"meminfo", "Node %d MemTotal:       %d kB\nNode %d MemFree:        1024 kB", n.ID, n.MemoryGiB<<20,
			n.ID)
		w.put(dir+"distance", "%s", strings.Trim(fmt.Sprint(n.Distances), "[]"))
		pages := map[int][2]int{2048: {}, 1048576: {}}
		for kib, count := range n.Pages {
			pages[kib] = count
		}
		for kib, count := range pages {
			w.put(fmt.Sprintf("%shugepages/hugepages-%dkB/nr_hugepages", dir, kib), "%d", count[0])
			w.put(fmt.Sprintf("%shugepages/hugepages-%dkB/free_hugepages", dir, kib), "%d", count[1])
		}
	}
	w.put("proc/meminfo", "MemTotal:       %d kB", total<<20)
	for _, kib := range []int{2048, 1048576} {
		w.put(fmt.Sprintf("sys/kernel/mm/hugepages/hugepages-%dkB/nr_hugepages", kib), "0")
		w.put(fmt.Sprintf("sys/kernel/mm/hugepages/hugepages-%dkB/free_hugepages", kib), "0")
	}
}

func (w *writer) nics() {
	w.put("sys/bus/pci/devices/0000:00:00.0/class", "0x060000") // the host bridge, which is not a NIC
	for _, n := range w.spec.NICs {
		dir := "sys/bus/pci/devices/" + n.Address + "/"
		w.put(dir+"class", "0x020000")
		w.put(dir+"vendor", "%s", n.Vendor)
		w.put(dir+"device", "%s", n.Device)
		w.put(dir+"numa_node", "%d", n.Node)
		w.put(dir+"current_link_speed", "8.0 GT/s PCIe")
		w.put(dir+"current_link_width", "8")
		w.add(file{name: dir + "driver", link: "../../../bus/pci/drivers/" + n.Driver})
		for i := range n.Queues {
			w.put(fmt.Sprintf("%smsi_irqs/%d", dir, n.IRQ+i), "msix")
		}
		if n.Interface == "" {
			continue
		}
		w.put(dir+"net/"+n.Interface+"/ifindex", "2")
		for i := range n.Queues {
			w.put(fmt.Sprintf("sys/class/net/%s/queues/rx-%d/rps_cpus", n.Interface, i), "%s", cpuset.Set{}.MaskWords())
			w.put(fmt.Sprintf("sys/class/net/%s/queues/tx-%d/xps_cpus", n.Interface, i), "%s",
				cpuset.Of(n.At[i%len(n.At)]).MaskWords())
		}
	}
}

// interrupts writes the timer and the NICs' lines.
func (w *writer) interrupts() {
	online := w.online().IDs()
	var t strings.Builder
	t.WriteString("     ")
	for _, id := range online {
		fmt.Fprintf(&t, "%11s", fmt.Sprintf("CPU%d", id))
	}
	t.WriteString("\n")
	line := func(n int, counts map[int]int64, chip, name string) {
		fmt.Fprintf(&t, "%4d:", n)
		for _, id := range online {
			fmt.Fprintf(&t, " %10d", counts[id])
		}
		fmt.Fprintf(&t, "  %s      %s\n", chip, name)
	}
	line(0, map[int]int64{online[0]: 42}, "IR-IO-APIC    2-edge", "timer")
	w.irq(0, w.online(), cpuset.Of(online[0]), "timer")
	for _, n := range w.spec.NICs {
		for i := range n.Queues {
			at := n.At[i%len(n.At)]
			name := fmt.Sprintf("%s-TxRx-%d", n.Interface, i)
			line(n.IRQ+i, map[int]int64{at: n.Count}, fmt.Sprintf("IR-PCI-MSI %d-edge", 1048576+i), name)
			w.irq(n.IRQ+i, cpuset.Of(at), cpuset.Of(at), name)
		}
	}
	t.WriteString(" NMI:")
	for range online {
		fmt.Fprintf(&t, " %10d", 7)
	}
	t.WriteString("   Non-maskable interrupts\n ERR:          0\n")
	w.put("proc/interrupts", "%s", strings.TrimSuffix(t.String(), "\n"))
}

func (w *writer) irq(n int, may, does cpuset.Set, name string) {
	w.put(fmt.Sprintf("proc/irq/%d/smp_affinity_list", n), "%s", may)
	w.put(fmt.Sprintf("proc/irq/%d/effective_affinity_list", n), "%s", does)
	w.put(fmt.Sprintf("sys/kernel/irq/%d/actions", n), "%s", name)
}

const (
	kthread = 0x00208040
	fixed   = 0x04000000
)

// threads writes the threads of the Spec and those that every host has.
func (w *writer) threads() {
	for _, t := range w.spec.Threads {
		w.thread(t)
	}
	if w.spec.OwnPIDs {
		return
	}
	online, host := w.online(), w.spec.HostCPUs
	if host.Empty() {
		host = online
	}
	user := func(pid int, name, group string) {
		w.thread(Thread{TID: pid, PID: pid, Name: name, Allowed: host, CPU: host.First(), Cgroup: group, Ticks: 900})
	}
	user(1, "systemd", "/init.scope")
	user(700, "systemd-journal", "/system.slice/systemd-journald.service")
	user(900, "sshd", "/system.slice/sshd.service")
	kernel := func(pid int, name string, cpus cpuset.Set, bound bool) {
		w.thread(Thread{TID: pid, PID: pid, Name: name, Kernel: true, Fixed: bound, Allowed: cpus, CPU: cpus.First(),
			Ticks: 3})
	}
	kernel(2, "kthreadd", host, false)
	kernel(3, "rcu_sched", host, false)
	kernel(4, "kworker/u80:0-events_unbound", host, true)
	pid := 10
	for _, id := range online.IDs() {
		for _, name := range []string{"cpuhp/%d", "migration/%d", "ksoftirqd/%d", "kworker/%d:0-events"} {
			kernel(pid, fmt.Sprintf(name, id), cpuset.Of(id), true)
			if pid++; pid == 700 {
				pid = 10_000
			}
		}
	}
}

func (w *writer) thread(t Thread) {
	dir := fmt.Sprintf("proc/%d/task/%d/", t.PID, t.TID)
	flags := 0x400000
	if t.Kernel {
		flags = kthread
	}
	if t.Fixed {
		flags |= fixed
	}
	group := t.Cgroup
	if group == "" {
		group = "/"
	}
	w.put(dir+"stat", "%d (%s) S 1 1 1 0 -1 %d 0 0 0 0 %d 0 0 0 20 0 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 0 "+
		"0 0 0 0 17 %d %d %d 0 0 0 0 0 0 0 0 0 0 0",
		t.TID, t.Name, flags, t.Ticks, t.CPU, t.Priority, t.Policy)
	w.put(dir+"status", "Name:\t%s\nState:\tS (sleeping)\nCpus_allowed:\t%s\nCpus_allowed_list:\t%s\n"+
		"voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t%d",
		t.Name, t.Allowed.MaskWords(), t.Allowed, t.Involuntary)
	w.put(dir+"cgroup", "0::%s", group)
}
