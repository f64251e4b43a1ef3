// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// Causes by which a worker is held, or gives its CPU away itself.

const sharedShare = 0.05 // of the window that others had because the worker gave way

// othersOf are the threads that ran while the worker gave its CPU away, the one with the most time first.
func othersOf(e *Evidence, w *Worker) (best *kernel.Sum, ns int64) {
	if e.Trace == nil {
		return nil, 0
	}
	for i, s := range e.Trace.Sums {
		if s.Worker == w.TID && s.Kind == kernel.KindThread && s.ID != 0 && (s.Why == kernel.WhyYield || s.Why == kernel.WhySleep) {
			ns += s.NS
			if best == nil || s.NS > best.NS {
				best = &e.Trace.Sums[i]
			}
		}
	}
	return best, ns
}

func sharedYield(e *Evidence, w *Worker) bool {
	_, ns := othersOf(e, w)
	return float64(ns) > sharedShare*float64(e.ns())
}

func describeYield(e *Evidence, w *Worker, c *Cause) {
	c.Title = fmt.Sprintf("%s gave its CPU %d away: idle policy %s", w.label(), w.CPU, w.Idle)
	c.Why = fmt.Sprintf("with idle policy %s it asks the kernel to run others whenever a poll brings nothing", w.Idle)
	if w.Idle == "sleep" {
		c.Why = fmt.Sprintf("with idle policy sleep it waits up to %d us, and for the kernel to wake it, when polls bring nothing", w.SleepMaxUS)
	}
	if !w.gives() {
		c.Title = fmt.Sprintf("%s waited in system calls", w.label())
		c.Why = "a device of its own is served by system calls (tap, af_packet)"
	}
	c.fact(Counted, "%d system calls and %d voluntary switches", w.SystemCalls, w.Voluntary)
	if t, ns := othersOf(e, w); t != nil {
		c.fact(Seen, "meanwhile other threads ran for %s, most of it %s (%d)", duration(ns), t.Name, t.ID)
		c.Title += fmt.Sprintf("; %s (%d) ran meanwhile", t.Name, t.ID)
	}
	if w.gives() {
		c.Fix = fmt.Sprintf("corelane worker set %d --idle spin", w.ID)
		c.FixNote = "and keep others off its CPU: spinning does not share it"
	}
}

func describeStopped(e *Evidence, w *Worker, c *Cause) {
	c.Title = fmt.Sprintf("%s was stopped by a %s", w.label(), c.Name)
	c.Why = "SIGSTOP, a debugger or a terminal stops all threads of a process"
	c.FixNote = "find out who does it; a stopped process goes on with kill -CONT"
	if c.Name == "freezer" {
		c.Why = "the freezer of its control group holds all its threads"
	}
	sender := topSum(e, func(s kernel.Sum) bool { return s.Kind == kernel.KindSignal && s.Why != 18 })
	if sender != nil {
		c.Name, c.PID, c.TID = sender.Name, sender.PID, sender.ID
		c.Title = fmt.Sprintf("%s (%d) stopped the process, and %s with it", sender.Name, sender.ID, w.label())
		c.fact(Seen, "%s (thread %d of process %d) sent %s %d times", sender.Name, sender.ID, sender.PID, signalName(int(sender.Why)), sender.Count)
	}
	if t, ok := e.Host.Tasks[w.TID]; ok && (t.State == "T" || t.State == "t") {
		c.fact(Counted, "it is stopped still (state %s)", t.State)
		c.Fix = fmt.Sprintf("kill -CONT %d", e.Daemon)
	}
	if e.Trace == nil {
		c.fact(Inferred, "a loop took so long though the worker was not waiting for its CPU: stopped, frozen, or kept waiting by the kernel")
	}
}

func signalName(n int) string {
	if name, ok := map[int]string{18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU"}[n]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

func describeQuota(e *Evidence, w *Worker, c *Cause) {
	g := e.Host.Cgroup
	c.Title = fmt.Sprintf("control group %s had used up its CPU time, and %s stood still", g.Path, w.label())
	c.Why = fmt.Sprintf("its quota is %d us of each %d us; a worker that polls uses all of a CPU", g.QuotaUS, g.PeriodUS)
	c.fact(Counted, "throttled in %d of %d periods, %s summed over its CPUs", g.Throttled, g.Periods, duration(g.ThrottledNS))
	c.Fix = quotaFix(g)
}

func quotaFix(g host.Cgroup) string {
	if g.Version == 1 {
		return fmt.Sprintf("echo -1 > %s/cpu.cfs_quota_us", g.Dir)
	}
	return fmt.Sprintf("echo max > %s/cpu.max", g.Dir)
}

// topSum is the one of those that match that has the highest count.
func topSum(e *Evidence, match func(kernel.Sum) bool) (best *kernel.Sum) {
	if e.Trace == nil {
		return nil
	}
	for i, s := range e.Trace.Sums {
		if match(s) && (best == nil || s.Count > best.Count) {
			best = &e.Trace.Sums[i]
		}
	}
	return best
}

// receivedOn names the interface that most packets came by that the kernel received on a CPU.
func receivedOn(e *Evidence, cpu int) string {
	s := topSum(e, func(s kernel.Sum) bool { return s.Kind == kernel.KindReceived && s.CPU == cpu })
	if s == nil {
		return ""
	}
	return s.Name
}

// networkInterrupt of a CPU: the busiest line that is a device's, and not the timer's or another CPU's.
func networkInterrupt(e *Evidence, cpu int) (best *host.Line) {
	for i, l := range e.Host.Interrupts {
		n := l.Counts[cpu]
		if number(l.Label) > 0 && float64(n) > 10*e.Seconds && (best == nil || n > best.Counts[cpu]) {
			best = &e.Host.Interrupts[i]
		}
	}
	return best
}

func maskOf(list string) string {
	set, err := cpuset.Parse(list)
	if err != nil {
		return "0"
	}
	return set.MaskWords()
}

func inList(list string, cpu int) bool {
	set, err := cpuset.Parse(list)
	return err == nil && set.Has(cpu)
}

func firstOf(list string) string {
	set, err := cpuset.Parse(list)
	if err != nil || set.Empty() {
		return "N" // none is free: the reader has to find one
	}
	return fmt.Sprint(set.First())
}

func short(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return text
}
