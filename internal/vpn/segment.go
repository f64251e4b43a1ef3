// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"net"
	"net/netip"
	"slices"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/limits"
)

// MaxFloodEnds is the largest number of hosts to which a bridge of the data plane floods.
var MaxFloodEnds = limits.Items(&apiv1.Bridge{}, "flood")

// evpnEncaps are the encapsulations of frames between hosts, the preferred one first.
var evpnEncaps = []apiv1.Encap{apiv1.Encap_ENCAP_VXLAN}

// virtualGateway is the address that gateways of all tenant ports have by default.
var virtualGateway = Mac{0, 0, 0x5e, 0, 1, 1}

// segment is a bridge that hosts share.
type segment struct {
	config  *agentv1.Segment
	rd      Target
	err     string
	imports map[Target]bool
	exports []Target
	local   map[Mac]*station    // of ports of this node
	remote  map[subject]*remote // MAC addresses of other hosts, and hosts that want what is flooded
	macs    int                 // number of MAC addresses in remote
	waiting map[subject]bool    // paths with a tunnel for which there is no room or no next hop id
	claims  map[Mac]Mobility    // to learnt addresses
	moves   map[Mac][]time.Time // when a learnt address came from another host

	given  map[Mac]*apiv1.Mac // what Desired or Changes returned last
	bridge *apiv1.Bridge      // likewise

	learnt   int            // number of learnt addresses in local
	learntAt map[string]int // those of each port that has some
}

// remote is a tunnel, and the path for which it was made.
type remote struct {
	nexthop *nexthop
	path    *entry
}

func segmentName(bridge string) string { return "bridge " + bridge } // no name of a VRF has a space

func (e *Engine) setSegments() {
	old := e.segments
	e.segments = map[string]*segment{}
	for _, c := range e.intent.Segments {
		g := &segment{config: c, imports: map[Target]bool{}, local: map[Mac]*station{}, remote: map[subject]*remote{},
			waiting: map[subject]bool{}, claims: map[Mac]Mobility{}, moves: map[Mac][]time.Time{},
			learntAt: map[string]int{}}
		if o := old[c.Bridge]; o != nil {
			g.remote, g.macs, g.claims, g.moves = o.remote, o.macs, o.claims, o.moves
		}
		e.segments[c.Bridge] = g
		number, err := e.journal.number(segmentName(c.Bridge))
		if err != nil {
			g.err = err.Error()
		}
		g.rd = routerTarget(e.self, number)
		if c.Rd != "" {
			g.rd, _ = intent.ParseTarget(c.Rd) // checked
		}
		for _, t := range c.ImportTargets {
			target, _ := intent.ParseTarget(t)
			g.imports[target] = true
		}
		for _, t := range c.ExportTargets {
			target, _ := intent.ParseTarget(t)
			g.exports = append(g.exports, target)
		}
	}
	for name, o := range old {
		if e.segments[name] == nil {
			for _, r := range o.remote {
				e.nexthops.put(r.nexthop)
			}
		}
	}
	e.setStations()
}

func macOf(text string) (m Mac, ok bool) {
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != len(m) {
		return m, false
	}
	return Mac(hw), true
}

// settleSegments decides about this node's own stations, and chooses again for what has waited for room.
func (e *Engine) settleSegments() {
	for _, g := range e.segments {
		for s := range g.waiting {
			if s.kind == KindMac && g.macs >= int(g.config.RemoteLimit) {
				continue
			}
			e.chooseIn(g, s)
		}
		for m, st := range g.local {
			held := st.holds
			if e.move(g, st); st.holds != held {
				e.changes.macs[place{g.config.Bridge, m}] = true
			}
		}
	}
}

// touchSubject notes that a subject of a segment may change.
func (e *Engine) touchSubject(g *segment, s subject) {
	if s.kind == KindMac {
		e.changes.macs[place{g.config.Bridge, s.mac}] = true
	} else {
		e.changes.bridges[g.config.Bridge] = true
	}
}

