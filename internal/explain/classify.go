// SPDX-License-Identifier: Apache-2.0
package explain

import "github.com/corelane/corelane/internal/explain/kernel"

// event is what the kernel did to a worker: many times (a sum), once (a gap), or as often as a counter says.
type event struct {
	kind    kernel.Kind
	why     kernel.Why
	id, pid int
	name    string
}

// culprit is what an event is counted to: events with the same culprit are one cause.
type culprit struct {
	kind          Kind
	name          string
	pid, tid, irq int
	partOf        bool // the event lies within another one that is counted: its time counts, its number does not
}

// key of a culprit: threads may change their names.
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

// classify says what an event is counted to. It is the only place where events of the kernel become causes: the
// account of a worker's time and the timeline of its gaps both ask here. false: it is no cause, such as what ran
// while the worker slept on purpose.
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

func eventOfSum(s *kernel.Sum) event { return event{s.Kind, s.Why, s.ID, s.PID, s.Name} }

// eventOfGap: a gap names the thread that had most of it, but only a worker that was ready to run lost its CPU to
// that thread.
func eventOfGap(g *kernel.Gap) event {
	ev := event{g.Kind, g.Why, g.ID, g.PID, g.Name}
	if g.Kind == kernel.KindThread && g.Why != kernel.WhyTaken {
		ev.kind = kernel.KindGap
	}
	return ev
}

// tookCPU says whether a thread had the CPU while the worker was ready to run. id 0 is the idle CPU.
func (ev event) tookCPU() bool { return ev.kind == kernel.KindThread && ev.why == kernel.WhyTaken }

// left says whether the worker was away for a reason.
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
