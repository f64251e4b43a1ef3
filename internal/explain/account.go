// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/explain/kernel"
)

// account is who took a worker's time in the window.
type account struct {
	e      *Evidence
	w      *Worker
	causes []*Cause
}

// accountOf a worker, from the kernel's events, or from its counters where those are not to be had.
func accountOf(e *Evidence, w *Worker) []*Cause {
	a := &account{e: e, w: w}
	if e.Trace != nil {
		a.fromTrace()
	} else {
		a.fromCounters()
	}
	a.steal()
	a.delay()
	return slices.DeleteFunc(a.causes, func(c *Cause) bool { return c.LostNS <= 0 && c.Times <= 0 })
}

// add time to the cause of this kind and name.
func (a *account) add(kind Kind, name string, pid, tid int, ns, times, longest int64) *Cause {
	for _, c := range a.causes {
		if c.Kind == kind && c.TID == tid && c.Name == name {
			c.LostNS, c.Times, c.Longest = c.LostNS+ns, c.Times+times, max(c.Longest, longest)
			return c
		}
	}
	c := &Cause{Kind: kind, Worker: a.w.ID, CPU: a.w.CPU, Name: name, PID: pid, TID: tid, LostNS: ns, Times: times, Longest: longest}
	a.causes = append(a.causes, c)
	return c
}

func (a *account) fromTrace() {
	for _, s := range a.e.Trace.Sums {
		if s.Worker != a.w.TID {
			continue
		}
		switch s.Kind {
		case kernel.KindThread:
			a.thread(s)
		case kernel.KindGap:
			a.gap(s)
		case kernel.KindIRQ:
			c := a.add(IRQ, fmt.Sprintf("irq %d (%s)", s.ID, s.Name), 0, 0, s.NS, s.Count, s.Longest)
			c.IRQ = s.ID
		case kernel.KindSoftirq:
			a.add(Softirq, softirqName(s.ID), 0, 0, s.NS, s.Count, s.Longest)
		case kernel.KindVector:
			a.vector(s)
		case kernel.KindFault:
			ns := s.NS
			if slices.Contains(a.e.Trace.Missing, kernel.FaultTime) {
				ns = s.Count * a.e.Host.FaultNS
			}
			a.add(PageFaults, "page faults", 0, 0, ns, s.Count, s.Longest)
		case kernel.KindSyscall:
			if isIdleCall(s.ID) && a.w.gives() {
				a.add(Yield, a.w.Idle, 0, 0, s.NS, s.Count, s.Longest)
			}
		}
	}
}

// thread that had the CPU while the worker was ready to run. The gaps of other reasons are counted as a whole.
func (a *account) thread(s kernel.Sum) {
	if s.Why != kernel.WhyTaken {
		return
	}
	name := s.Name
	if name == "" {
		name = a.e.nameOf(s.ID)
	}
	switch {
	case s.ID == 0 && a.e.Host.Cgroup.Throttled > 0:
		a.add(CgroupQuota, a.e.Host.Cgroup.Path, 0, 0, s.NS, s.Count, s.Longest)
	case s.ID == 0:
		a.add(Gap, "nobody", 0, 0, s.NS, s.Count, s.Longest)
	case isSoftirqThread(name):
		a.add(Softirq, a.busiestSoftirq(), 0, 0, s.NS, s.Count, s.Longest)
	case a.e.isOwn(s.ID, s.PID):
		a.add(OwnThread, name, a.e.Daemon, s.ID, s.NS, s.Count, s.Longest)
	default:
		a.add(ForeignThread, name, s.PID, s.ID, s.NS, s.Count, s.Longest)
	}
}

func (a *account) gap(s kernel.Sum) {
	switch s.Why {
	case kernel.WhyYield, kernel.WhySleep:
		if a.w.Plain { // other programs sleep when they have nothing to do
			return
		}
		a.add(Yield, a.w.Idle, 0, 0, s.NS, s.Count, s.Longest)
	case kernel.WhyStopped:
		a.add(Stopped, "signal", 0, 0, s.NS, s.Count, s.Longest)
	case kernel.WhyFrozen:
		a.add(Stopped, "freezer", 0, 0, s.NS, s.Count, s.Longest)
	case kernel.WhyFault:
		a.add(PageFaults, "page faults", 0, 0, s.NS, 0, s.Longest)
	}
}

