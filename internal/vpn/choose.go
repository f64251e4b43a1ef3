// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"maps"
	"net/netip"
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Judged is a received path, and what became of it in a VRF.
type Judged struct {
	Path    Path
	Stale   bool
	Vrf     string // of the instance that imports it; empty: none does
	Bridge  string // of the segment that imports it; empty: none does
	Verdict Verdict
	Reason  string
}

// mostKept is the largest size of a map that is kept for the next time.
const mostKept = 1000

// settle chooses again for each prefix of which something has changed.
func (e *Engine) settle() {
	for s := range e.dirty {
		if s.kind != KindIP {
			for _, g := range e.segments {
				e.chooseIn(g, s)
			}
			continue
		}
		for _, v := range e.vrfs {
			e.choose(v, s.prefix)
		}
	}
	if len(e.dirty) > mostKept { // a map keeps its size, and each later clear takes as long as this one
		e.dirty = map[subject]bool{}
	} else {
		clear(e.dirty)
	}
	e.settleSegments()
	for _, v := range e.vrfs { // others have made room
		for p := range v.waiting {
			if len(v.routes) >= int(v.instance.RouteLimit) {
				break
			}
			e.choose(v, p)
		}
	}
}

func (e *Engine) choose(v *vrf, p netip.Prefix) {
	tunnels := e.tunnelsTo(v, p)
	old := v.routes[p]
	before := e.routeOf(v, p, old)
	var next *nexthop
	if len(tunnels) > 0 && (old != nil || len(v.routes) < int(v.instance.RouteLimit)) {
		next = e.nexthops.get(tunnels) // nil: no id is left
	}
	if next == nil && len(tunnels) > 0 {
		v.waiting[p] = true
	} else if len(v.waiting) > 0 {
		delete(v.waiting, p)
	}
	if next == nil {
		delete(v.routes, p)
	} else if next != old {
		v.routes[p] = next
	}
	if before != e.routeOf(v, p, next) {
		if key := (routeKey{v.name, p}); !e.changes.noted(key) {
			e.changes.routes[key] = before
		}
	}
	if old != nil {
		e.nexthops.put(old)
	}
}

// tunnelsTo returns the tunnels that share the traffic of a prefix, none if nothing can be used. They are valid until
// the next call.
func (e *Engine) tunnelsTo(v *vrf, p netip.Prefix) []tunnel {
	e.usable, e.tunnels = e.usable[:0], e.tunnels[:0]
	for _, x := range e.bySubject[prefixSubject(p)] {
		if v.takes(x) {
			if verdict, _ := e.refuse(v, x); verdict == "" {
				e.usable = append(e.usable, x)
			}
		}
	}
	if len(e.usable) > 1 {
		slices.SortFunc(e.usable, (*entry).compare)
	}
	for _, x := range e.usable {
		if len(e.tunnels) == MaxGroup || x.losesTo(e.usable[0]) != "" {
			break // so do those that follow
		}
		if t := e.tunnelOf(x); !slices.Contains(e.tunnels, t) {
			e.tunnels = append(e.tunnels, t)
		}
	}
	return e.tunnels
}

func (v *vrf) takes(x *entry) bool {
	for _, t := range x.Targets {
		if v.imports[t] {
			return true
		}
	}
	return false
}

func (e *Engine) tunnelOf(x *entry) tunnel {
	return tunnel{x.Nexthop, e.encapOf(x), x.Label, x.RouterMac}
}

// judge returns the verdict on each path to a prefix that the VRF imports, as tunnelsTo chooses.
func (e *Engine) judge(v *vrf, p netip.Prefix) (judged []Judged) {
	var usable []*entry
	say := func(x *entry, verdict Verdict, reason string) {
		judged = append(judged, Judged{x.Path, x.age() > 0, v.name, "", verdict, reason})
	}
	for _, x := range e.bySubject[prefixSubject(p)] {
		if !v.takes(x) {
			continue
		}
		if verdict, reason := e.refuse(v, x); verdict != "" {
			say(x, verdict, reason)
			continue
		}
		usable = append(usable, x)
	}
	slices.SortFunc(usable, (*entry).compare)
	var tunnels []tunnel
	for _, x := range usable {
		t := e.tunnelOf(x)
		switch lost := x.losesTo(usable[0]); {
		case lost != "":
			say(x, lost, "lost to the path of "+usable[0].Nexthop.String()+" from "+usable[0].Peer.String())
		case slices.Contains(tunnels, t):
			say(x, Duplicate, "")
		case len(tunnels) == MaxGroup:
			say(x, TooManyPaths, "")
		default:
			tunnels = append(tunnels, t)
			say(x, Used, "")
		}
	}
	return judged
}

