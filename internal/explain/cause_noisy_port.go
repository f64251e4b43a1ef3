// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

// noisyRate is the number of packets per second from which a port is noisy. Ordinary guests have far fewer of these.
const noisyRate = 10_000

// noise is what a guest sends, and the commands that limit it; nil or "": there are none.
type noise struct {
	what  string
	limit func(e *Evidence, p *Port) string
}

// notLearnt stands where other noises have a drop reason: the bridge passes these frames.
const notLearnt = "learn_too_many"

// noises are the drop reasons of packets that cost the router more than others, and that a guest has no need to send in
// large numbers.
var noises = map[string]noise{
	notLearnt:                {"frames with new source MACs", limitMACs},
	"bridge_flood_rate":      {"broadcasts and frames to unknown destinations", nil},
	"buffer_share":           {"packets that wait for other workers or for neighbours", nil},
	"flow_icmp_error_rate":   {"ICMP errors", nil},
	"flow_no_first_fragment": {"fragments without a first one", nil},
	"flow_quota_share":       {"packets of new flows", limitFlows},
	"flow_table_full":        {"packets of new flows", limitFlows},
	"frame_too_long":         {"frames that are longer than its MTU", nil},
	"ip_ttl_exceeded":        {"packets whose TTL has ended", nil},
	"neighbor_queue_full":    {"unresolved packets", limitUnresolved},
	"neighbor_rate":          {"unresolved packets", limitUnresolved},
	"punt_rate":              {"ARP and neighbour discovery messages", nil},
	"source_address":         {"packets with the address of somebody else", nil},
	"source_mac":             {"frames with the MAC of somebody else", nil},
}

const (
	leastFlows     = 1000 // that a guest needs in any case
	unresolvedRate = 100  // packets/s, as many as one neighbour gets: an ordinary guest sends a few while it waits
)

// limitFlows leaves the port a quarter of an equal share of the table, so that the others have room for more than
// theirs. It also ends the port's flows: its packets would keep those above the limit.
func limitFlows(e *Evidence, p *Port) string {
	stateful := uint64(0)
	for i := range e.Ports {
		if e.Ports[i].Stateful {
			stateful++
		}
	}
	limit := max(leastFlows, e.Flows/4/max(1, stateful))
	if p.FlowLimit != 0 && uint64(p.FlowLimit) <= limit {
		return ""
	}
	return fmt.Sprintf("corelane port set %[1]s --flow-limit %[2]d\ncorelane flow flush --port %[1]s", p.Name, limit)
}

// limitUnresolved limits what the control plane takes of the port.
func limitUnresolved(_ *Evidence, p *Port) string {
	if p.UnresolvedRate != 0 && p.UnresolvedRate <= unresolvedRate {
		return ""
	}
	return fmt.Sprintf("corelane port set %s --unresolved-rate %d", p.Name, unresolvedRate)
}

// limitMACs drops frames whose source is not the guest's.
func limitMACs(_ *Evidence, p *Port) string {
	if !p.GuestKnown {
		return ""
	}
	return fmt.Sprintf("corelane port set %s --source-check strict", p.Name)
}

// noisyFlows says whether the flow table's size is needed to limit a port.
func (e *Evidence) noisyFlows() bool {
	for i := range e.Ports {
		if e.noisy(&e.Ports[i], "flow_quota_share") || e.noisy(&e.Ports[i], "flow_table_full") {
			return true
		}
	}
	return false
}

var noisyPort = row{
	kind: NoisyPort, colour: "other",
	means: "a guest sends large numbers of packets that cost the router more than others, or that nobody can receive",
	known: "`corelane drops --by-port`, or `learn_too_many` of `corelane port show`: at least 1 % of the packets " +
		"received, and 10,000 per second of one port",
	losses: func(f *findings) (out []Cause) {
		for i := range f.e.Ports {
			p := &f.e.Ports[i]
			for reason := range noises {
				if f.e.noisy(p, reason) {
					out = append(out, Cause{Worker: -1, CPU: -1, Name: reason, Port: p.Name,
						Times: int64(p.noise(reason)), of: f.e.received()})
				}
			}
		}
		slices.SortFunc(out, func(a, b Cause) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Name, b.Name))
		})
		return out
	},
	limits: limits{loss: 0.01, lossRate: noisyRate},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("port %s sends %s %s per second", c.Port, Packets(c.PPS), noises[c.Name].what)
		fate := "dropped with reason " + c.Name
		if c.Name == notLearnt {
			fate = "passed without learning their sources"
		}
		c.fact(Counted, "%d of its packets were %s, %.1f %% of all that the router received", c.Times, fate,
			100*float64(c.Times)/float64(max(1, c.of)))
		p := s.e.port(c.Port)
		c.fact(Counted, "port %s (%s %s) received %s packets/s in all", p.Name, p.Device, p.Peer,
			Packets(float64(p.RxPackets)/s.e.Seconds))
	},
	remedy: func(s *scene, c *Cause) {
		if limit := noises[c.Name].limit; limit != nil {
			c.Fix = limit(s.e, s.e.port(c.Port))
		}
		if c.Fix != "" {
			c.FixNote = "limit what the guest may send:"
			return
		}
		if c.Name == notLearnt {
			c.FixNote = "the router bounds what these frames cost. With --guest-mac, --guest-address and " +
				"--source-check strict, the port drops those that are not from the guest"
			return
		}
		// No command: to take a guest off the network is for the operator to decide.
		c.FixNote = "the router bounds what these packets cost, and no option limits them further: ask whoever runs " +
			"the guest"
	},
}

// noise counts the port's packets of a kind.
func (p *Port) noise(name string) uint64 {
	if name == notLearnt {
		return p.NotLearnt
	}
	return p.Drops[name]
}

// noisy says whether a guest's packets of a kind are so many that its port is to blame.
func (e *Evidence) noisy(p *Port, name string) bool {
	_, known := noises[name]
	return known && p.Role == "tenant" && float64(p.noise(name)) >= noisyRate*e.Seconds
}