// vector splits the time of function calls of other CPUs: flushes of translations are most of them, and are counted.
func (a *account) vector(s kernel.Sum) {
	switch s.ID {
	case kernel.VectorTimer:
		a.add(TimerTick, "local timer", 0, 0, s.NS, s.Count, s.Longest)
	case kernel.VectorCall, kernel.VectorCallSingle:
		calls, flushes := a.calls()
		part := min(1, float64(flushes)/float64(max(1, calls)))
		n := int64(part * float64(s.Count))
		a.add(TLBShootdown, "translations flushed", 0, 0, int64(part*float64(s.NS)), n, s.Longest)
		a.add(IPI, "function calls", 0, 0, s.NS-int64(part*float64(s.NS)), s.Count-n, s.Longest)
	default:
		if s.ID < len(kernel.Vectors) {
			a.add(IPI, kernel.Vectors[s.ID], 0, 0, s.NS, s.Count, s.Longest)
		}
	}
}

func (a *account) calls() (calls, flushes int64) {
	for _, s := range a.e.Trace.Sums {
		switch {
		case s.Worker != a.w.TID:
		case s.Kind == kernel.KindTLBFlushed:
			flushes += s.Count
		case s.Kind == kernel.KindVector && (s.ID == kernel.VectorCall || s.ID == kernel.VectorCallSingle):
			calls += s.Count
		}
	}
	return calls, flushes
}

// busiestSoftirq of the worker's CPU, by the kernel's counters.
func (a *account) busiestSoftirq() string {
	best, most := "softirq", int64(0)
	for _, l := range a.e.Host.Softirqs {
		n := l.Counts[a.w.CPU]
		if l.Label == "NET_RX" || l.Label == "NET_TX" { // does far more at a time than a timer
			n *= 8
		}
		if n > most {
			best, most = l.Label, n
		}
	}
	return best
}

// steal of the hypervisor, as far as the worker had the CPU. The kernel counts it in ticks.
func (a *account) steal() {
	t, ok := a.e.Host.Ticks[a.w.CPU]
	if !ok || t.Steal <= 0 {
		return
	}
	away := int64(0)
	for _, c := range a.causes {
		away += c.LostNS
	}
	window := a.e.ns()
	own := float64(max(0, window-away)) / float64(max(1, window))
	a.add(Steal, "hypervisor", 0, 0, int64(own*float64(t.Steal)*tickNS), t.Steal, 0)
}

func (a *account) delay() {
	injected := int64(a.w.DelayUS) * 1000 * int64(a.w.Loops)
	if injected > 0 {
		a.add(Delay, "corelane debug delay", 0, 0, injected, int64(a.w.Loops), int64(a.w.DelayUS)*1000)
	}
}

const tickNS = 10e6 // of /proc: USER_HZ is 100

func (e *Evidence) ns() int64 { return int64(e.Seconds * 1e9) }

func (e *Evidence) nameOf(tid int) string {
	if t, ok := e.Host.Threads[tid]; ok {
		return t.Name
	}
	if t, ok := e.Host.Tasks[tid]; ok {
		return t.Name
	}
	return fmt.Sprintf("thread %d", tid)
}

func (e *Evidence) isOwn(tid, pid int) bool {
	return pid == e.Daemon && pid != 0 || slices.ContainsFunc(e.Threads, func(t OwnThreadState) bool { return t.TID == tid })
}

// gives says whether the worker is told to give its CPU away.
func (w *Worker) gives() bool { return w.Idle == "yield" || w.Idle == "sleep" }

func softirqName(n int) string {
	if n < len(kernel.Softirqs) {
		return kernel.Softirqs[n]
	}
	return fmt.Sprintf("softirq %d", n)
}
