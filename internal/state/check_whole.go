// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// finish checks what can only be checked when the whole file has been read.
func (l *loader) finish() {
	for _, ref := range l.refs {
		l.lookup(ref)
	}
	l.tooMany("vrfs", len(l.state.Vrfs), (&apiv1.Vrf{}).ProtoReflect().Descriptor())
	l.tooMany("bridges", len(l.state.Bridges), (&apiv1.Bridge{}).ProtoReflect().Descriptor())
	if len(l.broken) > 0 {
		return // the rest compares objects, and some are not known
	}
	for _, m := range l.members {
		if kind := l.kinds[m.key]; kind != "" && kind != "port" && kind != "tunnel" {
			l.fail(m.at, m.field, "a next hop of kind port or tunnel", "next hop %s of kind %s cannot be in a group",
				m.key, kind)
		}
	}
	l.tunnels()
	l.portsOfMacs()
	l.hosts()
	l.subports()
	l.vrfsOfBridges()
	l.ownRoutes()
	l.clashesOfNat()
	l.checkServices()
	l.duplicateRoutes()
	if l.state.Settings == nil {
		l.state.Settings = DefaultSettings()
	}
}

// tunnels checks that bridges and MAC addresses refer only to next hops that are tunnels.
func (l *loader) tunnels() {
	for _, ref := range l.refs {
		kind := l.kinds[ref.key]
		if ref.section == "nexthops" && kind != "" && kind != "tunnel" && bridgesRef(ref.field) {
			l.fail(ref.at, ref.field, "a next hop of kind tunnel", "next hop %s is of kind %s", ref.key, kind)
		}
	}
}

func bridgesRef(field string) bool {
	return strings.HasPrefix(field, "bridges[") || strings.HasPrefix(field, "macs[")
}

func (l *loader) portsOfMacs() {
	bridge := map[string]string{}
	for _, p := range l.state.Ports {
		bridge[p.Name] = p.Bridge
	}
	for _, m := range l.state.Macs {
		if at := l.defs["macs"][keyOf(m)]; m.GetPort() != "" && bridge[m.GetPort()] != m.Bridge {
			l.fail(at, "macs", "a port of the bridge", "the port '%s' is not in the bridge '%s'", m.GetPort(), m.Bridge)
		}
	}
}

// vrfsOfBridges checks that all ports of a bridge are in the same VRF.
func (l *loader) vrfsOfBridges() {
	first := map[string]*apiv1.Port{}
	for _, p := range l.state.Ports {
		other := first[p.Bridge]
		switch {
		case p.Bridge == "" || p.Vrf == "":
		case other == nil:
			first[p.Bridge] = p
		case other.Vrf != p.Vrf:
			l.fail(l.defs["ports"][p.Name], "ports", "the VRF of the bridge's other ports",
				"the port '%s' is in VRF '%s', but '%s' of the same bridge is in '%s'",
				p.Name, p.Vrf, other.Name, other.Vrf)
		}
	}
}

// ownRoutes notes the prefixes for which a node adds routes by itself, and finds ports that have the same prefix.
func (l *loader) ownRoutes() {
	l.own = map[Route]string{}
	owner := map[Route]string{}
	for _, p := range l.state.Ports {
		at := l.defs["ports"][p.Name]
		for _, key := range addressKeys(p) {
			if other := owner[key]; other != "" && other != p.Name {
				l.fail(at, "ports",
					"a prefix for each port", "the ports '%s' and '%s' both have %s in VRF '%s'", p.Name, other,
					key.Prefix, key.Vrf)
			}
			owner[key] = p.Name
		}
		for _, prefix := range ownPrefixes(p) {
			l.own[prefix] = p.Name
		}
	}
}

// tooMany finds more objects than there are ids that the node gives.
func (l *loader) tooMany(section string, n int, md protoreflect.MessageDescriptor) {
	if most := limits.Max(md.Fields().ByName("id")); uint64(n) > most {
		l.fail(position{1, 1}, section, fmt.Sprintf("up to %d", most), "%d are too many", n)
	}
}

func (l *loader) lookup(ref pending) {
	if ref.section == "vrfs" && ref.key == FabricVrf {
		return
	}
	broken := slices.ContainsFunc(l.broken, func(b pending) bool {
		return b.section == ref.section && b.key == ref.key
	})
	if _, found := l.defs[ref.section][ref.key]; !found && !broken {
		l.fail(ref.at, ref.field, l.known(ref.section), "there is no %s '%s' in this file", nounOf[ref.section].name,
			ref.key)
	}
}

// known lists the names of a section, only some of them if there are many.
func (l *loader) known(section string) string {
	const some = 8
	var keys []string
	for key := range l.defs[section] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, err1 := strconv.Atoi(a)
		y, err2 := strconv.Atoi(b)
		if err1 == nil && err2 == nil {
			return x - y
		}
		return strings.Compare(a, b)
	})
	if section == "vrfs" {
		keys = append([]string{FabricVrf}, keys...)
	}
	switch {
	case len(keys) == 0:
		return fmt.Sprintf("none, because the section %s is empty", section)
	case len(keys) > some:
		return fmt.Sprintf("%s and %d more", strings.Join(keys[:some], ", "), len(keys)-some)
	}
	return strings.Join(keys, ", ")
}

// duplicateRoutes sorts the routes and finds prefixes that are given twice, or that the node has routes for by itself.
func (l *loader) duplicateRoutes() {
	routes := l.state.Routes
	if !slices.IsSortedFunc(routes, CompareRoutes) {
		slices.SortStableFunc(routes, CompareRoutes)
	}
	for i := range routes {
		if port := l.own[Route{Vrf: routes[i].Vrf, Prefix: routes[i].Prefix}]; port != "" {
			l.fail(position{int(routes[i].Line), 1}, "routes", "another prefix",
				"the node adds %s in VRF '%s' by itself for the port '%s'", routes[i].Prefix, routes[i].Vrf, port)
		}
		if i == 0 {
			continue
		}
		if CompareRoutes(routes[i-1], routes[i]) == 0 {
			l.fail(position{int(routes[i].Line), 1}, "routes", "each prefix of a VRF once",
				"%s in VRF '%s' is already given in line %d", routes[i].Prefix, routes[i].Vrf, routes[i-1].Line)
		}
	}
}
