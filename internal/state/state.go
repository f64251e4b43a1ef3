// SPDX-License-Identifier: Apache-2.0

// Package state is the desired state of a node: its YAML file, the difference between two states as an ordered list of
// operations, and the application of that list to a running corelaned.
//
// Load and Diff are pure. What the daemon makes by itself (connected, local and guest routes, system next hops, learnt
// MAC addresses and neighbours, the VRF 'fabric') is no part of a state.
package state

import (
	"cmp"
	"net/netip"
	"strings"
)

// FabricVrf is the underlay's VRF: every node has it.
const FabricVrf = "fabric"

// Route is apiv1.Route in a third of its memory: there may be a million.
type Route struct {
	Vrf     string
	Prefix  netip.Prefix
	Nexthop uint32
	Line    uint32 // of the file it came from, 0 when it came from a node
}

// CompareRoutes orders by VRF, family, address and length: the key of a route.
func CompareRoutes(a, b Route) int {
	if c := strings.Compare(a.Vrf, b.Vrf); c != 0 {
		return c
	}
	if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
		return c
	}
	return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits())
}

// NewRoute makes a route; prefix is one that the program itself knows to be right.
func NewRoute(vrf, prefix string, nexthop uint32) Route {
	return Route{Vrf: vrf, Prefix: netip.MustParsePrefix(prefix), Nexthop: nexthop}
}

// Normalize brings all objects into the form that states are compared in.
func (s *State) Normalize() {
	for _, section := range sections {
		for _, m := range s.objects(section) {
			Normalize(m)
		}
	}
	s.Sort()
}
