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
		overflows := overflowsOf(&e, w, &m, causes)
		for _, c := range causes {
			judge(&e, w, &m, c, overflows[c])
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
		return cmp.Or(minor(a)-minor(b), cmp.Compare(b.weight(), a.weight()), cmp.Compare(b.LostNS, a.LostNS), cmp.Compare(a.Worker, b.Worker),
			cmp.Compare(a.Name, b.Name))
	})
}

// weight of a cause among others, packets/s: what it cost, or what could be moved without it.
func (c *Cause) weight() float64 { return max(c.PPS, c.Could) }

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
// meanwhile; one that has time left loses only what found no room in its rings (overflow, packets/s).
func judge(e *Evidence, w *Worker, m *Model, c *Cause, overflow float64) {
	c.Share = float64(c.LostNS) / float64(max(1, e.ns()))
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
