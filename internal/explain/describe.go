// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/explain/kernel"
)

// describe a cause of lost time: what happened in a sentence, why it could, what shows it, what mends it.
func describe(e *Evidence, w *Worker, c *Cause) {
	c.Grade = gradeOf(e, c)
	c.fact(c.Grade, "%s", timesText(c))
	switch c.Kind {
	case ForeignThread, OwnThread:
		describeThread(e, w, c)
	case Softirq:
		describeSoftirq(e, w, c)
	case IRQ:
		describeIRQ(e, w, c)
	case IPI, TLBShootdown:
		describeIPI(e, w, c)
	case Yield:
		describeYield(e, w, c)
	case Stopped:
		describeStopped(e, w, c)
	case CgroupQuota:
		describeQuota(e, w, c)
	default:
		describeOther(e, w, c)
	}
}

// gradeOf the time that a cause took.
func gradeOf(e *Evidence, c *Cause) Grade {
	switch {
	case c.Kind == Steal || c.Kind == Delay:
		return Counted
	case e.Trace == nil, c.Kind == PageFaults && slices.Contains(e.Trace.Missing, kernel.FaultTime):
		return Inferred // counted, at what one costs when it is tried
	}
	return Seen
}

func (c *Cause) fact(g Grade, format string, args ...any) {
	c.Evidence = append(c.Evidence, Fact{g, fmt.Sprintf(format, args...)})
}

func timesText(c *Cause) string {
	text := fmt.Sprintf("%s of the worker's time", duration(c.LostNS))
	if c.Times > 0 {
		text += fmt.Sprintf(" in %d times", c.Times)
	}
	if c.Longest > 0 {
		text += ", at most " + duration(c.Longest) + " at once"
	}
	return text
}

func duration(ns int64) string {
	switch d := time.Duration(ns); {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.1f us", float64(ns)/1e3)
	}
}

func describeThread(e *Evidence, w *Worker, c *Cause) {
	c.Title = fmt.Sprintf("%s (%d) ran on CPU %d while %s wanted it", c.Name, c.TID, w.CPU, w.label())
	t, ok := e.Host.Threads[c.TID]
	if !ok {
		c.Why = "it has ended meanwhile: what it was allowed is no longer known"
		c.FixNote = "find out what starts it, and start it on other CPUs: taskset -c " + e.Host.Housekeeping + " COMMAND"
		return
	}
	c.Why = whyThere(e, w, t.Allowed.String(), t.Cgroup, t.Owner)
	if t.Command != "" {
		c.fact(Counted, "command: %s", short(t.Command, 120))
	}
	if t.Parent != "" && !t.Kernel {
		c.fact(Counted, "started by %s", t.Parent)
	}
	if h, known := e.Host.Tasks[c.TID]; known && h.Ticks > 0 {
		c.fact(Counted, "it used %s of CPU time in the window", duration(h.Ticks*tickNS))
	}
	switch {
	case t.Ended:
		c.FixNote = fmt.Sprintf("it has ended meanwhile; let %s start it on other CPUs: taskset -c %s COMMAND", cmp.Or(t.Parent, "whoever does it"), e.Host.Housekeeping)
		return
	case e.Host.Housekeeping == "":
		c.FixNote = "every CPU has a worker: give this one another CPU, or the worker"
	case t.Kernel && strings.HasPrefix(c.Name, "kworker/"):
		c.Fix = fmt.Sprintf("echo %s > /sys/devices/virtual/workqueue/cpumask", maskOf(e.Host.Housekeeping))
		c.FixNote = "for unbound work; work that is bound to this CPU goes when what makes it goes (isolcpus=, nohz_full=)"
	case t.Kernel && t.Allowed.Len() == 1:
		c.FixNote = "the kernel keeps this thread on its CPU: isolate the CPU (isolcpus=managed_irq,domain, nohz_full=, rcu_nocbs=)"
	default:
		c.Fix = fmt.Sprintf("taskset -pc %s %d", e.Host.Housekeeping, c.TID)
	}
	if c.Kind == OwnThread {
		ownThread(e, w, c)
	}
}

