// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Options holds what a plan does not say. The zero value changes threads, interrupts and kernel settings, but creates
// no cgroups and does not stop irqbalance.
type Options struct {
	Self           int                        // process that is never moved (the caller's); 0: none
	Spare          func(topology.Thread) bool // selects threads that are not moved; nil: none
	Cgroups        bool                       // confine threads with cpusets, not only with affinities
	StopIrqbalance bool                       // stop irqbalance; otherwise a Note says how to configure it
}

// decider collects the changes of one machine.
type decider struct {
	m     *topology.Machine
	p     *plan.Plan
	o     Options
	on    cpuset.Set                // online CPUs; in a container only its own
	off   cpuset.Set                // isolated CPUs
	open  cpuset.Set                // online CPUs that are not isolated
	host  cpuset.Set                // CPUs for threads that were allowed on isolated CPUs only
	irqs  cpuset.Set                // CPUs that may take interrupts
	init  cpuset.Set                // CPUs of the first process
	pins  [][]plan.Pin              // CPUs of vCPUs, as m.Guests
	rest  cpuset.Set                // guests' CPUs without those of pins
	left  map[int][]topology.Thread // by PID: threads that are not recognised and stay where they are
	named map[int]bool              // PIDs of guests whose threads for vCPUs have names
	// cpusets has the CPUs that earlier changes write, by the path of the file.
	cpusets map[string]cpuset.Set
	out     []Change
}

// Changes returns what has to change on a machine to match a plan, in the order in which to do it: first the settings
// that direct new work, then existing interrupts and threads, then the cgroups that enforce it. It changes nothing. A
// machine that matches the plan needs no changes. Files for the next boot are not included: see Lasting.
func Changes(m *topology.Machine, p *plan.Plan, o Options) []Change {
	d := &decider{m: m, p: p, o: o, off: p.Isolated, irqs: p.IRQs}
	d.on = m.Usable()
	d.open = d.on.Without(d.off)
	if d.host = p.Of(plan.Housekeeping).And(d.on); d.host.Empty() {
		d.host = d.open
	}
	if d.irqs.Empty() {
		d.irqs = d.open
	}
	if d.off.Empty() || d.open.Empty() {
		return nil // nothing is isolated, or no CPU would be left for other threads
	}
	if inContainer(m, p) { // only its threads belong to it, and m has no others
		d.threads()
		d.add(Change{Kind: Note, Name: "the host", Why: "interrupts, queues, kernel settings, hugepages and cgroups " +
			"belong to the host and all of its containers", ByHand: "make and apply a plan on the host itself"})
		return d.out
	}
	d.knobs()
	d.pages()
	d.irqbalance()
	d.interrupts()
	d.queues()
	d.threads()
	d.cgroups()
	return d.out
}

// inContainer reports whether a plan is about a container, so that nothing of its host may change.
func inContainer(m *topology.Machine, p *plan.Plan) bool { return m.Container || p.Container }

func (d *decider) add(c Change) {
	if c.When == "" {
		c.When = Now
	}
	if c.ByHand == "" && c.Kind == Write {
		c.ByHand = fmt.Sprintf("echo %s > /%s", c.New, c.Path)
	}
	d.out = append(d.out, c)
}

// knobs changes the settings that let the kernel work on polling CPUs or interrupt them.
func (d *decider) knobs() {
	k := &d.m.Knobs
	mask := d.open.MaskWords()
	if !k.WorkqueueMask.Empty() && k.WorkqueueMask.Overlaps(d.off) {
		d.add(Change{Kind: Write, Path: "sys/devices/virtual/workqueue/cpumask", Old: k.WorkqueueMask.MaskWords(),
			New: mask, Form: Mask, Why: "unbound kernel work would run on polling CPUs"})
		d.add(Change{Kind: Write, Path: "sys/devices/virtual/workqueue/writeback/cpumask", New: mask, Form: Mask,
			Optional: true, Why: "polling CPUs would write out dirty pages"})
	}
	d.knob("sys/kernel/mm/ksm/run", k.KSM, "0", Exact, k.KSM == "1",
		"merging pages interrupts every CPU and makes guests' memory accesses fault")
	d.knob("sys/kernel/mm/transparent_hugepage/enabled", k.THP, "madvise", Choice, chosen(k.THP) == "always",
		"khugepaged moves memory without being asked, and interrupts all CPUs that use that memory")
	d.knob("proc/sys/kernel/numa_balancing", k.NUMABalancing, "0", Exact, k.NUMABalancing != "" &&
		k.NUMABalancing != "0",
		"NUMA balancing unmaps memory to see who uses it, so each page that a worker touches faults")
	d.knob("proc/sys/kernel/nmi_watchdog", k.NMIWatchdog, "0", Exact, k.NMIWatchdog == "1",
		"the watchdog interrupts every CPU, including polling ones")
	d.knob("proc/sys/kernel/timer_migration", k.TimerMigration, "1", Exact, k.TimerMigration == "0",
		"timers that were set on a CPU before it began to poll stay on it")
	short := number(k.StatInterval) > 0 && number(k.StatInterval) < 10
	d.knob("proc/sys/vm/stat_interval", k.StatInterval, "10", Least, short,
		"each CPU is interrupted at this interval (seconds) to gather memory statistics")
	for _, c := range d.m.CPUs {
		path := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", c.ID)
		wrong := d.off.Has(c.ID) && c.Online && c.Governor != "" && c.Governor != "performance"
		d.knob(path, c.Governor, "performance", Exact, wrong,
			"a polling worker would run at a lower clock until it rises")
	}
}

