// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"strings"
)

var overload = row{
	kind: Overload, colour: "work",
	means:   "more packets are offered than the core can process",
	known:   "the worker had no time left, and nothing else took its time",
	answers: overloads,
	describe: func(s *scene, c *Cause) {
		w, m := s.w, s.m
		c.Title = fmt.Sprintf("worker %d is offered more packets than its core can process: it does %s packets/s "+
			"at %.0f cycles each", w.ID, Packets(m.Achieved), m.PerPacket)
		c.Why = fmt.Sprintf("it had packets in all but %.1f %% of its time, %.0f per loop, and nothing took its CPU",
			100*m.Headroom, m.Batch)
		if w.RxMissed > 0 {
			c.fact(Counted, "devices missed %s packets/s for lack of room", Packets(float64(w.RxMissed)/s.e.Seconds))
		}
		for _, q := range w.Queues {
			if q.Known && q.Depth > 0 {
				c.fact(Counted, "%d packets wait in queue %d of port %s", q.Depth, q.Index, q.Port)
			}
		}
		if nodes := nodesOf(w); len(nodes) > 0 {
			c.fact(Counted, "the most expensive node is %s with %.0f %% of its time", nodes[0].Name, 100*nodes[0].Share)
		}
		if usual := w.usualCycles(); usual > 0 {
			c.fact(Counted, "a packet usually costs %.0f cycles", usual)
		}
		for _, h := range s.e.Host.Handicaps {
			c.fact(Counted, "%s", h.What)
		}
		c.fact(Counted, "this core can process %s packets/s, and %.0f %% of that was reached", Packets(m.Expected),
			100*m.Achieved/max(1, m.Expected))
	},
	remedy: func(s *scene, c *Cause) {
		c.FixNote = "reduce the work per packet: every CPU has a worker"
		if free := s.e.Host.Housekeeping; free != "" {
			c.Fix = "corelane worker add --cpu " + firstOf(free)
			c.FixNote = "reduce the work per packet, or add a worker on a CPU that nothing else needs, with queues " +
				"to poll or ports in hybrid mode:"
		}
		if h := s.e.Host.Handicaps; len(h) > 0 {
			c.Title += "; " + h[0].What
			c.FixNote = strings.TrimSuffix(h[0].Remedy, ":") + "; then " + c.FixNote
			if h[0].Fix != "" {
				c.Fix = strings.TrimSpace(h[0].Fix + "\n" + c.Fix)
			}
		}
	},
}

// fewStolen is a share of a worker's time. A worker that lost less would be overloaded even if it had lost nothing; one
// that lost more gets it back before it needs another CPU.
const fewStolen = 0.04

func overloads(f *findings) (out []Cause) {
	for i := range f.e.Workers {
		w, m := &f.e.Workers[i], f.models[f.e.Workers[i].ID]
		stolen, other := 0.0, false
		for j := range f.causes {
			c := &f.causes[j]
			if c.Worker != w.ID && c.Worker >= 0 {
				continue
			}
			r := rowOf(c.Kind)
			if r.together == nil { // otherwise it sums up causes that are counted here
				stolen += c.Share
			}
			other = other || c.often || r.holdsBack != nil && r.holdsBack(c, m)
		}
		if m.saturated() && stolen < fewStolen && !other {
			out = append(out, Cause{Kind: Overload, Worker: w.ID, CPU: w.CPU, Name: w.Thread, Grade: Counted,
				PPS: float64(w.RxMissed) / f.e.Seconds})
		}
	}
	f.overloaded = len(out) > 0
	return out
}
