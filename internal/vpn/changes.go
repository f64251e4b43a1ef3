// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/state"
)

// changes is what may differ from the objects that Desired or Changes returned last. nexthops lists the next hops among
// them.
type changes struct {
	few     *state.State        // VRFs, VNIs, labels and ports as they were returned
	all     *state.State        // all objects as they were returned, if anything may differ
	routes  map[routeKey]uint32 // and the next hop that was returned; 0: none
	macs    map[place]bool
	bridges map[string]bool
}

type routeKey struct {
	vrf    string
	prefix netip.Prefix
}

func newChanges(few *state.State) changes {
	return changes{few: few, routes: map[routeKey]uint32{}, macs: map[place]bool{}, bridges: map[string]bool{}}
}

func (c *changes) noted(key routeKey) bool {
	_, noted := c.routes[key]
	return noted
}

// allChanges notes that anything is about to change.
func (e *Engine) allChanges() {
	if e.changes.all != nil {
		return
	}
	few := e.changes.few
	s := &state.State{Vrfs: few.Vrfs, Vnis: few.Vnis, Labels: few.Labels, Ports: few.Ports}
	for _, v := range e.vrfs {
		for p, n := range v.routes {
			if key := (routeKey{v.name, p}); !e.changes.noted(key) {
				s.Routes = append(s.Routes, key.to(n.id))
			}
		}
	}
	if e.held != nil {
		for key := range e.held.routes {
			if v := e.vrfs[key.vrf]; v != nil && v.routes[key.prefix] == nil && !e.changes.noted(key) {
				s.Routes = appendRoute(s.Routes, key, e.routeAt(v, key.prefix))
			}
		}
	}
	for key, before := range e.changes.routes {
		s.Routes = appendRoute(s.Routes, key, before)
	}
	for _, g := range e.segments {
		if g.bridge != nil {
			s.Bridges = append(s.Bridges, g.bridge)
		}
		s.Macs = slices.AppendSeq(s.Macs, maps.Values(g.given))
	}
	e.nexthops.before(s)
	finish(s)
	e.changes.all = s
}

// before adds the next hops that were returned last.
func (n *nexthops) before(s *state.State) {
	for id, h := range n.byID {
		if _, noted := n.touched[id]; !noted {
			s.Nexthops = append(s.Nexthops, h.message())
		}
	}
	for id, h := range n.held {
		if _, noted := n.touched[id]; !noted && n.byID[id] == nil {
			s.Nexthops = append(s.Nexthops, h)
		}
	}
	for _, h := range n.touched {
		if h != nil {
			s.Nexthops = append(s.Nexthops, h)
		}
	}
}

func (k routeKey) to(id uint32) state.Route {
	return state.Route{Vrf: k.vrf, Prefix: k.prefix, Nexthop: id}
}

func appendRoute(list []state.Route, k routeKey, id uint32) []state.Route {
	if id == 0 {
		return list
	}
	return append(list, k.to(id))
}

// Changes returns the objects that may have changed since the last call of Desired or Changes: as they should be, and
// as they were returned. Objects that are in neither refer to none of those that are deleted or replaced. If the intent
// has changed, all objects are in both.
func (e *Engine) Changes() (want, was *state.State) {
	if was = e.changes.all; was != nil {
		return e.Desired(), was
	}
	e.settle()
	want, was = &state.State{Routes: make([]state.Route, 0, len(e.changes.routes))}, &state.State{}
	for key, before := range e.changes.routes {
		want.Routes = appendRoute(want.Routes, key, e.routeAt(e.vrfs[key.vrf], key.prefix))
		was.Routes = appendRoute(was.Routes, key, before)
	}
	for id, before := range e.nexthops.touched {
		if n := e.nexthops.at(id); n != nil {
			want.Nexthops = append(want.Nexthops, n)
		}
		if before != nil {
			was.Nexthops = append(was.Nexthops, before)
		}
	}
	for p := range e.changes.macs {
		g := e.segments[p.bridge]
		if m := g.given[p.mac]; m != nil {
			was.Macs = append(was.Macs, m)
		}
		delete(g.given, p.mac)
		e.giveMac(g, p.mac, want)
	}
	for bridge := range e.changes.bridges {
		g := e.segments[bridge]
		was.Bridges = append(was.Bridges, g.bridge)
		e.giveBridge(g, want)
	}
	e.changes = newChanges(e.changes.few)
	clear(e.nexthops.touched)
	finish(want)
	finish(was)
	return want, was
}

// giveMac adds a MAC address to what is returned, unless it is there.
func (e *Engine) giveMac(g *segment, m Mac, s *state.State) {
	if m == (Mac{}) || g.given[m] != nil {
		return
	}
	if x := e.macAt(g, m); x != nil {
		g.given[m] = x
		s.Macs = append(s.Macs, x)
	}
}

func (e *Engine) giveBridge(g *segment, s *state.State) {
	g.bridge = e.bridgeOf(g)
	s.Bridges = append(s.Bridges, g.bridge)
}

// routeAt returns the next hop that a prefix of a VRF should have; 0: none.
func (e *Engine) routeAt(v *vrf, p netip.Prefix) uint32 {
	return e.routeOf(v, p, v.routes[p])
}

// routeOf is routeAt for a prefix whose choice is known.
func (e *Engine) routeOf(v *vrf, p netip.Prefix, n *nexthop) uint32 {
	switch {
	case n != nil:
		return n.id
	case e.held != nil && !v.local[p]:
		return e.held.routes[routeKey{v.name, p}]
	}
	return 0
}

// held is what the data plane had when the agent started: it is kept until peers have sent their paths. Its next hops
// are those of Engine.nexthops.
type held struct {
	since  time.Time
	routes map[routeKey]uint32
	floods map[string][]uint32 // of bridges
	macs   map[place]*apiv1.Mac
}

func newHeld(have *state.State, now time.Time) *held {
	h := &held{since: now, routes: map[routeKey]uint32{}, floods: map[string][]uint32{}, macs: map[place]*apiv1.Mac{}}
	for _, r := range have.Routes {
		h.routes[routeKey{r.Vrf, r.Prefix}] = r.Nexthop
	}
	for _, b := range have.Bridges {
		h.floods[b.Name] = b.Flood
	}
	for _, m := range have.Macs {
		if address, ok := macOf(m.Mac); ok {
			h.macs[place{m.Bridge, address}] = m
		}
	}
	return h
}

// addHeld adds the held objects to which nothing newer is known, and all held next hops.
func (e *Engine) addHeld(s *state.State) {
	if e.held == nil {
		return
	}
	for key := range e.held.routes {
		if v := e.vrfs[key.vrf]; v != nil && v.routes[key.prefix] == nil {
			s.Routes = appendRoute(s.Routes, key, e.routeAt(v, key.prefix))
		}
	}
	for p := range e.held.macs {
		if g := e.segments[p.bridge]; g != nil {
			e.giveMac(g, p.mac, s)
		}
	}
	for id, n := range e.nexthops.held {
		if e.nexthops.byID[id] == nil {
			s.Nexthops = append(s.Nexthops, n)
		}
	}
}
