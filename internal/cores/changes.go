// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Options are what a plan does not say. The zero value changes threads, interrupts and settings of the kernel, but makes no
// cgroups, and leaves irqbalance alone.
type Options struct {
	Self           int                        // process that is never moved: the caller's; 0: none
	Spare          func(topology.Thread) bool // threads that are left where they are; nil: none
	Cgroups        bool                       // confine with cpusets too, not with affinities only
	StopIrqbalance bool                       // stop it; else its own settings have to keep it off, and that is said
}

// decider is one decision about a machine.
type decider struct {
	m    *topology.Machine
	p    *plan.Plan
	o    Options
	on   cpuset.Set // online
	off  cpuset.Set // CPUs that everybody else must keep off
	open cpuset.Set // the other ones
	host cpuset.Set // where to go who had only CPUs of off
	irqs cpuset.Set // may take interrupts
	out  []Change
}

// Changes is what has to change on a machine for a plan to be true, in the order in which it is done: first what makes new
// work go elsewhere, then the interrupts and threads that are there, then the cgroups that keep it so. It decides only; a
// machine that is as planned has none. Files for the next boot are not in it: see RebootFiles.
func Changes(m *topology.Machine, p *plan.Plan, o Options) []Change {
	d := &decider{m: m, p: p, o: o, off: p.Isolated, irqs: p.IRQs}
	var online []int
	for _, c := range m.CPUs {
		if c.Online {
			online = append(online, c.ID)
		}
	}
	d.on = cpuset.Of(online...)
	d.open = d.on.Without(d.off)
	if d.host = p.Of(plan.Housekeeping).And(d.on); d.host.Empty() {
		d.host = d.open
	}
	if d.irqs.Empty() {
		d.irqs = d.open
	}
	if d.off.Empty() || d.open.Empty() {
		return nil // nothing is isolated, or nobody would have a place to go
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

func (d *decider) add(c Change) {
	if c.When == "" {
		c.When = Now
	}
	if c.ByHand == "" && c.Kind == Write {
		c.ByHand = fmt.Sprintf("echo %s > /%s", c.New, c.Path)
	}
	d.out = append(d.out, c)
}

// knobs are the settings that make the kernel work on CPUs that poll, or stop them.
func (d *decider) knobs() {
	k := &d.m.Knobs
	mask := d.open.MaskWords()
	if !k.WorkqueueMask.Empty() && k.WorkqueueMask.Overlaps(d.off) {
		d.add(Change{Kind: Write, Path: "sys/devices/virtual/workqueue/cpumask", Old: k.WorkqueueMask.MaskWords(), New: mask, Form: Mask,
			Why: "unbound kernel work would run on CPUs that poll"})
		d.add(Change{Kind: Write, Path: "sys/devices/virtual/workqueue/writeback/cpumask", New: mask, Form: Mask, Optional: true,
			Why: "dirty pages would be written out by CPUs that poll"})
	}
	d.knob("sys/kernel/mm/ksm/run", k.KSM, "0", Exact, k.KSM == "1", "merging pages stops every CPU for a moment and makes guests' memory fault")
	d.knob("sys/kernel/mm/transparent_hugepage/enabled", k.THP, "madvise", Choice, chosen(k.THP) == "always",
		"khugepaged rearranges memory that nobody asked it to, and interrupts all CPUs that use it")
	d.knob("proc/sys/kernel/numa_balancing", k.NUMABalancing, "0", Exact, k.NUMABalancing != "" && k.NUMABalancing != "0",
		"it unmaps memory to see who uses it: each page that a worker touches then faults")
	d.knob("proc/sys/kernel/nmi_watchdog", k.NMIWatchdog, "0", Exact, k.NMIWatchdog == "1", "it interrupts each CPU, one that polls too")
	d.knob("proc/sys/kernel/timer_migration", k.TimerMigration, "1", Exact, k.TimerMigration == "0",
		"timers that were set on a CPU before it polled stay there for ever")
	slow := number(k.StatInterval) > 0 && number(k.StatInterval) < 10
	d.knob("proc/sys/vm/stat_interval", k.StatInterval, "10", Least, slow, "statistics of memory are gathered on each CPU this often (s)")
	for _, c := range d.m.CPUs {
		path := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", c.ID)
		d.knob(path, c.Governor, "performance", Exact, d.off.Has(c.ID) && c.Online && c.Governor != "" && c.Governor != "performance",
			"a worker that polls would wait for its clock to rise")
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

// pages are hugepages of nodes: only ever more of them.
func (d *decider) pages() {
	for _, w := range d.p.Hugepages {
		for _, n := range d.m.Nodes {
			for _, have := range n.Hugepages {
				if w.Node >= 0 && w.Node != n.ID || have.KiB != w.KiB || have.Total >= w.Pages {
					continue
				}
				d.add(Change{Kind: Write, Path: fmt.Sprintf("sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", n.ID, w.KiB),
					Old: fmt.Sprint(have.Total), New: fmt.Sprint(w.Pages), Form: Least, Optional: true,
					Why: "the data plane's and guests' memory; what is too scattered now has to be asked for at boot"})
			}
		}
	}
}

func (d *decider) irqbalance() {
	s := &d.m.Services
	if !s.Irqbalance || d.on.Without(d.irqs).Within(s.IrqbalanceBans) {
		return
	}
	const why = "it spreads interrupts over all CPUs again, some seconds after they were moved"
	if d.o.StopIrqbalance {
		d.add(Change{Kind: Service, Path: "irqbalance.service", Old: "active", New: "inactive", Why: why, ByHand: "systemctl stop irqbalance"})
		return
	}
	d.add(Change{Kind: Note, Name: "irqbalance", When: Restart, Old: s.IrqbalanceBans.String(), New: d.on.Without(d.irqs).String(), Why: why,
		ByHand: "set IRQBALANCE_BANNED_CPULIST=" + d.on.Without(d.irqs).String() + " in its settings and restart it, or apply with --stop-irqbalance"})
}

// interrupts leave the CPUs that may take none. What their affinity still holds beside those is kept: it may be a node's.
func (d *decider) interrupts() {
	if def := d.m.Knobs.DefaultIRQAffinity.And(d.on); !def.Empty() && !def.Within(d.irqs) {
		d.add(Change{Kind: Write, Path: "proc/irq/default_smp_affinity", Old: d.m.Knobs.DefaultIRQAffinity.MaskWords(), New: d.irqs.MaskWords(), Form: Mask,
			Why: "interrupts that come later, a device's that is plugged in, would go anywhere"})
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
		c := Change{Kind: Write, Path: fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq.Number), Name: fmt.Sprintf("IRQ %d %s", irq.Number, irq.Name),
			Old: irq.Affinity.String(), New: to.String(), Form: List, Optional: true, Why: "each one stops the worker whose CPU takes it"}
		if irq.Managed {
			if irq.Effective.Empty() || irq.Effective.Overlaps(d.off) {
				d.add(Change{Kind: Note, Name: c.Name, Old: irq.Affinity.String(), New: to.String(), When: Reboot,
					Why:    "the kernel keeps it: it fires on a CPU that polls as long as that CPU uses its queue",
					ByHand: "boot with isolcpus=managed_irq,..., or give the device fewer queues (ethtool -L)"})
			}
			continue
		}
		d.add(c)
	}
}

// queues are RPS and XPS of network interfaces.
func (d *decider) queues() {
	for _, i := range d.m.Interfaces {
		for q, mask := range i.RPS {
			d.queue(fmt.Sprintf("sys/class/net/%s/queues/rx-%d/rps_cpus", i.Name, q), mask, "the kernel would do its packets' softirqs on CPUs that poll")
		}
		for q, mask := range i.XPS {
			d.queue(fmt.Sprintf("sys/class/net/%s/queues/tx-%d/xps_cpus", i.Name, q), mask, "the queue's interrupts follow the CPUs that send on it")
		}
	}
}

// queue takes CPUs out of a mask; without any left the feature is off, as it is by default.
func (d *decider) queue(path string, mask cpuset.Set, why string) {
	if !mask.Overlaps(d.off) {
		return
	}
	d.add(Change{Kind: Write, Path: path, Old: mask.MaskWords(), New: mask.Without(d.off).And(d.on).MaskWords(), Form: Mask, Why: why, Optional: true})
}

// words joins a few names and counts the rest.
func words(names []string) string {
	const few = 6
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", len(names)-few)
	}
	return strings.Join(names, ", ")
}
