// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/explain/host"
)

// fromCounters is the weaker way: the scheduler counts how long the worker waited, and who ran meanwhile follows from the threads
// that used time and were last on its CPU.
func (a *account) fromCounters() {
	waited := a.e.Host.Waited[a.w.TID]
	shared := a.blame(waited)
	a.softirqs(shared)
	a.throttled()
	a.stood()
	if t, ok := a.e.Host.Tasks[a.w.TID]; ok && t.Minor+t.Major > 0 {
		a.add(PageFaults, "page faults", 0, 0, (t.Minor+t.Major)*a.e.Host.FaultNS, t.Minor+t.Major, 0)
	}
	if a.w.gives() && a.w.Voluntary > 0 {
		idle := int64(float64(a.w.IdleCycles) / max(1, a.w.HzTSC) * 1e9)
		a.add(Yield, a.w.Idle, 0, 0, idle, int64(max(a.w.Voluntary, a.w.SystemCalls)), 0)
	}
}

// blame splits the waiting over the threads of that CPU, by the time that they used; what remains is nobody's.
func (a *account) blame(waited int64) (rest int64) {
	var tasks []host.Task
	sum := int64(0)
	for _, t := range a.e.Host.Tasks {
		if t.LastCPU == a.w.CPU && t.TID != a.w.TID && t.Ticks > 0 {
			tasks = append(tasks, t)
			sum += t.Ticks
		}
	}
	slices.SortFunc(tasks, func(x, y host.Task) int { return x.TID - y.TID })
	for _, t := range tasks {
		ns := int64(float64(waited) * float64(t.Ticks) / float64(max(sum, waited/tickNS)))
		kind := ForeignThread
		switch {
		case isSoftirqThread(t.Name):
			kind = Softirq
		case a.e.isOwn(t.TID, t.PID):
			kind = OwnThread
		}
		if kind == Softirq {
			a.add(Softirq, a.busiestSoftirq(), 0, 0, ns, 1, 0)
		} else {
			a.add(kind, t.Name, t.PID, t.TID, ns, int64(a.w.Involuntary), 0)
		}
		waited -= ns
		sum -= t.Ticks
		if waited <= 0 {
			return 0
		}
	}
	return waited
}

// softirqs and interrupts by the ticks that the kernel charged to them on this CPU.
func (a *account) softirqs(waited int64) {
	t := a.e.Host.Ticks[a.w.CPU]
	if t.Softirq > 0 {
		a.add(Softirq, a.busiestSoftirq(), 0, 0, t.Softirq*tickNS, t.Softirq, 0)
	}
	line := a.busiestInterrupt()
	if t.IRQ > 0 && line != nil {
		a.interrupt(line, t.IRQ*tickNS)
	}
	if waited > tickNS {
		a.add(Gap, "threads that have gone", 0, 0, waited, int64(a.w.Involuntary), 0)
	}
}

func (a *account) busiestInterrupt() (best *host.Line) {
	for i, l := range a.e.Host.Interrupts {
		if n := l.Counts[a.w.CPU]; n > 0 && (best == nil || n > best.Counts[a.w.CPU]) {
			best = &a.e.Host.Interrupts[i]
		}
	}
	return best
}

func (a *account) interrupt(l *host.Line, ns int64) {
	n := l.Counts[a.w.CPU]
	switch l.Label {
	case "LOC":
		a.add(TimerTick, "local timer", 0, 0, ns, n, 0)
	case "TLB":
		a.add(TLBShootdown, "translations flushed", 0, 0, ns, n, 0)
	case "CAL", "RES", "IWI":
		a.add(IPI, l.Name, 0, 0, ns, n, 0)
	default:
		c := a.add(IRQ, "irq "+l.Label+" ("+l.Name+")", 0, 0, ns, n, 0)
		c.IRQ = number(l.Label)
	}
}

// throttled: the worker's share of what the group's CPUs stood still is not told; its own long loops are.
func (a *account) throttled() {
	if g := a.e.Host.Cgroup; g.Throttled > 0 {
		a.add(CgroupQuota, g.Path, 0, 0, min(max(g.ThrottledNS, a.takenLoops()), a.e.ns()), g.Throttled, 0)
	}
}

// stood: long loops in which the kernel took the CPU, longer than the worker waited for it: it was not even ready to run.
func (a *account) stood() {
	rest := a.takenLoops() - a.e.Host.Waited[a.w.TID]
	if a.e.Host.Cgroup.Throttled > 0 || a.w.gives() || rest < 5e6 {
		return
	}
	longest := int64(0)
	for _, l := range a.w.LongLoops {
		longest = max(longest, l.NS)
	}
	a.add(Stopped, "signal", 0, 0, rest, 1, longest)
}

func (a *account) takenLoops() (ns int64) {
	for _, l := range a.w.LongLoops {
		if l.Taken {
			ns += l.NS - l.IdleNS - l.DelayNS
		}
	}
	return ns
}

func isSoftirqThread(name string) bool {
	return strings.HasPrefix(name, "ksoftirqd/") || strings.HasPrefix(name, "napi/")
}

func isIdleCall(number int) bool {
	return number == unix.SYS_SCHED_YIELD || number == unix.SYS_CLOCK_NANOSLEEP || number == nrNanosleep
}

const nrNanosleep = 35 // x86-64; newer C libraries use clock_nanosleep for it

func number(text string) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}
