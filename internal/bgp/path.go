// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/vpn"
)

// Bounds on what a peer may say. A path beyond them is counted as a fault and not used.
const (
	maxTargets = 256
	maxEncaps  = 16
)

// Tunnel types of RFC 9012, and the private ones that Contrail used before it had a number of its own.
var tunnels = map[bgp.TunnelType]apiv1.Encap{
	bgp.TUNNEL_TYPE_MPLS_IN_UDP: apiv1.Encap_ENCAP_MPLSOUDP,
	37001:                       apiv1.Encap_ENCAP_MPLSOUDP,
	bgp.TUNNEL_TYPE_MPLS_IN_GRE: apiv1.Encap_ENCAP_MPLSOGRE,
	bgp.TUNNEL_TYPE_GRE:         apiv1.Encap_ENCAP_MPLSOGRE,
	bgp.TUNNEL_TYPE_VXLAN:       apiv1.Encap_ENCAP_VXLAN,
	37002:                       apiv1.Encap_ENCAP_VXLAN,
}

var tunnelTypes = map[apiv1.Encap]bgp.TunnelType{
	apiv1.Encap_ENCAP_MPLSOUDP: bgp.TUNNEL_TYPE_MPLS_IN_UDP,
	apiv1.Encap_ENCAP_MPLSOGRE: bgp.TUNNEL_TYPE_MPLS_IN_GRE,
	apiv1.Encap_ENCAP_VXLAN:    bgp.TUNNEL_TYPE_VXLAN,
}

// known are the attributes of the path before, which the next one of the same message shares.
type known struct {
	of    *bgp.PathAttributeExtendedCommunities
	attrs *vpn.Attrs
}

// decode adds a path to the event of its peer.
func decode(p *apiutil.Path, last *known, e *Event) {
	key, used, ok := keyOf(p)
	if !used {
		return
	}
	if !ok {
		e.Faults++
		return
	}
	if p.Withdrawal {
		e.Withdrawn = append(e.Withdrawn, key)
		return
	}
	path := vpn.Path{Key: key}
	var communities *bgp.PathAttributeExtendedCommunities
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeMpReachNLRI:
			path.Nexthop = a.Nexthop.Unmap()
		case *bgp.PathAttributeNextHop:
			path.Nexthop = a.Value.Unmap()
		case *bgp.PathAttributeExtendedCommunities:
			communities = a
		}
	}
	if !path.Nexthop.IsValid() || !fill(p, &path) {
		e.Faults++
		return
	}
	if communities == nil || communities != last.of {
		*last = known{communities, attrsOf(p, key.Kind)}
	}
	path.Attrs = last.attrs
	if path.Attrs == nil {
		e.Faults++
		return
	}
	e.Updates = append(e.Updates, path)
}

// keyOf returns the key of a path. of is false for what is of no use here, and ok for what cannot be read.
func keyOf(p *apiutil.Path) (key vpn.Key, of, ok bool) {
	switch nlri := p.Nlri.(type) {
	case *bgp.EVPNNLRI:
		return evpnKey(nlri, p)
	case *bgp.LabeledVPNIPAddrPrefix:
		rd, ok := rdOf(nlri.RD)
		return vpn.Key{Peer: p.PeerAddress, RD: rd, Prefix: nlri.Prefix.Masked(), ID: p.RemoteID}, true,
			ok && nlri.Prefix.IsValid() && !nlri.Prefix.Addr().Is4In6()
	}
	return key, false, false
}

// rdOf reads a route distinguisher. Serialize would do the same for all forms, and allocate.
func rdOf(rd bgp.RouteDistinguisherInterface) (t vpn.Target, ok bool) {
	switch rd := rd.(type) {
	case *bgp.RouteDistinguisherTwoOctetAS:
		binary.BigEndian.PutUint16(t.Value[:], rd.Admin)
		binary.BigEndian.PutUint32(t.Value[2:], rd.Assigned)
		return t, true
	case *bgp.RouteDistinguisherIPAddressAS:
		return addressTarget(rd.Admin, rd.Assigned), rd.Admin.Is4()
	case *bgp.RouteDistinguisherFourOctetAS:
		t.Form = 2
		binary.BigEndian.PutUint32(t.Value[:], rd.Admin)
		binary.BigEndian.PutUint16(t.Value[4:], rd.Assigned)
		return t, true
	}
	return t, false
}

