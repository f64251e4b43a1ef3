// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"slices"

	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// addCounters builds the account without kernel events. The scheduler counts how long the worker waited; the threads
// that used CPU time and last ran on its CPU are assumed to have run meanwhile.
func (a *account) addCounters() {
	a.rest = a.blame(a.e.Host.Waited[a.w.TID])
	if line := a.busiestInterrupt(); line != nil {
		a.interrupt(line, a.e.Host.Ticks[a.w.CPU].IRQ*tickNS)
	}
	for i := range rows {
		if rows[i].counters != nil {
			rows[i].counters(a)
		}
	}
}

// blame splits the waiting time over the threads of that CPU, by the CPU time that they used. It returns the rest.
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
		who, ok := classify(a.e, a.w, event{kernel.KindThread, kernel.WhyTaken, t.TID, t.PID, t.Name})
		if ok {
			a.add(who, ns, max(1, int64(a.w.Involuntary)), 0)
		}
		waited -= ns
		sum -= t.Ticks
		if waited <= 0 {
			return 0
		}
	}
	return waited
}

func (a *account) busiestInterrupt() (best *host.Line) {
	for i, l := range a.e.Host.Interrupts {
		if n := l.Counts[a.w.CPU]; n > 0 && (best == nil || n > best.Counts[a.w.CPU]) {
			best = &a.e.Host.Interrupts[i]
		}
	}
	return best
}

// vectorOf has the vectors of those labels of /proc/interrupts that do not belong to a device.
var vectorOf = map[string]int{"LOC": kernel.VectorTimer, "RES": kernel.VectorReschedule, "CAL": kernel.VectorCall,
	"IWI": kernel.VectorIRQWork,
	"TLB": kernel.VectorFlush}

func (a *account) interrupt(l *host.Line, ns int64) {
	ev := event{kind: kernel.KindIRQ, id: number(l.Label), name: l.Name}
	if n, ok := vectorOf[l.Label]; ok {
		ev = event{kind: kernel.KindVector, id: n}
	}
	if who, ok := classify(a.e, a.w, ev); ok && ns > 0 {
		a.add(who, ns, l.Counts[a.w.CPU], 0)
	}
}

func (a *account) takenLoops() (ns int64) {
	for _, l := range a.w.LongLoops {
		if l.Taken {
			ns += l.NS - l.IdleNS - l.DelayNS
		}
	}
	return ns
}

func number(text string) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}
