// SPDX-License-Identifier: Apache-2.0
package explain

import "github.com/corelane/corelane/internal/explain/kernel"

// event is what the kernel did to a worker. It stands for a sum of events, for one gap, or for a counter.
type event struct {
	kind    kernel.Kind
	why     kernel.Why
	id, pid int
	name    string
}

// culprit is what an event is blamed on. Events with the same culprit are one cause.
type culprit struct {
	kind          Kind
	name          string
	pid, tid, irq int
	partOf        bool // the event is part of another one that is counted: only its time is added
}

// key identifies a culprit. A thread or an interrupt is identified by its number, since names may change.
type key struct {
	kind    Kind
	number  int
	subject string
}

func (c culprit) key() key {
	switch {
	case c.tid != 0:
		return key{c.kind, c.tid, ""}
	case c.irq != 0:
		return key{c.kind, c.irq, ""}
	}
	return key{c.kind, 0, c.name}
}

// classify returns what an event is blamed on; false: the event is not a cause, as what ran while the worker slept on
// purpose. Kernel events become causes only here, for the account of a worker's time and for the timeline of its gaps.
func classify(e *Evidence, w *Worker, ev event) (culprit, bool) {
	for i := range rows {
		if rows[i].claim == nil {
			continue
		}
		if c, ok := rows[i].claim(e, w, ev); ok {
			c.kind = rows[i].kind
			return c, true
		}
	}
	return culprit{}, false
}

// classifyLoop returns what made a loop of the worker long, if that was the worker itself: the cause that took more
// than half of it. What the kernel did is in the recorded gaps.
func classifyLoop(l *LongLoop) (culprit, bool) {
	for i := range rows {
		if rows[i].loop == nil || l.Taken {
			continue
		}
		if ns, name := rows[i].loop(l); ns*2 > l.NS {
			return culprit{kind: rows[i].kind, name: name}, true
		}
	}
	return culprit{}, false
}

func eventOfSum(s *kernel.Sum) event { return event{s.Kind, s.Why, s.ID, s.PID, s.Name} }

// eventOfGap returns the event of a gap. A gap names the thread that had most of it, but that thread is to blame only
// if the worker was ready to run.
func eventOfGap(g *kernel.Gap) event {
	ev := event{g.Kind, g.Why, g.ID, g.PID, g.Name}
	if g.Kind == kernel.KindThread && g.Why != kernel.WhyTaken {
		ev.kind = kernel.KindGap
	}
	return ev
}

// tookCPU says whether a thread had the CPU while the worker was ready to run. An id of 0 means that the CPU was idle.
func (ev event) tookCPU() bool { return ev.kind == kernel.KindThread && ev.why == kernel.WhyTaken }

// left says whether the worker was off its CPU for one of these reasons.
func (ev event) left(reasons ...kernel.Why) bool {
	for _, why := range reasons {
		if ev.kind == kernel.KindGap && ev.why == why {
			return true
		}
	}
	return false
}

func (ev event) vector(numbers ...int) bool {
	for _, n := range numbers {
		if ev.kind == kernel.KindVector && ev.id == n {
			return true
		}
	}
	return false
}
