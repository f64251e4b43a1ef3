// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/procfs"
)

// account lists what took a worker's time in the window.
type account struct {
	e      *Evidence
	w      *Worker
	causes []*Cause
	byKey  map[key]*Cause
	took   map[taker]bool
	rest   int64 // ns for which the worker waited and no known thread ran; only without kernel events
}

// accountOf builds the account of a worker from kernel events, or from counters if those were not watched.
func accountOf(e *Evidence, w *Worker) *account {
	a := &account{e: e, w: w, byKey: map[key]*Cause{}}
	if e.Trace != nil {
		a.addSums()
	} else {
		a.addCounters()
	}
	for i := range rows {
		if rows[i].always != nil {
			rows[i].always(a)
		}
	}
	a.causes = slices.DeleteFunc(a.causes, func(c *Cause) bool { return c.LostNS <= 0 && c.Times <= 0 })
	a.group()
	return a
}

// add adds time to the cause of a culprit.
func (a *account) add(who culprit, ns, times, longest int64) *Cause {
	if who.partOf {
		times = 0
	}
	if c := a.byKey[who.key()]; c != nil {
		c.LostNS, c.Times, c.Longest = c.LostNS+ns, c.Times+times, max(c.Longest, longest)
		return c
	}
	c := &Cause{Kind: who.kind, Worker: a.w.ID, CPU: a.w.CPU, Name: who.name, PID: who.pid, TID: who.tid, IRQ: who.irq,
		LostNS: ns, Times: times, Longest: longest}
	a.causes = append(a.causes, c)
	a.byKey[who.key()] = c
	return c
}

func (a *account) addSums() {
	for i := range a.e.Trace.Sums {
		s := &a.e.Trace.Sums[i]
		if s.Worker != a.w.TID {
			continue
		}
		if who, ok := classify(a.e, a.w, eventOfSum(s)); ok {
			c := a.add(who, nsOf(a.e, s), s.Count, s.Longest)
			if who.tid != 0 {
				c.add(a.e, s)
			}
		}
	}
}

// causeOf returns the cause that an event was counted for, nil if the event is not a cause.
func (a *account) causeOf(ev event) *Cause {
	who, ok := classify(a.e, a.w, ev)
	if !ok {
		return nil
	}
	return a.byKey[who.key()]
}

const tickNS = 1e9 / procfs.TicksPerSecond // one tick of /proc

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

// sharesCPU says whether the worker's idle policy lets other threads run on its CPU.
func (w *Worker) sharesCPU() bool { return w.Idle == "yield" || w.Idle == "sleep" }
