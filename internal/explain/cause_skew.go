// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

var skew = row{
	kind: Skew, colour: "other",
	means: "one worker has no time left, the others have",
	known: "packets and time of each",
	losses: func(f *findings) (out []Cause) {
		for i := range f.e.Workers {
			w := &f.e.Workers[i]
			m := f.models[w.ID]
			mean, spare, n := f.others(w)
			if n == 0 || m.Headroom > 0.1 || m.Achieved < hotTimes*mean || spare < coldSpare {
				continue
			}
			hot := w.hottestQueue()
			c := Cause{Worker: w.ID, CPU: w.CPU, Name: w.Thread, Times: int64(w.RxMissed),
				Could: (m.Achieved - mean) * spare, others: mean, spare: spare}
			if hot.Port != "" {
				c.Name, c.Port = fmt.Sprintf("port %s queue %d", hot.Port, hot.Index), hot.Port
			}
			out = append(out, c)
		}
		return out
	},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("worker %d has no time left, while the others have %.0f %% of theirs", c.Worker,
			100*c.spare)
		c.fact(Counted, "it moves %s packets/s, the others %s on average", packets(s.m.Achieved), packets(c.others))
		c.fact(Inferred, "the others have time for %s packets/s more; how many of them come is known to those who "+
			"send them", packets(c.Could))
		hot := s.w.hottestQueue()
		if hot.Port != "" {
			c.fact(Counted, "queue %d of port %s brings %s packets/s of them", hot.Index, hot.Port,
				packets(float64(hot.Packets)/s.e.Seconds))
		}
		c.Why = "queues, or the flows in them, are not spread evenly over the workers"
		if len(s.w.Queues) == 1 && hot.Port != "" {
			c.Why = "one queue has most of the packets: a queue belongs to one worker"
		}
	},
	remedy: func(s *scene, c *Cause) {
		c.Fix = "corelane worker rebalance"
		if len(s.w.Queues) == 1 && c.Port != "" {
			c.Fix = fmt.Sprintf("corelane port set %s --mode hybrid", c.Port)
			c.FixNote = "spreads its packets over all workers by their flows"
		}
	},
}

const (
	hotTimes  = 2.0 // of the mean of the others
	coldSpare = 0.3 // headroom of those that could help
)

// others of a worker's role: the mean of what they move, and of the time that they have left.
func (f *findings) others(w *Worker) (moves, spare float64, n int) {
	for i := range f.e.Workers {
		if o := &f.e.Workers[i]; o.ID != w.ID && o.Role == w.Role {
			moves, spare, n = moves+f.models[o.ID].Achieved, spare+f.models[o.ID].Headroom, n+1
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	return moves / float64(n), spare / float64(n), n
}

func (w *Worker) hottestQueue() Queue {
	return slices.MaxFunc(append([]Queue{{}}, w.Queues...), func(a, b Queue) int {
		return cmp.Compare(a.Packets, b.Packets)
	})
}
