// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"
)

var smallRing = row{
	kind: SmallRing, colour: "other",
	means: "a port's ring is full at most polls, although the worker has time left: the sender has no room for its " +
		"bursts",
	known: "the packets that each loop takes from a memif ring of at most 256: on average 60 % of the ring or more. " +
		"Only the senders know what found no room, so the cost is the most that a longer ring can bring",
	losses: func(f *findings) (out []Cause) {
		for i := range f.e.Workers {
			w := &f.e.Workers[i]
			m := f.models[w.ID]
			if w.Plain || w.BusyLoops < enoughLoops || m.saturated() || f.overflowed(w.ID) {
				continue
			}
			for _, q := range w.Queues {
				p := f.e.port(q.Port)
				// all packets of a longer ring do not fit into one loop
				if p.RingSize == 0 || p.RingSize > fullBatch || p.RxMissed > 0 || // otherwise the losses are known
					w.taken(q) < mostlyFull*float64(p.RingSize) {
					continue
				}
				out = append(out, Cause{Worker: w.ID, CPU: -1, Name: p.Name, Port: p.Name,
					Recoverable: m.Headroom * m.Expected, taken: w.taken(q)})
			}
		}
		return out
	},
	describe: func(s *scene, c *Cause) {
		p := s.e.port(c.Port)
		c.Title = fmt.Sprintf("the ring of port %s is too small for the bursts of its sender", p.Name)
		c.Why = fmt.Sprintf("it has %d slots, and most polls find it full", p.RingSize)
		c.fact(Counted, "each of the worker's loops with packets took %.0f of them from the ring", c.taken)
		c.fact(Inferred, "worker %d has time for %s packets/s more; only the sender knows how many found no room",
			c.Worker, Packets(c.Recoverable))
	},
	remedy: func(s *scene, c *Cause) {
		c.FixNote = fmt.Sprintf("a ring has its size from the beginning: delete the port and add it again with "+
			"--ring-size %d; the other end has to allow it, too", max(usualRing, 8*s.e.port(c.Port).RingSize))
	},
}

const mostlyFull = 0.6 // of a ring, on average; the first and the last poll of a burst find less than a full one

// overflowed says whether a cause took so much of a worker's time that its ring overflowed meanwhile.
func (f *findings) overflowed(worker int) bool {
	return slices.ContainsFunc(f.causes, func(c Cause) bool {
		return c.Worker == worker && !c.Minor && c.LostNS > 0 && c.PPS >= 1
	})
}

// taken returns how many packets of a queue a loop with packets takes, at least: others may be without any of it.
func (w *Worker) taken(q Queue) float64 { return float64(q.Packets) / float64(max(1, w.BusyLoops)) }
