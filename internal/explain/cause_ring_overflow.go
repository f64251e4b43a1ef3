// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	fields "github.com/corelane/corelane/internal/limits"
)

var workerRing = (&apiv1.Worker{}).ProtoReflect().Descriptor().Fields().ByName("ring_size")

var ringOverflow = row{
	kind: RingOverflow, colour: "other",
	means: "bursts were longer than a ring, although the worker had time left",
	known: "packets that devices missed and that rings refused: at least 0.5 % of them, and one per second",
	losses: func(f *findings) (out []Cause) {
		for i := range f.e.Rings {
			r := &f.e.Rings[i]
			if m := f.models[r.To]; r.Refused > 0 && m != nil && !m.saturated() && !f.away(r.To) {
				out = append(out, Cause{Worker: r.To, CPU: -1, Name: fmt.Sprintf("ring %d to %d", r.From, r.To),
					Times: int64(r.Refused),
					of:    r.Refused + r.Packets, ring: r})
			}
		}
		for i := range f.e.Ports {
			p := &f.e.Ports[i]
			if w, headroom := f.busiestPoller(p.Name); p.RxMissed > 0 && headroom >= saturatedTop && !f.away(w) {
				out = append(out, Cause{Worker: w, CPU: -1, Name: p.Name, Port: p.Name, Times: int64(p.RxMissed),
					of: p.RxMissed + p.RxPackets})
			}
		}
		return out
	},
	limits: limits{loss: minorLoss, lossRate: minorRate},
	describe: func(s *scene, c *Cause) {
		headroom := 1.0
		if s.m != nil {
			headroom = s.m.Headroom
		}
		left := fmt.Sprintf("overflowed, although worker %d had %.0f %% of its time left", c.Worker, 100*headroom)
		if r := c.ring; r != nil {
			c.Title = fmt.Sprintf("the ring from worker %d to worker %d %s", r.From, r.To, left)
			c.Why = fmt.Sprintf("bursts are longer than its %d slots", r.Size)
			c.fact(Counted, "the ring refused %d packets and accepted %d; it held up to %d", r.Refused, r.Packets,
				r.High)
			return
		}
		p := s.e.port(c.Port)
		c.Title = fmt.Sprintf("the receive ring of port %s %s", p.Name, left)
		c.Why = "bursts are longer than the ring"
		if p.RingSize > 0 {
			c.Why += fmt.Sprintf(" of %d", p.RingSize)
		}
		c.fact(Counted, "the device missed %d packets for lack of room and delivered %d", p.RxMissed, p.RxPackets)
	},
	remedy: func(_ *scene, c *Cause) {
		if c.ring != nil {
			ring := min(4*uint64(c.ring.Size), fields.Max(workerRing))
			if ring == uint64(c.ring.Size) {
				c.FixNote = "no ring can be longer: make the bursts shorter, or let the worker finish the packets " +
					"that it polls (--mode run-to-completion)"
				return
			}
			c.Fix = fmt.Sprintf("corelane worker set %d --ring-size %d", c.Worker, ring)
			return
		}
		c.FixNote = "make the ring longer: ring_size of the port (delete and add it again), or the ring of its sender"
	},
}

// away says whether a worker lost time to a cause that matters. An overflow of its ring is then only an effect.
func (f *findings) away(worker int) bool {
	return slices.ContainsFunc(f.causes, func(c Cause) bool { return c.Worker == worker && !c.Minor && c.LostNS > 0 })
}

// busiestPoller returns the worker with the least headroom that polls a queue of the port; -1: there is none.
func (f *findings) busiestPoller(port string) (worker int, headroom float64) {
	worker, headroom = -1, 1.0
	for i := range f.e.Workers {
		w := &f.e.Workers[i]
		polls := slices.ContainsFunc(w.Queues, func(q Queue) bool { return q.Port == port })
		if m := f.models[w.ID]; polls && m.Headroom <= headroom {
			worker, headroom = w.ID, m.Headroom
		}
	}
	return worker, headroom
}
