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
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// FabricVrf is the underlay's VRF: every node has it.
const FabricVrf = "fabric"

// State holds normalised messages: addresses in their usual notation, defaults filled in.
type State struct {
	Settings  *apiv1.Settings
	Workers   []*apiv1.Worker // nil: left as they are; empty: none
	Vrfs      []*apiv1.Vrf
	Bridges   []*apiv1.Bridge
	Meters    []*apiv1.Meter
	Groups    []*apiv1.AddressGroup
	RuleLists []*apiv1.RuleList
	Rules     []*apiv1.Rule
	Ports     []*apiv1.Port
	Mirrors   []*apiv1.Mirror
	Nexthops  []*apiv1.Nexthop
	Routes    []Route // sorted by CompareRoutes
	Labels    []*apiv1.Label
	Vnis      []*apiv1.Vni
	Nat       []*apiv1.NatRule
	Macs      []*apiv1.Mac
	Neighbors []*apiv1.Neighbor
	Steers    []*apiv1.HostSteer
}

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

// sections of the file in the order in which they are written and read: most names before their uses.
var sections = []string{"settings", "workers", "vrfs", "bridges", "meters", "address_groups", "rule_lists", "rules", "ports", "mirrors", "nexthops", "labels", "vnis", "nat", "routes", "macs", "neighbors", "host_steers"}

// nouns names one object of a section.
var nouns = map[string]string{"settings": "settings", "workers": "worker", "vrfs": "vrf", "bridges": "bridge", "meters": "meter",
	"address_groups": "address-group", "rule_lists": "rule-list", "rules": "rule", "ports": "port", "mirrors": "mirror",
	"nexthops": "nexthop", "labels": "label", "vnis": "vni", "nat": "nat", "routes": "route", "macs": "mac", "neighbors": "neighbor",
	"host_steers": "host-steer"}

// newMessage makes an empty object of a section.
func newMessage(section string) proto.Message {
	switch section {
	case "settings":
		return &apiv1.Settings{}
	case "workers":
		return &apiv1.Worker{}
	case "vrfs":
		return &apiv1.Vrf{}
	case "bridges":
		return &apiv1.Bridge{}
	case "meters":
		return &apiv1.Meter{}
	case "address_groups":
		return &apiv1.AddressGroup{}
	case "rule_lists":
		return &apiv1.RuleList{}
	case "rules":
		return &apiv1.Rule{}
	case "ports":
		return &apiv1.Port{}
	case "mirrors":
		return &apiv1.Mirror{}
	case "nexthops":
		return &apiv1.Nexthop{}
	case "labels":
		return &apiv1.Label{}
	case "vnis":
		return &apiv1.Vni{}
	case "nat":
		return &apiv1.NatRule{}
	case "routes":
		return &apiv1.Route{}
	case "macs":
		return &apiv1.Mac{}
	case "neighbors":
		return &apiv1.Neighbor{}
	case "host_steers":
		return &apiv1.HostSteer{}
	}
	return nil
}

// add puts a normalised object into its section.
func (s *State) add(m proto.Message) {
	switch m := m.(type) {
	case *apiv1.Settings:
		s.Settings = m
	case *apiv1.Worker:
		s.Workers = append(s.Workers, m)
	case *apiv1.Vrf:
		s.Vrfs = append(s.Vrfs, m)
	case *apiv1.Bridge:
		s.Bridges = append(s.Bridges, m)
	case *apiv1.Meter:
		s.Meters = append(s.Meters, m)
	case *apiv1.AddressGroup:
		s.Groups = append(s.Groups, m)
	case *apiv1.RuleList:
		s.RuleLists = append(s.RuleLists, m)
	case *apiv1.Rule:
		s.Rules = append(s.Rules, m)
	case *apiv1.Port:
		s.Ports = append(s.Ports, m)
	case *apiv1.Mirror:
		s.Mirrors = append(s.Mirrors, m)
	case *apiv1.Nexthop:
		s.Nexthops = append(s.Nexthops, m)
	case *apiv1.Label:
		s.Labels = append(s.Labels, m)
	case *apiv1.Vni:
		s.Vnis = append(s.Vnis, m)
	case *apiv1.NatRule:
		s.Nat = append(s.Nat, m)
	case *apiv1.Mac:
		s.Macs = append(s.Macs, m)
	case *apiv1.Neighbor:
		s.Neighbors = append(s.Neighbors, m)
	case *apiv1.HostSteer:
		s.Steers = append(s.Steers, m)
	}
}

