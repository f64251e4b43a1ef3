// SPDX-License-Identifier: Apache-2.0
package explain

import "slices"

var nothing = row{
	kind: Nothing, colour: "idle", part: "empty polls",
	means: "nothing is wrong: the input is the limit",
	known: "all workers had time left, and too few packets were lost to matter",
	answers: func(f *findings) []Cause {
		if !f.wellBehaved() || f.e.Silent || f.silent || f.ended {
			return nil
		}
		c := Cause{Kind: Nothing, Worker: -1, CPU: -1, Name: "the input", Grade: Counted}
		if f.e.Trace != nil && len(f.e.Workers) > 0 {
			c.Grade = Seen
		}
		c.headroom = 1
		for _, m := range f.models {
			c.all, c.headroom = c.all+m.Achieved, min(c.headroom, m.Headroom)
		}
		return []Cause{c}
	},
	describe: func(s *scene, c *Cause) {
		c.Title = "nothing is wrong: the input is the limit"
		switch {
		case len(s.e.Workers) == 0:
			c.Title = "the daemon has no worker"
			c.fact(Counted, "no worker ran during the whole window")
			return
		case s.e.Workers[0].Plain:
			c.Title = "nothing is wrong: nothing took the CPU from the threads"
			c.fact(c.Grade, "other threads and interrupts took too little time to matter")
		default:
			c.fact(Counted, "%s packets/s came in, and all workers had time left, the busiest one %.0f %%",
				Packets(c.all), 100*c.headroom)
		}
		if s.e.Trace == nil {
			c.fact(Inferred, "short interruptions cannot be seen without kernel events")
		}
	},
	remedy: func(s *scene, c *Cause) {
		if len(s.e.Workers) == 0 {
			c.Fix = "corelane worker add"
		}
	},
	noRemedy: "no remedy is needed",
}

// wellBehaved says whether no cause was found that matters.
func (f *findings) wellBehaved() bool {
	return !f.overloaded && !slices.ContainsFunc(f.causes, func(c Cause) bool { return !c.Minor })
}
