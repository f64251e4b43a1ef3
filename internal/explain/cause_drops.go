// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"slices"
	"strings"
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
				if reason != "port_tx_full" && reason != "worker_ring_full" && reason != noBuffer &&
					!f.e.noisy(p, reason) {
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
	// A healthy guest sends some packets for which a router has no use. On an idle router most packets
	// are such.
	limits: limits{loss: 0.01, lossRate: 100},
	describe: func(s *scene, c *Cause) {
		c.Title = "the router dropped packets with reason " + c.Name
		if isOfCopies(c.Name) {
			c.Title = "mirrors lost their copies of packets with reason " + c.Name + ", not the packets themselves"
		}
		down := s.e.sendNoMore()
		for _, p := range down {
			if c.Name == portDown {
				if len(down) == 1 {
					describeLink(s.e, p, c)
				}
				c.fact(Counted, "port %s (%s %s) is down, and sent %d packets before", p.Name, p.Device, p.Peer, p.Sent)
			}
		}
		c.fact(Counted, "%d packets were dropped, %.3f %% of those received", c.Times,
			100*float64(c.Times)/float64(max(1, c.of)))
	},
	remedy: func(s *scene, c *Cause) {
		for i := range s.e.Ports {
			if p := &s.e.Ports[i]; c.Name == "port_disabled" && p.Drops[c.Name] > 0 {
				remedyLink(s.e, p, c)
			}
		}
		if down := s.e.sendNoMore(); c.Name == portDown && len(down) == 1 {
			remedyLink(s.e, down[0], c)
		} else if c.Name == portDown && len(down) > 1 {
			c.FixNote = "several ports are down: bring up the one that packets are for"
		}
	},
	noRemedy: "corelane drops --by-port shows what the reason means and which ports are affected",
}

// isOfCopies says whether what is dropped for a reason are the copies of mirrors. Their packets go on.
func isOfCopies(reason string) bool { return strings.HasPrefix(reason, "mirror_") }

const portDown = "port_down" // the drop reason of packets to a port that is down

// sendNoMore lists the ports that are down and sent packets before. The packets that were dropped were for one of them.
func (e *Evidence) sendNoMore() (list []*Port) {
	for i := range e.Ports {
		if p := &e.Ports[i]; (!p.Up || p.Disabled) && p.TxPackets == 0 && p.Sent > 0 {
			list = append(list, p)
		}
	}
	return list
}

func (e *Evidence) received() (n uint64) {
	for i := range e.Ports {
		n += e.Ports[i].RxPackets
	}
	return n
}