// refuse says why a path cannot be used at all.
func (e *Engine) refuse(v *vrf, x *entry) (Verdict, string) {
	switch {
	case x.Originator == e.self || x.Nexthop == e.tunnel:
		return Own, "this node announced it"
	case v.local[x.Prefix]:
		return Local, "a port of this node has the prefix"
	case noHost(x.Nexthop):
		return BadNexthop, "no host can have the address " + x.Nexthop.String()
	case x.Kind == KindPrefix || v.evpn():
		if verdict, reason := v.refusePrefix(x); verdict != "" {
			return verdict, reason
		}
	case x.Label < 16 || x.Label > 1<<20-1:
		return BadLabel, "the label is reserved (RFC 3032)"
	}
	switch {
	case e.encapOf(x) == apiv1.Encap_ENCAP_UNSPECIFIED:
		return NoEncap, "it offers no encapsulation that this node uses; 'default_encap' of the peer is for " +
			"paths that name none"
	case !e.reachable(x.Nexthop):
		return Unreachable, "VRF 'fabric' has no route to " + x.Nexthop.String() + " besides a default route"
	}
	return "", ""
}

// refusePrefix says why a path is no prefix of EVPN that the VRF can use.
func (v *vrf) refusePrefix(x *entry) (Verdict, string) {
	switch {
	case x.Kind != KindPrefix:
		return OtherKind, "it has a label; the instance has a vni, so that it takes prefixes of EVPN"
	case !v.evpn():
		return OtherKind, "it is a prefix of EVPN; the instance has no vni, so that it takes paths with a label"
	case x.Overlay || x.ESI != [10]byte{}:
		return Overlay, "it leads to a gateway or an Ethernet segment (RFC 9136, section 3.2), not to the router itself"
	case x.Tag != 0:
		return BadTag, "a VRF has no broadcast domains"
	case x.Label < 1 || x.Label > 1<<24-1:
		return BadVni, "it has no VNI"
	case x.RouterMac == Mac{} || x.RouterMac[0]&1 != 0:
		return BadRouterMac, "it names no MAC address of the router (RFC 9135, section 8.1)"
	}
	return "", ""
}

// evpn tells whether the VRF takes and announces prefixes of EVPN rather than paths with labels.
func (v *vrf) evpn() bool { return v.instance.Vni > 0 }

func noHost(a netip.Addr) bool {
	return !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback()
}

// encapOf is this node's preferred encapsulation among those of the path.
func (e *Engine) encapOf(x *entry) apiv1.Encap {
	usable := e.intent.Bgp.GetEncaps()
	if x.Kind != KindIP {
		usable = evpnEncaps
	}
	for _, encap := range usable {
		if slices.Contains(x.Encaps, encap) {
			return encap
		}
	}
	if len(x.Encaps) == 0 {
		for _, p := range e.intent.Peers {
			if p.Address == x.Peer.String() && (x.Kind == KindIP) == (p.DefaultEncap != apiv1.Encap_ENCAP_VXLAN) {
				return p.DefaultEncap
			}
		}
	}
	return apiv1.Encap_ENCAP_UNSPECIFIED
}

// occupied lists the prefixes that the data plane gives to a port by itself: guests, gateways and their networks.
func occupied(p *apiv1.Port) []netip.Prefix {
	list := guests(p)
	for _, text := range p.Gateways {
		if g, err := netip.ParsePrefix(text); err == nil {
			list = append(list, g.Masked(), netip.PrefixFrom(g.Addr(), g.Addr().BitLen()))
		}
	}
	return list
}

// HasGuest tells whether a prefix is one of a port's guest addresses.
func HasGuest(p *apiv1.Port, prefix netip.Prefix) bool { return slices.Contains(guests(p), prefix) }

// guests lists the addresses behind a port.
func guests(p *apiv1.Port) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range p.GuestAddresses {
		if a, err := netip.ParseAddr(text); err == nil {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		} else if g, err := netip.ParsePrefix(text); err == nil {
			list = append(list, g)
		}
	}
	return list
}

// attrsOf returns what the announced paths of a VRF have in common.
func (e *Engine) attrsOf(v *vrf) *Attrs {
	a := &Attrs{Targets: v.exports, Encaps: e.intent.Bgp.Encaps, LocalPref: 100, Originator: e.self}
	if v.evpn() {
		a.Encaps, a.RouterMac = evpnEncaps, e.router
	}
	return a
}

// Imports lists the route targets whose paths are of use to this node.
func (e *Engine) Imports() []Target {
	set := map[Target]bool{}
	for t := range e.importers {
		set[t] = true
	}
	for _, g := range e.segments {
		for t := range g.imports {
			set[t] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), compareTargets)
}

// Announcements lists the paths of this node, in an order that does not change.
func (e *Engine) Announcements() []Path {
	if e.intent.Bgp == nil {
		return nil
	}
	var list []Path
	seen := map[Key]bool{}
	attrs := map[*vrf]*Attrs{}
	for _, a := range e.intent.Attachments {
		v := e.vrfs[a.Port.Vrf]
		if !e.announces(a) {
			continue
		}
		if attrs[v] == nil {
			attrs[v] = e.attrsOf(v)
		}
		for _, g := range guests(a.Port) {
			p := Path{Key: Key{RD: v.rd, Prefix: g}, Nexthop: e.tunnel, Label: v.label, Attrs: attrs[v]}
			if v.evpn() {
				p.Kind, p.Label = KindPrefix, v.instance.Vni
			}
			if !seen[p.Key] {
				seen[p.Key] = true
				list = append(list, p)
			}
		}
	}
	list = e.announceSegments(list)
	slices.SortFunc(list, func(a, b Path) int { return a.Key.compare(b.Key) })
	return list
}