func (e *Engine) chooseIn(g *segment, s subject) {
	best, _ := e.judgeIn(g, s, false)
	old := g.remote[s]
	if best == nil && old == nil && !g.waiting[s] {
		return
	}
	e.touchSubject(g, s)
	delete(g.waiting, s)
	delete(g.remote, s)
	if old != nil && s.kind == KindMac {
		g.macs--
	}
	if best != nil {
		var next *nexthop
		if s.kind != KindMac || g.macs < int(g.config.RemoteLimit) {
			next = e.nexthops.get([]tunnel{{best.Nexthop, e.encapOf(best), best.Label, Mac{}}}) // nil: no id is left
		}
		if next == nil {
			g.waiting[s] = true
		} else {
			g.remote[s] = &remote{next, best}
			if s.kind == KindMac {
				g.macs++
			}
		}
	}
	if old != nil {
		e.nexthops.put(old.nexthop)
	}
}

// judgeIn returns the path to use for a subject, nil if none can be used, and with all also the verdict on each path
// that the segment imports.
func (e *Engine) judgeIn(g *segment, s subject, all bool) (*entry, []Judged) {
	var usable []*entry
	var judged []Judged
	say := func(x *entry, verdict Verdict, reason string) {
		if all {
			judged = append(judged, Judged{x.Path, x.age() > 0, "", g.config.Bridge, verdict, reason})
		}
	}
	for _, x := range e.bySubject[s] {
		if !g.takes(x) {
			continue
		}
		if verdict, reason := e.refuseIn(x); verdict != "" {
			say(x, verdict, reason)
			continue
		}
		usable = append(usable, x)
	}
	if len(usable) == 0 {
		return nil, judged
	}
	best := slices.MinFunc(usable, (*entry).compareIn)
	for _, x := range usable {
		lost := x.losesInTo(best)
		switch st := g.local[s.mac]; {
		case lost != "":
			say(x, lost, "lost to the path of "+best.Nexthop.String()+" from "+best.Peer.String())
		case s.kind == KindMac && st != nil && st.holds:
			say(x, Local, "port '"+st.port+"' of this node has the address, which moved here later")
		case x.Nexthop != best.Nexthop || x.Label != best.Label:
			say(x, LostAddress, "as good as the path of "+best.Nexthop.String()+", which is the lower address")
		default:
			say(x, Used, "")
		}
	}
	return best, judged
}

func (g *segment) takes(x *entry) bool {
	return slices.ContainsFunc(x.Targets, func(t Target) bool { return g.imports[t] })
}

// losesInTo says by which step a path of a segment loses to another one that can be used too; "": it does not.
func (e *entry) losesInTo(b *entry) Verdict {
	switch {
	case e.age() != b.age():
		return pick(e.age() > b.age(), Stale)
	case e.Sticky != b.Sticky:
		return pick(b.Sticky, LostSticky)
	case e.Sequence != b.Sequence:
		return pick(e.Sequence < b.Sequence, LostSequence)
	case e.LocalPref != b.LocalPref:
		return pick(e.LocalPref < b.LocalPref, LostPref)
	}
	return ""
}

func (e *entry) compareIn(b *entry) int {
	switch {
	case e.losesInTo(b) != "":
		return 1
	case b.losesInTo(e) != "":
		return -1
	}
	return e.order(&b.Path)
}

// refuseIn says why a path cannot be used in any segment.
func (e *Engine) refuseIn(x *entry) (Verdict, string) {
	switch {
	case x.Originator == e.self || x.Nexthop == e.tunnel:
		return Own, "this node announced it"
	case noHost(x.Nexthop):
		return BadNexthop, "no host can have the address " + x.Nexthop.String()
	case x.Tag != 0:
		return BadTag, "the bridge has one broadcast domain"
	case x.Label < 1 || x.Label > 1<<24-1:
		return BadVni, "it has no VNI; a path of type 3 needs one with ingress replication"
	case x.Kind == KindMac && noGuest(x.Mac):
		return BadMac, "no guest can have the address " + x.Mac.String()
	case e.encapOf(x) == apiv1.Encap_ENCAP_UNSPECIFIED:
		return NoEncap, "it does not offer VXLAN; 'default_encap' of the peer is for paths that name no encapsulation"
	case !e.reachable(x.Nexthop):
		return Unreachable, "VRF 'fabric' has no route to " + x.Nexthop.String() + " besides a default route"
	}
	return "", ""
}

// noGuest tells whether an address cannot be a guest's.
func noGuest(m Mac) bool { return m == Mac{} || m[0]&1 != 0 || m == virtualGateway }