// ownThread of the daemon: the plan says where it should be.
func ownThread(e *Evidence, w *Worker, c *Cause) {
	for _, t := range e.Threads {
		if t.TID != c.TID {
			continue
		}
		c.Title = fmt.Sprintf("corelaned's own thread %s (%d, %s) ran on CPU %d while %s wanted it", t.Name, t.TID, t.Role, w.CPU, w.label())
		c.fact(Counted, "planned on CPUs %s, allowed on %s, moved back %d times in the window", t.Planned, t.Allowed, t.MovedBack)
		if t.Planned != "" && !inList(t.Planned, w.CPU) {
			c.Fix = fmt.Sprintf("taskset -pc %s %d", t.Planned, c.TID)
			return
		}
		c.FixNote = "its plan holds the worker's CPU: start corelaned with other --service-cpus, or move the worker:"
		if e.Host.Housekeeping != "" && t.Role != "service" && t.Role != "control" {
			c.FixNote = "two workers share the CPU:"
			c.Fix = fmt.Sprintf("corelane worker set %d --cpu %s", w.ID, firstOf(e.Host.Housekeeping))
		}
	}
}

func whyThere(e *Evidence, w *Worker, allowed, cgroup, owner string) string {
	var parts []string
	switch {
	case allowed == fmt.Sprint(w.CPU):
		parts = append(parts, fmt.Sprintf("it is pinned to CPU %d", w.CPU))
	case allowed != "":
		parts = append(parts, fmt.Sprintf("it may run on CPUs %s, and the worker's CPU is one of them", allowed))
	}
	if cgroup != "" {
		parts = append(parts, "control group "+cgroup)
	}
	if owner != "" {
		parts = append(parts, "owner "+owner)
	}
	return strings.Join(parts, "; ")
}

func describeSoftirq(e *Evidence, w *Worker, c *Cause) {
	c.Title = fmt.Sprintf("the kernel did %s work on CPU %d in %s's time", c.Name, w.CPU, w.label())
	for _, l := range e.Host.Softirqs {
		if l.Label == c.Name && l.Counts[w.CPU] > 0 {
			c.fact(Counted, "%s on this CPU: %.0f/s", l.Label, float64(l.Counts[w.CPU])/e.Seconds)
		}
	}
	if c.Name != "NET_RX" && c.Name != "NET_TX" {
		if c.Name == "RCU" || c.Name == "TIMER" || c.Name == "SCHED" || c.Name == "HRTIMER" {
			c.FixNote = "the kernel's own: isolate the CPU (nohz_full=, rcu_nocbs=, isolcpus=)"
		}
		return
	}
	device := receivedOn(e, w.CPU)
	if device != "" {
		c.fact(Seen, "packets that the kernel received there came in by %s", device)
	}
	sender := topSum(e, func(s kernel.Sum) bool { return s.Kind == kernel.KindIPISent && s.CPU == w.CPU && s.ID != 0 })
	if sender != nil {
		c.fact(Seen, "%s (%d) interrupted this CPU %d times", sender.Name, sender.ID, sender.Count)
		c.PID, c.TID = sender.PID, sender.ID
	}
	var fixes []string
	for _, q := range e.Host.RPS[w.CPU] {
		f := strings.SplitN(q, "/", 2)
		fixes = append(fixes, fmt.Sprintf("echo %s > /sys/class/net/%s/queues/%s/rps_cpus", maskOf(e.Host.Housekeeping), f[0], f[1]))
	}
	if len(fixes) > 0 {
		c.Why = "receive packet steering sends packets of " + strings.Join(e.Host.RPS[w.CPU], ", ") + " to this CPU"
	} else if l := networkInterrupt(e, w.CPU); l != nil {
		c.Why = fmt.Sprintf("interrupt %s (%s) goes to this CPU", l.Label, l.Name)
		fixes = append(fixes, fmt.Sprintf("echo %s > /proc/irq/%s/smp_affinity_list", e.Host.Housekeeping, l.Label))
	} else if device != "" {
		c.Why = "no interrupt of a network device and no packet steering of this network namespace leads here: a sender on this CPU, " +
			"or a device of another namespace"
		fixes = append(fixes, fmt.Sprintf("for f in /sys/class/net/%s/queues/rx-*/rps_cpus; do echo %s > $f; done", device, maskOf(e.Host.Housekeeping)))
		c.FixNote = "in the network namespace of " + device
	}
	c.Fix = strings.Join(fixes, "\n")
	moveAway(e, w, c)
}

