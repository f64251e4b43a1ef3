// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"slices"
)

var drops = row{
	kind: Drops, colour: "other", part: "dropped",
	means: "the router dropped packets for a reason other than a full queue or a noisy port",
	known: "`corelane drops`: at least 1 % of the packets received, and 100 per second",
	losses: func(f *findings) (out []Cause) {
		sums := map[string]uint64{}
		for i := range f.e.Ports {
			p := &f.e.Ports[i]
			for reason, n := range p.Drops {
				// other rows report these
				if reason != "port_tx_full" && reason != "worker_ring_full" && !f.e.noisy(p, reason) {
					sums[reason] += n
				}
			}
		}
		for reason, n := range sums {
			out = append(out, Cause{Worker: -1, CPU: -1, Name: reason, Times: int64(n), of: f.e.received()})
		}
		slices.SortFunc(out, func(a, b Cause) int { return cmp.Compare(a.Name, b.Name) })
		return out
	},
	// A healthy guest sends some packets for which a router has no use, and on an idle router they are most of all.
	limits: limits{loss: 0.01, lossRate: 100},
	describe: func(_ *scene, c *Cause) {
		c.Title = "the router dropped packets with reason " + c.Name
		c.fact(Counted, "%d packets were dropped, %.3f %% of those received", c.Times,
			100*float64(c.Times)/float64(max(1, c.of)))
	},
	noRemedy: "corelane drops --by-port shows what the reason means and which ports are affected",
}

func (e *Evidence) received() (n uint64) {
	for i := range e.Ports {
		n += e.Ports[i].RxPackets
	}
	return n
}