func (d *decider) knob(path, old, want string, form Form, wrong bool, why string) {
	if wrong {
		d.add(Change{Kind: Write, Path: path, Old: old, New: want, Form: form, Why: why, Optional: true})
	}
}

func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// pages raises the number of hugepages of nodes; it never lowers one.
func (d *decider) pages() {
	for _, w := range d.p.Hugepages {
		for _, n := range d.m.Nodes {
			for _, have := range n.Hugepages {
				if w.Node >= 0 && w.Node != n.ID || have.KiB != w.KiB || have.Total >= w.Pages {
					continue
				}
				d.add(Change{Kind: Write, Path: d.m.PagesFile(n.ID, w.KiB), Old: fmt.Sprint(have.Total),
					New: fmt.Sprint(w.Pages), Form: Least, Optional: true,
					Why: "the data plane and guests need this memory; pages that fragmentation prevents now must be " +
						"reserved at boot"})
			}
		}
	}
}

func (d *decider) irqbalance() {
	s := &d.m.Services
	if !s.Irqbalance || d.on.Without(d.irqs).Within(s.IrqbalanceBans) {
		return
	}
	const why = "irqbalance spreads interrupts over all CPUs again, some seconds after they were moved"
	if d.o.StopIrqbalance {
		d.add(Change{Kind: Service, Path: "irqbalance.service", Old: "active", New: "inactive", Why: why,
			ByHand: "systemctl stop irqbalance"})
		return
	}
	ban := d.on.Without(d.irqs).String()
	d.add(Change{Kind: Note, Name: "irqbalance", When: Restart, Old: s.IrqbalanceBans.String(), New: ban, Why: why,
		ByHand: "set IRQBALANCE_BANNED_CPULIST=" + ban +
			" in its settings and restart it, or apply with --stop-irqbalance"})
}

// interrupts removes the isolated CPUs from the affinity of interrupts. The remaining CPUs are kept, because they may
// be the CPUs of the device's node.
func (d *decider) interrupts() {
	if def := d.m.Knobs.DefaultIRQAffinity.And(d.on); !def.Empty() && !def.Within(d.irqs) {
		d.add(Change{Kind: Write, Path: "proc/irq/default_smp_affinity", Old: d.m.Knobs.DefaultIRQAffinity.MaskWords(),
			New: d.irqs.MaskWords(), Form: Mask, Why: "interrupts of devices that are added later would go to any CPU"})
	}
	for _, irq := range d.m.IRQs {
		have := irq.Affinity.And(d.on)
		if have.Empty() || have.Within(d.irqs) {
			continue
		}
		to := have.And(d.irqs)
		if to.Empty() {
			to = d.irqs
		}
		c := Change{Kind: Write, Path: fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq.Number),
			Name: fmt.Sprintf("IRQ %d %s", irq.Number, irq.Name), Old: irq.Affinity.String(), New: to.String(),
			Form: List, Optional: true, Why: "each interrupt stops the worker on the CPU that takes it"}
		if irq.Managed {
			if irq.Effective.Empty() || irq.Effective.Overlaps(d.off) {
				d.add(Change{Kind: Note, Name: c.Name, Old: irq.Affinity.String(), New: to.String(), When: Reboot,
					Why: "the kernel manages this interrupt: it fires on a polling CPU as long as that CPU uses " +
						"its queue",
					ByHand: "boot with isolcpus=managed_irq,..., or give the device fewer queues (ethtool -L)"})
			}
			continue
		}
		d.add(c)
	}
}

// queues removes the isolated CPUs from the RPS and XPS masks of network interfaces.
func (d *decider) queues() {
	for _, i := range d.m.Interfaces {
		for q, mask := range i.RPS {
			d.queue(fmt.Sprintf("sys/class/net/%s/queues/rx-%d/rps_cpus", i.Name, q), mask,
				"polling CPUs would run the softirqs of this queue's packets")
		}
		for q, mask := range i.XPS {
			d.queue(fmt.Sprintf("sys/class/net/%s/queues/tx-%d/xps_cpus", i.Name, q), mask,
				"the queue's interrupts follow the CPUs that send on it")
		}
	}
}

// queue removes the isolated CPUs from a mask. An empty mask turns the feature off, which is the default.
func (d *decider) queue(path string, mask cpuset.Set, why string) {
	if !mask.Overlaps(d.off) {
		return
	}
	d.add(Change{Kind: Write, Path: path, Old: mask.MaskWords(), New: mask.Without(d.off).And(d.on).MaskWords(),
		Form: Mask, Why: why, Optional: true})
}

// words joins the first names and counts the rest.
func words(names []string) string {
	const few = 6
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", len(names)-few)
	}
	return strings.Join(names, ", ")
}