// objects gives the messages of a section, without routes.
func (s *State) objects(section string) []proto.Message {
	switch section {
	case "settings":
		if s.Settings != nil {
			return []proto.Message{s.Settings}
		}
	case "workers":
		return messages(s.Workers)
	case "vrfs":
		return messages(s.Vrfs)
	case "bridges":
		return messages(s.Bridges)
	case "meters":
		return messages(s.Meters)
	case "address_groups":
		return messages(s.Groups)
	case "rule_lists":
		return messages(s.RuleLists)
	case "rules":
		return messages(s.Rules)
	case "ports":
		return messages(s.Ports)
	case "mirrors":
		return messages(s.Mirrors)
	case "nexthops":
		return messages(s.Nexthops)
	case "labels":
		return messages(s.Labels)
	case "vnis":
		return messages(s.Vnis)
	case "nat":
		return messages(s.Nat)
	case "macs":
		return messages(s.Macs)
	case "neighbors":
		return messages(s.Neighbors)
	case "host_steers":
		return messages(s.Steers)
	}
	return nil
}

func messages[T proto.Message](list []T) []proto.Message {
	out := make([]proto.Message, len(list))
	for i, m := range list {
		out[i] = m
	}
	return out
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

// Sort puts every section in the order of its keys: the order in which it is written.
func (s *State) Sort() {
	byKey(s.Workers, func(m *apiv1.Worker) uint32 { return m.Id })
	byKey(s.Vrfs, func(m *apiv1.Vrf) string { return m.Name })
	byKey(s.Bridges, func(m *apiv1.Bridge) string { return m.Name })
	byKey(s.Meters, func(m *apiv1.Meter) string { return m.Name })
	byKey(s.Groups, func(m *apiv1.AddressGroup) string { return m.Name })
	byKey(s.RuleLists, func(m *apiv1.RuleList) string { return m.Name })
	slices.SortStableFunc(s.Rules, func(a, b *apiv1.Rule) int {
		return cmp.Or(strings.Compare(a.List, b.List), cmp.Compare(a.Id, b.Id))
	})
	byKey(s.Ports, func(m *apiv1.Port) string { return m.Name })
	byKey(s.Mirrors, func(m *apiv1.Mirror) string { return m.Name })
	byKey(s.Nexthops, func(m *apiv1.Nexthop) uint32 { return m.Id })
	byKey(s.Labels, func(m *apiv1.Label) uint32 { return m.Label })
	byKey(s.Vnis, func(m *apiv1.Vni) uint32 { return m.Vni })
	byKey(s.Nat, func(m *apiv1.NatRule) uint32 { return m.Id })
	byKey(s.Macs, func(m *apiv1.Mac) string { return keyOf(m) })
	byKey(s.Neighbors, func(m *apiv1.Neighbor) string { return keyOf(m) })
	byKey(s.Steers, func(m *apiv1.HostSteer) string { return keyOf(m) })
	if !slices.IsSortedFunc(s.Routes, CompareRoutes) {
		slices.SortStableFunc(s.Routes, CompareRoutes)
	}
}

func byKey[T any, K cmp.Ordered](list []T, key func(T) K) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// keyFields name an object within its section.
var keyFields = map[string][]string{"settings": nil, "workers": {"id"}, "vrfs": {"name"}, "bridges": {"name"}, "meters": {"name"},
	"address_groups": {"name"}, "rule_lists": {"name"}, "rules": {"list", "id"}, "ports": {"name"}, "mirrors": {"name"},
	"nexthops": {"id"}, "labels": {"label"}, "vnis": {"vni"}, "nat": {"id"}, "routes": {"vrf", "prefix"}, "macs": {"bridge", "mac"},
	"neighbors": {"port", "address"}, "host_steers": {"port", "address"}}

var sectionOf = func() map[protoreflect.Name]string {
	m := map[protoreflect.Name]string{}
	for _, s := range sections {
		m[newMessage(s).ProtoReflect().Descriptor().Name()] = s
	}
	return m
}()

// keyOf is what an object is called in messages and in comparisons: "red", "5", "office 02:00:00:00:00:01".
func keyOf(m proto.Message) string {
	r := m.ProtoReflect()
	var parts []string
	for _, name := range keyFields[sectionOf[r.Descriptor().Name()]] {
		parts = append(parts, r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(name))).String())
	}
	return strings.Join(parts, " ")
}
