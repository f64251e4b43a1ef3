// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"slices"
)

// Explain decides, from evidence alone, what held each worker back, and what it cost.
func Explain(e Evidence) *Report {
	r := &Report{Started: e.Started, Seconds: e.Seconds, Tracing: e.Trace != nil, Daemon: e.Daemon, Hostname: e.Host.Hostname}
	models := map[int]*Model{}
	for i := range e.Workers {
		w := &e.Workers[i]
		causes := accountOf(&e, w)
		m := modelOf(&e, w, causes)
		models[w.ID] = &m
		for _, c := range causes {
			judge(&e, w, &m, c)
			describe(&e, w, c)
			r.Causes = append(r.Causes, *c)
		}
		r.Workers = append(r.Workers, WorkerReport{ID: w.ID, Label: w.label(), Thread: w.Thread, TID: w.TID, CPU: w.CPU, Model: m,
			Gaps: gapsOf(&e, w), Nodes: nodesOf(w)})
	}
	r.Causes = append(r.Causes, portCauses(&e)...)
	r.Causes = append(r.Causes, ringCauses(&e, models, r.Causes)...)
	r.Causes = append(r.Causes, skew(&e, models)...)
	r.Causes = append(r.Causes, dropCauses(&e)...)
	rank(r.Causes)
	r.Causes = append(conclusions(&e, models, r.Causes), r.Causes...)
	r.Unseen = unseen(&e)
	verdicts(&e, r)
	return r
}

// rank causes: those that matter first, by packets, then by time.
func rank(causes []Cause) {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		minor := func(c Cause) int {
			if c.Minor {
				return 1
			}
			return 0
		}
		return cmp.Or(minor(a)-minor(b), cmp.Compare(b.PPS, a.PPS), cmp.Compare(b.LostNS, a.LostNS), cmp.Compare(a.Worker, b.Worker),
			cmp.Compare(a.Name, b.Name))
	})
}

const (
	minorShare = 0.02       // of a worker's time that nobody need care about
	minorTick  = 0.06       // of the timer's interrupts: the kernel's own accounting on a CPU that is not isolated
	longGap    = 10_000_000 // ns at once that matter even if no packets came
	minorOwn   = 0.005      // of corelaned's own threads: they have their places, so this is a mistake
	minorLoss  = 0.005      // of the packets
	usualRing  = 1024       // packets, where a device does not tell
)

// minorRate is how many interruptions per second a worker's CPU may have. More are somebody's mistake even where they are short: the
// way into the kernel and back is not in their times.
var minorRate = map[Kind]float64{IRQ: 2000, Softirq: 5000, IPI: 5000, TLBShootdown: 2000, PageFaults: 1000}

// judge what a cause of lost time cost, and whether that matters. A worker that has no time left loses what it could have moved
// meanwhile; one that has time only what found no room in the rings.
func judge(e *Evidence, w *Worker, m *Model, c *Cause) {
	c.Share = float64(c.LostNS) / float64(max(1, e.ns()))
	overflow := overflowOf(e, w, m, c)
	c.PPS = overflow
	if m.saturated() {
		c.PPS = max(overflow, c.Share*m.Expected)
	}
	top := minorShare
	switch c.Kind {
	case TimerTick:
		top = minorTick
	case OwnThread:
		top = minorOwn
	}
	lossy := !m.saturated() && overflow > 0 && overflow > minorLoss*m.Achieved
	switch {
	case c.Kind == Yield && !m.saturated():
		c.Minor = !lossy && c.Longest < longGap && !sharedYield(e, w)
	case c.Kind == Stopped, c.Kind == CgroupQuota:
		c.Minor = c.Longest < longGap/10 && c.Share < minorShare
	default:
		c.often = minorRate[c.Kind] > 0 && float64(c.Times) > minorRate[c.Kind]*e.Seconds
		c.Minor = c.Share < top && !lossy && !c.often && (c.Longest < longGap || m.saturated())
	}
}

// overflowOf is packets/s that came while the worker was away, and that the ring of their queue had no room for.
func overflowOf(e *Evidence, w *Worker, m *Model, c *Cause) float64 {
	ring := float64(ringOf(e, w))
	lost := 0.0
	if e.Trace != nil {
		for _, g := range e.Trace.Gaps {
			if g.Worker == w.TID && causeOfGap(e, g).matches(c) {
				lost += max(0, m.Achieved*float64(g.NS)/1e9-ring)
			}
		}
	} else if c.Longest > 0 {
		lost = max(0, m.Achieved*float64(c.Longest)/1e9-ring)
	}
	return lost / e.Seconds
}

// ringOf is the smallest ring that the worker polls.
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

// nodesOf a worker, the most expensive first.
func nodesOf(w *Worker) (out []NodeCost) {
	all := uint64(0)
	for _, n := range w.Nodes {
		all += n.Cycles
	}
	for _, n := range w.Nodes {
		c := NodeCost{Name: n.Name, Packets: n.Packets, Share: float64(n.Cycles) / float64(max(1, all))}
		if n.Packets > 0 {
			c.Cycles = float64(n.Cycles) / float64(n.Packets)
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b NodeCost) int { return cmp.Compare(b.Share, a.Share) })
	return out
}