func addressTarget(a netip.Addr, number uint16) vpn.Target {
	t := vpn.Target{Form: 1}
	if a.Is4() {
		v := a.As4()
		copy(t.Value[:], v[:])
	}
	binary.BigEndian.PutUint16(t.Value[4:], number)
	return t
}

func routeDistinguisher(t vpn.Target) bgp.RouteDistinguisherInterface {
	return bgp.GetRouteDistinguisher(append([]byte{0, t.Form}, t.Value[:]...))
}

// fill adds to a path what its route says besides the key.
func fill(p *apiutil.Path, path *vpn.Path) bool {
	switch nlri := p.Nlri.(type) {
	case *bgp.EVPNNLRI:
		return evpnPath(nlri, p.Attrs, path)
	case *bgp.LabeledVPNIPAddrPrefix:
		if len(nlri.Labels.Labels) != 1 { // a stack of labels is nothing that a tunnel of ours can send
			return false
		}
		path.Label = nlri.Labels.Labels[0]
	}
	return true
}

// roomyAttrs has room for the usual number of targets and encapsulations, so that a path needs one allocation.
type roomyAttrs struct {
	vpn.Attrs
	targets [2]vpn.Target
	encaps  [2]apiv1.Encap
}

func attrsOf(p *apiutil.Path, kind vpn.Kind) *vpn.Attrs {
	room := &roomyAttrs{Attrs: vpn.Attrs{LocalPref: 100, Originator: p.PeerID}}
	out := &room.Attrs
	out.Targets, out.Encaps = room.targets[:0], room.encaps[:0]
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeLocalPref:
			out.LocalPref = a.Value
		case *bgp.PathAttributeMultiExitDisc:
			out.MED = a.Value
		case *bgp.PathAttributeOriginatorId:
			out.Originator = a.Value
		case *bgp.PathAttributeAsPath:
			for _, segment := range a.Value {
				out.ASPath += segment.ASLen()
			}
		case *bgp.PathAttributeCommunities:
			out.LongStale = slices.Contains(a.Value, uint32(bgp.COMMUNITY_LLGR_STALE))
		case *bgp.PathAttributeExtendedCommunities:
			for _, c := range a.Value {
				if !community(c, kind, out) {
					return nil
				}
			}
		}
	}
	if len(out.Targets) == 0 {
		out.Targets = nil
	}
	if len(out.Encaps) == 0 {
		out.Encaps = nil
	}
	return out
}

// community adds what an extended community says. VXLAN means nothing for VPNv4, though FRR leaks it there from EVPN,
// and MPLS is no encapsulation of the EVPN here.
func community(c bgp.ExtendedCommunityInterface, kind vpn.Kind, out *vpn.Attrs) bool {
	switch c := c.(type) {
	case *bgp.EncapExtended:
		e := tunnels[c.TunnelType]
		fits := e != 0 && (e == apiv1.Encap_ENCAP_VXLAN) == (kind != vpn.KindIP)
		if fits && len(out.Encaps) < maxEncaps {
			out.Encaps = append(out.Encaps, e)
		}
		return true
	case *bgp.MacMobilityExtended:
		out.Sequence, out.Sticky = c.Sequence, c.IsSticky
		return true
	case *bgp.RouterMacExtended:
		copy(out.RouterMac[:], c.Mac)
		return true
	}
	t, ok := targetOf(c)
	if !ok {
		return true
	}
	if len(out.Targets) == maxTargets {
		return false
	}
	out.Targets = append(out.Targets, t)
	return true
}

