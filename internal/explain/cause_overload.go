// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var overload = row{
	kind: Overload, colour: "work",
	means:   "more is offered than the core can do",
	known:   "no time left, and nothing took any",
	answers: overloads,
	describe: func(s *scene, c *Cause) {
		w, m := s.w, s.m
		c.Title = fmt.Sprintf("worker %d is offered more than its core can do: %s packets/s at %.0f cycles each",
			w.ID, packets(m.Achieved), m.PerPacket)
		c.Why = fmt.Sprintf("it had packets in all but %.1f %% of its time, %.0f at once, and nobody took its CPU",
			100*m.Headroom, m.Batch)
		if w.RxMissed > 0 {
			c.fact(Counted, "devices had no room for %s packets/s more", packets(float64(w.RxMissed)/s.e.Seconds))
		}
		for _, q := range w.Queues {
			if q.Known && q.Depth > 0 {
				c.fact(Counted, "%d packets wait in queue %d of port %s", q.Depth, q.Index, q.Port)
			}
		}
		if nodes := nodesOf(w); len(nodes) > 0 {
			c.fact(Counted, "most expensive: %s with %.0f %% of its time", nodes[0].Name, 100*nodes[0].Share)
		}
		c.fact(Counted, "%s packets/s is what this core can do: %.0f %% of it are reached", packets(m.Expected),
			100*m.Achieved/max(1, m.Expected))
	},
	remedy: func(s *scene, c *Cause) {
		c.Fix = "corelane worker add --cpu " + firstOf(s.e.Host.Housekeeping)
		c.FixNote = "another worker on a CPU of its own that nothing else needs, with queues to poll, or ports in " +
			"hybrid mode; or less work per packet:"
	},
}

const fewStolen = 0.1 // of a worker's time: with less, more input would find no time even if nobody took any

func overloads(f *findings) (out []Cause) {
	for i := range f.e.Workers {
		w, m := &f.e.Workers[i], f.models[f.e.Workers[i].ID]
		stolen, other := 0.0, false
		for _, c := range f.causes {
			if c.Worker == w.ID && c.Kind != ManySmall { // which counts others again
				stolen, other = stolen+c.Share, other || c.Kind == Skew || c.Kind == Moved || c.often
			}
			other = other || c.Kind == ReaderStopped && c.PPS > fewStolen*m.Achieved
		}
		if m.saturated() && stolen < fewStolen && !other {
			out = append(out, Cause{Kind: Overload, Worker: w.ID, CPU: w.CPU, Name: w.Thread, Grade: Counted,
				PPS: float64(w.RxMissed) / f.e.Seconds})
		}
	}
	f.overloaded = len(out) > 0
	return out
}
