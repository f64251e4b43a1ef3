// SPDX-License-Identifier: Apache-2.0

// Package state is the desired state of a node: its YAML file, the difference between two states as an ordered list of
// operations, and the application of that list to a running corelaned.
//
// Load and Diff do no I/O. What the daemon adds by itself (connected, local and guest routes, system next hops, learnt
// MAC addresses and neighbours, the VRF 'fabric') is not part of a state.
package state

import (
	"cmp"
	"net/netip"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// FabricVrf is the VRF of the underlay, which every node has.
const FabricVrf = "fabric"

// Route is an apiv1.Route that takes a third of the memory, since there may be a million of them.
type Route struct {
	Vrf     string
	Prefix  netip.Prefix
	Nexthop uint32
	Line    uint32 // in the file; 0: read from a node
}

// routeOf returns the route of a message. All routes of a VRF share one copy of its name, which intern returns.
func routeOf(m *apiv1.Route, intern func(vrf string) string) (Route, error) {
	prefix, err := netip.ParsePrefix(m.Prefix)
	return Route{Vrf: intern(m.Vrf), Prefix: prefix, Nexthop: m.Nexthop}, err
}

// message is the reverse of routeOf.
func (r Route) message() *apiv1.Route {
	return &apiv1.Route{Vrf: r.Vrf, Prefix: r.Prefix.String(), Nexthop: r.Nexthop}
}

// messages is message for many routes, with few allocations.
func messages(routes []Route) []*apiv1.Route {
	made, list, texts := make([]apiv1.Route, len(routes)), make([]*apiv1.Route, len(routes)), []byte(nil)
	for _, r := range routes {
		texts = r.Prefix.AppendTo(texts)
	}
	all, buffer := string(texts), texts[:0]
	for i, r := range routes {
		n := len(r.Prefix.AppendTo(buffer))
		m := &made[i]
		m.Vrf, m.Prefix, m.Nexthop = r.Vrf, all[:n], r.Nexthop
		list[i], all = m, all[n:]
	}
	return list
}

// CompareRoutes compares the keys of routes: VRF, family, address and length.
func CompareRoutes(a, b Route) int {
	if c := strings.Compare(a.Vrf, b.Vrf); c != 0 {
		return c
	}
	if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
		return c
	}
	return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits())
}

// NewRoute returns a route. It panics if prefix is not valid.
func NewRoute(vrf, prefix string, nexthop uint32) Route {
	return Route{Vrf: vrf, Prefix: netip.MustParsePrefix(prefix), Nexthop: nexthop}
}

// Normalize brings all objects into the form in which states are compared.
func (s *State) Normalize() {
	for _, section := range sections {
		for _, m := range s.objects(section) {
			Normalize(m)
		}
	}
	s.Sort()
}