// announceSegments adds the paths of this node's segments.
func (e *Engine) announceSegments(list []Path) []Path {
	for _, c := range e.intent.Segments {
		g := e.segments[c.Bridge]
		if g == nil || g.err != "" || len(g.exports) == 0 {
			continue
		}
		attrs := &Attrs{Targets: g.exports, Encaps: evpnEncaps, LocalPref: 100, Originator: e.self}
		list = append(list, Path{Key: Key{RD: g.rd, Kind: KindFlood, Prefix: hostPrefix(e.tunnel)}, Nexthop: e.tunnel,
			Label: c.Vni, Attrs: attrs})
		for _, st := range g.local {
			if !st.holds {
				continue
			}
			moved := *attrs
			moved.Sequence, moved.Sticky = st.sequence, st.sticky()
			p := Path{Key: Key{RD: g.rd, Kind: KindMac, Mac: st.mac}, Nexthop: e.tunnel, Label: c.Vni, Attrs: &moved}
			list = append(list, p)
			for _, a := range st.addresses() {
				p.Prefix = a
				list = append(list, p)
			}
		}
	}
	return list
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// bridgeOf returns the bridge that the data plane should have.
func (e *Engine) bridgeOf(g *segment) *apiv1.Bridge {
	return &apiv1.Bridge{Name: g.config.Bridge, UnknownUnicast: g.config.UnknownUnicast,
		NeighborSuppression: g.config.NeighborSuppression, Flood: e.floodEnds(g)}
}

// macAt returns what the data plane should have of a MAC address; nil: nothing, or what it has learnt.
func (e *Engine) macAt(g *segment, m Mac) *apiv1.Mac {
	s := subject{kind: KindMac, mac: m}
	st, r := g.local[m], g.remote[s]
	switch {
	case r != nil && (st == nil || !st.holds):
		return &apiv1.Mac{Bridge: g.config.Bridge, Mac: m.String(), Target: &apiv1.Mac_Nexthop{Nexthop: r.nexthop.id},
			Addresses: e.addressesOf(g, s, r)}
	case st != nil && st.attachment != nil:
		return &apiv1.Mac{Bridge: g.config.Bridge, Mac: m.String(), Target: &apiv1.Mac_Port{Port: st.port},
			Addresses: g.suppressed(st.addresses())}
	case e.held == nil:
		return nil
	}
	if old := e.held.macs[place{g.config.Bridge, m}]; old != nil && e.nexthops.heldTunnel(old.GetNexthop()) {
		return old
	}
	return nil
}

// maxAddresses is the largest number of IP addresses of a MAC address of the data plane.
var maxAddresses = limits.Items(&apiv1.Mac{}, "addresses")

// suppressed lists the IP addresses of a MAC address for which the data plane answers.
func (g *segment) suppressed(prefixes []netip.Prefix) []string {
	if !g.config.NeighborSuppression {
		return nil
	}
	slices.SortFunc(prefixes, comparePrefixes)
	prefixes = slices.Compact(prefixes)
	var list []string
	for _, p := range prefixes[:min(len(prefixes), maxAddresses)] {
		list = append(list, p.Addr().String())
	}
	return list
}

// addressesOf lists the IP addresses that the host of a MAC address announces together with it.
func (e *Engine) addressesOf(g *segment, s subject, r *remote) []string {
	if !g.config.NeighborSuppression {
		return nil
	}
	var prefixes []netip.Prefix
	for _, x := range e.bySubject[s] {
		if x.Prefix.IsValid() && x.Nexthop == r.path.Nexthop && x.Label == r.path.Label && x.losesInTo(r.path) == "" &&
			g.takes(x) {
			prefixes = append(prefixes, x.Prefix)
		}
	}
	return g.suppressed(prefixes)
}

// floodEnds lists the next hops of the hosts to which frames are flooded.
func (e *Engine) floodEnds(g *segment) []uint32 {
	var ids []uint32
	for t, r := range g.remote {
		if t.kind == KindFlood {
			ids = append(ids, r.nexthop.id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	ids = ids[:min(len(ids), MaxFloodEnds)]
	if e.held == nil {
		return ids
	}
	for _, id := range e.held.floods[g.config.Bridge] {
		if e.nexthops.heldTunnel(id) && len(ids) < MaxFloodEnds && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
