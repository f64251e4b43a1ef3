// SPDX-License-Identifier: Apache-2.0

// Package neighbor measures what a tenant loses while another tenant of the same router attacks it.
package neighbor

import (
	"context"
	"slices"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// Attack is what the attacker does. Each attack is measured on a router of its own.
type Attack struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Ports   []string `json:"ports"` // kinds of port that it fits
	change  func(*attacker) error
}

// attacker is a tenant that begins as an ordinary one: 64-byte frames of a thousand known flows, more than its share.
type attacker struct {
	port, wire *scenario.Port
	stream     *apiv1.GeneratorStream
	ordinary   *apiv1.GeneratorStream // what an ordinary tenant sends in its place, or gets; nil: nothing
	towards    *apiv1.GeneratorStream // what others send to it
	unread     string                 // port that is not read
	pace       float64                // its rate, as a multiple of what the worker forwards
	kept       int64                  // packets that the router may keep: for a neighbour or its master, or in a ring
	options    []string               // of corelaned
	prepare    func(context.Context, *api.Client) error
	guest      func(context.Context) (int, error) // attacks until ctx ends, instead of the stream; returns what it did
	// what an ordinary guest does in its place; nil: nothing
	ordinaryGuest func(context.Context) (int, error)
}

// PortKinds lists the kinds of the attacker's port.
func PortKinds() []string { return []string{scenario.Memif, scenario.Vhost, scenario.Tap} }

// Attacks lists all attacks.
func Attacks() []Attack {
	each := PortKinds()
	return []Attack{
		{"frames-64", "64-byte packets of known flows", each, sized(64)},
		{"frames-9000", "packets of 9,000 bytes, each in several packet buffers", each, (*attacker).jumbo},
		{"frames-64k", "frames of 64 KB, as of a guest that segments in the device", each[:2], sized(longest)},
		{"new-flows", "UDP packets that each begin a flow", each, (*attacker).newFlows},
		{"syn", "TCP SYNs that each begin a flow", each, (*attacker).syn},
		{"fragments", "later fragments without a first one", each, (*attacker).fragments},
		{"ttl", "packets whose TTL ends here", each, (*attacker).ttl},
		{"icmp-errors", "ICMP errors about packets that nobody sent", each, (*attacker).icmpErrors},
		{"gratuitous-arp", "ARP announcements of the guest's own address", each, (*attacker).gratuitousARP},
		{"nd", "neighbour advertisements that nobody asked for", each, (*attacker).advertisements},
		{"unresolved", "packets to guests of the own port that do not answer ARP", each, (*attacker).unresolved},
		{"dead-host", "packets to a host whose next hop on the fabric does not answer ARP", each, (*attacker).deadHost},
		{"no-reader", "a guest that does not read what is sent to it", each[:2], (*attacker).stopReading},
		{"reconnect", "a guest that connects and disconnects in a loop", each[:2], misused(nothing)},
		{"descriptors-64m", "descriptors of 64 MB; a memif is disconnected and returns", each[:2],
			misused(huge)},
		{"chains", "frames in chains of 128 descriptors with 8 bytes each", each[:2], misused(chain)},
		{"truncate", "a guest that shortens the file of its memory while the router uses it, in a loop", each[1:2],
			misused(shrink)},
		{"messages", "vhost-user messages of any kind while the guest's rings run", each[1:2], misused(lie)},
		{"full-call", "a guest whose notifications would wait: its call descriptor is at its maximum", each[1:2],
			misused(fullCall)},
		{"broadcasts", "broadcasts in a bridge domain of 250 ends", each, (*attacker).broadcasts},
		{"new-macs", "frames in a bridge domain that each have another source MAC", each, (*attacker).newMACs},
	}
}

// mostSlower is how many times as long the observed tenant's 99th percentile may be beside an attack. What a hostile
// front end does to its own connection is compared with nobody at all, so there the bound is wider.
func mostSlower(attack string) float64 {
	if slices.Contains([]string{"full-call", "messages", "truncate"}, attack) {
		return mostTwice
	}
	return mostP99
}

// AttackNames lists their names.
func AttackNames() []string {
	var names []string
	for _, a := range Attacks() {
		names = append(names, a.Name)
	}
	return names
}

// row is one line of the table: an attack through a kind of port.
type row struct {
	attack Attack
	port   string
}

// timed says whether latencies are measured. Beside a tap they are not: the generator is in the kernel most of the
// time.
func (r row) timed() bool { return r.port != scenario.Tap }

// rows returns the lines that the options choose.
func (o *Options) rows() (list []row) {
	for _, a := range Attacks() {
		if len(o.Attacks) > 0 && !slices.Contains(o.Attacks, a.Name) {
			continue
		}
		for _, kind := range a.Ports {
			if len(o.Ports) == 0 || slices.Contains(o.Ports, kind) {
				list = append(list, row{a, kind})
			}
		}
	}
	return list
}