// moveAway from what cannot be helped: a thread of another program may run elsewhere, a worker's place is planned.
func moveAway(e *Evidence, w *Worker, c *Cause) {
	if w.Plain && e.Host.Housekeeping != "" {
		c.Fix = fmt.Sprintf("taskset -pc %s %d", e.Host.Housekeeping, w.TID)
		c.FixNote = "let it run on a CPU that does not do this work:"
	}
}

func describeIRQ(e *Evidence, w *Worker, c *Cause) {
	c.Title = fmt.Sprintf("%s interrupted %s's CPU %d", c.Name, w.label(), w.CPU)
	for _, l := range e.Host.Interrupts {
		if l.Label == fmt.Sprint(c.IRQ) && l.Counts[w.CPU] > 0 {
			c.fact(Counted, "%.0f interrupts/s on this CPU", float64(l.Counts[w.CPU])/e.Seconds)
		}
	}
	if p, ok := e.Host.IRQs[c.IRQ]; ok {
		c.Why = fmt.Sprintf("it may go to CPUs %s and goes to %s", p.Allowed, p.Effective)
	}
	if e.Host.Housekeeping != "" {
		c.Fix = fmt.Sprintf("echo %s > /proc/irq/%d/smp_affinity_list", e.Host.Housekeeping, c.IRQ)
	}
	moveAway(e, w, c)
}

func describeIPI(e *Evidence, w *Worker, c *Cause) {
	c.Title = fmt.Sprintf("other CPUs interrupted %s's CPU %d (%s)", w.label(), w.CPU, c.Name)
	sender := topSum(e, func(s kernel.Sum) bool { return s.Kind == kernel.KindIPISent && s.CPU == w.CPU && s.ID != 0 })
	c.FixNote = "keep what the sender does away from this CPU: isolate it (isolcpus=, nohz_full=), and let no tool sample all CPUs"
	if c.Kind == TLBShootdown {
		c.Title = fmt.Sprintf("changes of the process' memory made CPU %d flush translations in %s's time", w.CPU, w.label())
		if s := topSum(e, func(s kernel.Sum) bool { return s.Kind == kernel.KindTLBSent }); s != nil {
			sender = s
		}
		c.FixNote = "the thread unmaps or protects memory again and again: let it keep its memory " +
			"(mlock, hugepages, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc)"
		c.Why = "all threads of a process share its page tables, so each CPU that runs one has to follow"
	}
	if sender != nil {
		c.Name, c.PID, c.TID = sender.Name, sender.PID, sender.ID
		c.fact(Seen, "sent by %s (thread %d of process %d), %d times", sender.Name, sender.ID, sender.PID, sender.Count)
		c.Title += fmt.Sprintf(": %s (%d)", sender.Name, sender.ID)
	}
}

func describeOther(e *Evidence, w *Worker, c *Cause) {
	switch c.Kind {
	case TimerTick:
		c.Title = fmt.Sprintf("the kernel's timer interrupted %s", w.label())
		c.FixNote = "nohz_full= for this CPU on the kernel's command line ends most of it"
	case PageFaults:
		c.Title = fmt.Sprintf("%s touched memory that was not mapped", w.label())
		c.fact(Counted, "%.0f faults/s", float64(c.Times)/e.Seconds)
		c.Why = "memory of the process was taken back, write-protected or never touched: no hugepages, KSM, NUMA balancing, clear_refs, swapping"
		c.FixNote = "run corelaned with hugepages, and switch off what takes memory away:"
		c.Fix = "sysctl kernel.numa_balancing=0\necho 0 > /sys/kernel/mm/ksm/run"
	case Steal:
		c.Title = fmt.Sprintf("the hypervisor took CPU %d from this machine", w.CPU)
		c.FixNote = "on the host: pin this machine's vCPU to a CPU of its own (virsh vcpupin)"
	case Delay:
		c.Title = fmt.Sprintf("a delay of %d us is injected into each loop of %s", w.DelayUS, w.label())
		c.Fix = fmt.Sprintf("corelane debug delay --worker %d --us 0", w.ID)
	case Gap:
		c.Title = fmt.Sprintf("CPU %d ran nobody while %s was ready to run", w.CPU, w.label())
		c.Why = "unknown; a control group above may be limited, or the machine was suspended"
	}
}
