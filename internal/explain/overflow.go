// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"slices"
)

// absence is a time in which a worker did not poll.
type absence struct {
	from, ns int64
	cause    *Cause
}

// backlog models the receive ring of one worker as a queue: packets arrive at a constant rate, the worker serves them
// at the rate that its core can do, and what arrives while the ring is full is lost.
type backlog struct {
	seconds  float64
	received float64 // packets/s that the worker received
	service  float64 // packets/s that it serves while it polls
	ring     float64 // packets
	absences []absence
	weight   map[*Cause]float64 // of a recorded absence: how many absences of its cause it stands for
}

// overflowsOf returns, by cause, the packets/s that arrived while a worker was away and found no room in its ring.
func overflowsOf(e *Evidence, w *Worker, m *Model, a *account) map[*Cause]float64 {
	b := backlog{seconds: e.Seconds, received: m.Achieved, service: m.Expected, ring: float64(ringOf(e, w)),
		weight: map[*Cause]float64{}}
	if e.Trace != nil {
		b.recorded(e, w, a)
		b.estimated(e, slices.DeleteFunc(slices.Clone(a.causes), func(c *Cause) bool { return !rowOf(c.Kind).unseen }))
	} else {
		b.estimated(e, a.causes)
	}
	return b.lost(b.arrivals())
}

// recorded adds the recorded absences, in order of time. The kernel records a limited number of gaps per second; the
// weight makes up for the rest.
func (b *backlog) recorded(e *Evidence, w *Worker, a *account) {
	recorded := map[*Cause]int64{}
	for i := range e.Trace.Gaps {
		g := &e.Trace.Gaps[i]
		if g.Worker != w.TID {
			continue
		}
		if c := a.causeOf(eventOfGap(g)); c != nil {
			ns := g.NS
			if c.elsewhere > 0 { // it polled there, except while it waited
				ns = int64(float64(ns) * float64(c.LostNS) / float64(c.elsewhere))
			}
			b.absences = append(b.absences, absence{g.From, ns, c})
			recorded[c] += ns
		}
	}
	slices.SortFunc(b.absences, func(x, y absence) int { return cmp.Compare(x.from, y.from) })
	for c, ns := range recorded {
		b.weight[c] = 1
		if e.Trace.Lost > 0 && ns > 0 {
			b.weight[c] = max(1, float64(c.LostNS)/float64(ns))
		}
	}
}

// estimated adds absences if only counters are known: as many as were counted, of equal length, spread over the window.
func (b *backlog) estimated(e *Evidence, causes []*Cause) {
	for _, c := range causes {
		times := max(1, c.Times)
		n := min(times, mostEstimated)
		for i := range n {
			b.absences = append(b.absences, absence{i * e.ns() / n, c.LostNS / times, c})
		}
		b.weight[c] = float64(times) / float64(n)
	}
	slices.SortFunc(b.absences, func(x, y absence) int { return cmp.Compare(x.from, y.from) })
}

const mostEstimated = 10000 // absences of one cause; each then stands for several

// arrivals returns the packets/s that were sent to the worker: those that it received and those that found no room. A
// worker with time left cannot have been sent more than its core can do.
func (b *backlog) arrivals() float64 {
	low, high := b.received, max(b.received, b.service)
	for range 40 {
		middle := (low + high) / 2
		lost := 0.0
		for _, n := range b.lost(middle) {
			lost += n
		}
		if middle-lost < b.received {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// lost returns the packets/s that each cause loses at a rate of arrival.
func (b *backlog) lost(rate float64) map[*Cause]float64 {
	out := map[*Cause]float64{}
	queued, end := 0.0, int64(0)
	for _, a := range b.absences {
		queued = max(0, queued-(b.service-rate)*float64(max(0, a.from-end))/1e9)
		queued += rate * float64(max(0, a.from+a.ns-max(a.from, end))) / 1e9
		if over := queued - b.ring; over > 0 {
			out[a.cause] += over * b.weight[a.cause] / b.seconds
			queued = b.ring
		}
		end = max(end, a.from+a.ns)
	}
	return out
}

// ringOf returns the size of the smallest ring that the worker polls.
func ringOf(e *Evidence, w *Worker) uint32 {
	ring := uint32(0)
	for _, q := range w.Queues {
		for _, p := range e.Ports {
			if p.Name == q.Port && p.RingSize > 0 && (ring == 0 || p.RingSize < ring) {
				ring = p.RingSize
			}
		}
	}
	return cmp.Or(ring, usualRing)
}