// targetOf reads a route target. ok is false for other communities. The usual form is read without an allocation.
func targetOf(c bgp.ExtendedCommunityInterface) (t vpn.Target, ok bool) {
	if c, two := c.(*bgp.TwoOctetAsSpecificExtended); two {
		binary.BigEndian.PutUint16(t.Value[:], c.AS)
		binary.BigEndian.PutUint32(t.Value[2:], c.LocalAdmin)
		return t, c.SubType == bgp.EC_SUBTYPE_ROUTE_TARGET
	}
	raw, err := c.Serialize()
	if err != nil || len(raw) != 8 { // of a kind that GoBGP does not know
		return t, false
	}
	form := raw[0] & 0x3f
	return vpn.Target{Form: form, Value: [6]byte(raw[2:])}, raw[1] == byte(bgp.EC_SUBTYPE_ROUTE_TARGET) && form <= 2
}

func encode(p vpn.Path) (*apiutil.Path, error) {
	family, nlri, extra, err := route(p)
	if err != nil {
		return nil, err
	}
	nexthop := p.Nexthop
	if family == bgp.RF_IPv6_VPN && nexthop.Is4() { // RFC 4659, section 3.2.1.2
		nexthop = netip.AddrFrom16(nexthop.As16())
	}
	reach, err := bgp.NewPathAttributeMpReachNLRI(family, []bgp.PathNLRI{{NLRI: nlri}}, nexthop)
	if err != nil {
		return nil, err
	}
	var communities []bgp.ExtendedCommunityInterface
	for _, t := range p.Targets {
		communities = append(communities, target(t))
	}
	for _, e := range p.Encaps {
		communities = append(communities, bgp.NewEncapExtended(tunnelTypes[e]))
	}
	if p.Sequence > 0 || p.Sticky {
		communities = append(communities, bgp.NewMacMobilityExtended(p.Sequence, p.Sticky))
	}
	if p.RouterMac != (vpn.Mac{}) {
		communities = append(communities, &bgp.RouterMacExtended{Mac: p.RouterMac[:]})
	}
	return &apiutil.Path{Family: family, Nlri: nlri, Attrs: append([]bgp.PathAttributeInterface{
		bgp.NewPathAttributeOrigin(0), reach, bgp.NewPathAttributeLocalPref(p.LocalPref),
		bgp.NewPathAttributeExtendedCommunities(communities)}, extra...)}, nil
}

// route returns the family and the route of a path, and attributes that only such a route has.
func route(p vpn.Path) (bgp.Family, bgp.NLRI, []bgp.PathAttributeInterface, error) {
	if p.Kind != vpn.KindIP {
		nlri, extra, err := encodeEVPN(p)
		return bgp.RF_EVPN, nlri, extra, err
	}
	family := bgp.RF_IPv4_VPN
	if p.Prefix.Addr().Is6() {
		family = bgp.RF_IPv6_VPN
	}
	nlri, err := bgp.NewLabeledVPNIPAddrPrefix(p.Prefix, *bgp.NewMPLSLabelStack(p.Label), routeDistinguisher(p.RD))
	return family, nlri, nil, err
}

func target(t vpn.Target) bgp.ExtendedCommunityInterface {
	v := t.Value[:]
	const subtype = bgp.EC_SUBTYPE_ROUTE_TARGET
	switch t.Form {
	case 0:
		return bgp.NewTwoOctetAsSpecificExtended(subtype, binary.BigEndian.Uint16(v), binary.BigEndian.Uint32(v[2:]),
			true)
	case 1:
		c, _ := bgp.NewIPv4AddressSpecificExtended(subtype, netip.AddrFrom4([4]byte(v)),
			binary.BigEndian.Uint16(v[4:]), true)
		return c
	}
	return bgp.NewFourOctetAsSpecificExtended(subtype, binary.BigEndian.Uint32(v), binary.BigEndian.Uint16(v[4:]),
		true)
}
