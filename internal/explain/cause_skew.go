// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

var skew = row{
	kind: Skew, colour: "other",
	means: "one worker has no time left, while the others have some",
	known: "packets and spare time of each worker",
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
				Recoverable: (m.Achieved - mean) * spare, others: mean, spare: spare}
			if hot.Port != "" {
				c.Name, c.Port = fmt.Sprintf("port %s queue %d", hot.Port, hot.Index), hot.Port
			}
			out = append(out, c)
		}
		return out
	},
	holdsBack: func(*Cause, *Model) bool { return true },
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("worker %d has no time left, while the others have %.0f %% of theirs", c.Worker,
			100*c.spare)
		c.fact(Counted, "it processes %s packets/s, the others %s on average", Packets(s.m.Achieved), Packets(c.others))
		c.fact(Inferred, "the others have time for %s packets/s more; only the senders know how many more are offered",
			Packets(c.Recoverable))
		hot := s.w.hottestQueue()
		if hot.Port != "" {
			c.fact(Counted, "queue %d of port %s brings it %s packets/s", hot.Index, hot.Port,
				Packets(float64(hot.Packets)/s.e.Seconds))
		}
		c.Why = "queues, or the flows in them, are not spread evenly over the workers"
		if len(s.w.Queues) == 1 && hot.Port != "" {
			c.Why = "one queue has most of the packets, and only one worker polls a queue"
		}
	},
	remedy: func(s *scene, c *Cause) {
		c.Fix = "corelane worker rebalance"
		if len(s.w.Queues) == 1 && c.Port != "" {
			c.Fix = fmt.Sprintf("corelane port set %s --mode hybrid", c.Port)
			c.FixNote = "hybrid mode spreads the port's packets over all workers by flow:"
			if s.e.port(c.Port).Hybrid {
				c.Fix = ""
				c.FixNote = "the port's packets are spread over the workers by flow already: one flow has most of them"
			}
		}
	},
}

const (
	hotTimes  = 2.0 // a hot worker processes as many times the mean of the others
	coldSpare = 0.3 // mean headroom with which the others could help
)

// others returns the mean rate and the mean headroom of the other workers of a worker's role, and their number.
func (f *findings) others(w *Worker) (rate, spare float64, n int) {
	for i := range f.e.Workers {
		if o := &f.e.Workers[i]; o.ID != w.ID && o.Role == w.Role {
			rate, spare, n = rate+f.models[o.ID].Achieved, spare+f.models[o.ID].Headroom, n+1
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	return rate / float64(n), spare / float64(n), n
}

func (w *Worker) hottestQueue() Queue {
	return slices.MaxFunc(append([]Queue{{}}, w.Queues...), func(a, b Queue) int {
		return cmp.Compare(a.Packets, b.Packets)
	})
}
