// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/corelane/corelane/internal/vpn"
)

// FuzzUpdate reads arbitrary bytes as an UPDATE message of a peer. Whatever GoBGP hands on becomes paths within bounds,
// and such a path that is announced and received again is the same.
func FuzzUpdate(f *testing.F) {
	many := sample("10.0.0.0/8")
	many.Targets = slices.Repeat(many.Targets[:1], maxTargets+1)
	for _, p := range append(evpnSamples(), sample("10.1.2.3/32"), sample("2001:db8::/32"), sample("0.0.0.0/0"), many) {
		out, err := encode(p)
		if err != nil {
			f.Fatal(err)
		}
		gone, err := bgp.NewPathAttributeMpUnreachNLRI(out.Family, []bgp.PathNLRI{{NLRI: out.Nlri}})
		if err != nil {
			f.Fatal(err)
		}
		addUpdate(f, out.Attrs...)
		addUpdate(f, gone)
		addUpdate(f, append(out.Attrs, others(f)...)...)
	}
	for _, list := range []struct {
		family bgp.Family
		nlri   bgp.NLRI
	}{{bgp.RF_IPv4_UC, must(f)(bgp.NewIPAddrPrefix(netip.MustParsePrefix("10.0.0.0/8")))},
		{bgp.RF_EVPN, bgp.NewEVPNEthernetAutoDiscoveryRoute(odd,
			bgp.EthernetSegmentIdentifier{Value: make([]byte, 9)}, 1, 2)},
		{bgp.RF_IPv4_VPN, must(f)(bgp.NewLabeledVPNIPAddrPrefix(netip.MustParsePrefix("10.0.0.0/8"),
			*bgp.NewMPLSLabelStack(100), odd))},
		{bgp.RF_IPv4_VPN, must(f)(bgp.NewLabeledVPNIPAddrPrefix(netip.MustParsePrefix("10.0.0.0/8"),
			*bgp.NewMPLSLabelStack(100, 101), routeDistinguisher(vpn.Target{})))},
		{bgp.RF_IPv6_VPN, must(f)(bgp.NewLabeledVPNIPAddrPrefix(netip.MustParsePrefix("::ffff:10.0.0.1/128"),
			*bgp.NewMPLSLabelStack(100), routeDistinguisher(vpn.Target{})))}} {
		reach, err := bgp.NewPathAttributeMpReachNLRI(list.family, []bgp.PathNLRI{{NLRI: list.nlri}}, peer)
		if err != nil {
			f.Fatal(err)
		}
		addUpdate(f, append(others(f), reach)...)
	}
	f.Fuzz(checkBytes)
}

// FuzzPath hands on what GoBGP's types can hold, also what its parser makes of no bytes today: a route without a route
// distinguisher, an address, a MAC address or labels, or with ones of other lengths.
func FuzzPath(f *testing.F) {
	rd, v4 := []byte{0, 1, 192, 0, 2, 1, 0, 7}, []byte{10, 0, 0, 1}
	mac, esi := []byte{2, 0, 0, 0, 0, 9}, make([]byte, 9)
	v6, mapped := netip.MustParseAddr("2001:db8::1").AsSlice(), netip.MustParseAddr("::ffff:10.0.0.1").AsSlice()
	target := []byte{0, 2, 0xfd, 0xe8, 0, 0, 0, 100}
	for kind := range byte(5) {
		f.Add(kind, rd, v4, byte(32), mac, esi, byte(1), target)
		f.Add(kind, rd, v6, byte(64), mac, esi, byte(1), append(target, 3, 0x0c, 0, 0, 0, 0, 0, 8))
		f.Add(kind, rd, mapped, byte(128), mac, esi, byte(1), target)
		f.Add(kind, []byte{}, v4, byte(24), mac, esi, byte(1), target)          // no route distinguisher
		f.Add(kind, []byte{0, 9, 1}, v4, byte(24), mac, esi, byte(1), target)   // an odd one
		f.Add(kind, rd, []byte{}, byte(0), mac[:3], esi[:3], byte(0), []byte{}) // nothing is whole
		f.Add(kind, rd, v4, byte(33), mac, append(esi, 1), byte(2), target[:5]) // too much, and half a community
	}
	f.Fuzz(checkFields)
}

func checkFields(t *testing.T, kind byte, rd, address []byte, bits byte, mac, esi []byte, labels byte, more []byte) {
	nlri := nlriOf(kind, rdFields(rd), address, bits, mac, esi, labels)
	communities := &bgp.PathAttributeExtendedCommunities{}
	for part := range slices.Chunk(more, 8) {
		c, err := bgp.ParseExtended(part)
		if err != nil {
			c = &bgp.UnknownExtended{Value: part}
		}
		communities.Value = append(communities.Value, c)
	}
	for _, withdrawal := range []bool{false, true} {
		e := Event{}
		decode(&apiutil.Path{Nlri: nlri, PeerAddress: peer, PeerID: peer, Withdrawal: withdrawal,
			Attrs: []bgp.PathAttributeInterface{&bgp.PathAttributeNextHop{Value: peer}, communities}},
			&known{}, &e)
		checkEvent(t, e)
	}
}

func rdFields(rd []byte) bgp.RouteDistinguisherInterface {
	switch {
	case len(rd) == 0:
		return nil
	case len(rd) < 8:
		return &bgp.RouteDistinguisherUnknown{Value: rd}
	}
	return bgp.GetRouteDistinguisher(rd)
}

func nlriOf(kind byte, rd bgp.RouteDistinguisherInterface, address []byte, bits byte, mac, esi []byte,
	labels byte) bgp.NLRI {
	addr, _ := netip.AddrFromSlice(address)
	segment := bgp.EthernetSegmentIdentifier{Value: esi}
	stack := slices.Repeat([]uint32{100}, int(labels%4))
	switch kind % 5 {
	case 0:
		return &bgp.LabeledVPNIPAddrPrefix{IPAddrPrefixDefault: bgp.IPAddrPrefixDefault{
			Prefix: netip.PrefixFrom(addr, int(bits))}, Labels: bgp.MPLSLabelStack{Labels: stack}, RD: rd}
	case 1:
		return bgp.NewEVPNNLRI(bgp.EVPN_ROUTE_TYPE_MAC_IP_ADVERTISEMENT, &bgp.EVPNMacIPAdvertisementRoute{RD: rd,
			ESI: segment, MacAddressLength: uint8(8 * len(mac)), MacAddress: mac, IPAddress: addr, Labels: stack})
	case 2:
		return bgp.NewEVPNNLRI(bgp.EVPN_INCLUSIVE_MULTICAST_ETHERNET_TAG,
			&bgp.EVPNMulticastEthernetTagRoute{RD: rd, IPAddress: addr})
	case 3:
		return bgp.NewEVPNNLRI(bgp.EVPN_IP_PREFIX, &bgp.EVPNIPPrefixRoute{RD: rd, ESI: segment, IPPrefixLength: bits,
			IPPrefix: addr, Label: uint32(labels)})
	}
	return bgp.NewEVPNNLRI(bgp.EVPN_ROUTE_TYPE_ETHERNET_AUTO_DISCOVERY,
		&bgp.EVPNEthernetAutoDiscoveryRoute{RD: rd, ESI: segment})
}

// odd is of a form that no RFC has.
var odd = bgp.GetRouteDistinguisher([]byte{0, 3, 1, 2, 3, 4, 5, 6})

func must(f *testing.F) func(bgp.NLRI, error) bgp.NLRI {
	return func(n bgp.NLRI, err error) bgp.NLRI {
		if err != nil {
			f.Fatal(err)
		}
		return n
	}
}

// others are attributes of a peer that this node does not send.
func others(f *testing.F) []bgp.PathAttributeInterface {
	f.Helper()
	nexthop, err := bgp.NewPathAttributeNextHop(peer)
	if err != nil {
		f.Fatal(err)
	}
	originator, err := bgp.NewPathAttributeOriginatorId(peer)
	if err != nil {
		f.Fatal(err)
	}
	return []bgp.PathAttributeInterface{nexthop, originator, bgp.NewPathAttributeMultiExitDisc(7),
		bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{
			bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{65001, 65002})})}
}

func addUpdate(f *testing.F, attrs ...bgp.PathAttributeInterface) {
	f.Helper()
	data, err := bgp.NewBGPUpdateMessage(nil, attrs, nil).Body.Serialize()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}

func checkBytes(t *testing.T, data []byte) {
	t.Helper()
	checkEvent(t, receivedBytes(data))
}

func checkEvent(t *testing.T, e Event) {
	t.Helper()
	for _, p := range e.Updates {
		checkKey(t, p.Key)
		if !p.Nexthop.IsValid() || p.Nexthop.Is4In6() || p.Label >= 1<<24 || p.Kind == vpn.KindIP && p.Label >= 1<<20 {
			t.Fatalf("next hop %v, label %d", p.Nexthop, p.Label)
		}
		if len(p.Targets) > maxTargets || len(p.Encaps) > maxEncaps {
			t.Fatalf("%d targets, %d encapsulations", len(p.Targets), len(p.Encaps))
		}
		checkAgain(t, p)
	}
	for _, k := range e.Withdrawn {
		checkKey(t, k)
	}
}

// receivedBytes hands the body of an UPDATE message on as GoBGP's server does.
func receivedBytes(data []byte) Event {
	e, last := Event{}, known{}
	h := &bgp.BGPHeader{Type: bgp.BGP_MSG_UPDATE, Len: uint16(bgp.BGP_HEADER_LENGTH + len(data))}
	if len(data) > bgp.BGP_MAX_MESSAGE_LENGTH-bgp.BGP_HEADER_LENGTH {
		return e
	}
	msg, err := bgp.ParseBGPBody(h, data)
	if err != nil {
		return e
	}
	update := msg.Body.(*bgp.BGPUpdate)
	for _, a := range update.PathAttributes {
		list, withdrawal := []bgp.PathNLRI(nil), false
		switch a := a.(type) {
		case *bgp.PathAttributeMpReachNLRI:
			list = a.Value
		case *bgp.PathAttributeMpUnreachNLRI:
			list, withdrawal = a.Value, true
		}
		for _, nlri := range list {
			decode(&apiutil.Path{Nlri: nlri.NLRI, RemoteID: nlri.ID, PeerAddress: peer, PeerID: peer,
				Attrs: update.PathAttributes, Withdrawal: withdrawal}, &last, &e)
		}
	}
	return e
}

func checkKey(t *testing.T, k vpn.Key) {
	t.Helper()
	prefix := k.Prefix.IsValid() && k.Prefix == k.Prefix.Masked() && !k.Prefix.Addr().Is4In6()
	host := prefix && k.Prefix.IsSingleIP()
	ok := k.Kind == vpn.KindIP && prefix && k.Mac == vpn.Mac{} && k.Tag == 0 ||
		k.Kind == vpn.KindPrefix && prefix && k.Mac == vpn.Mac{} ||
		k.Kind == vpn.KindMac && (host || !k.Prefix.IsValid()) || k.Kind == vpn.KindFlood && host && k.Mac == vpn.Mac{}
	if !ok || k.Peer != peer || k.RD.Form > 2 {
		t.Fatalf("key %+v", k)
	}
}

// checkAgain announces a path and receives it.
func checkAgain(t *testing.T, p vpn.Path) {
	t.Helper()
	out, err := encode(p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	data, err := bgp.NewBGPUpdateMessage(nil, out.Attrs, nil).Body.Serialize()
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	if len(data) > bgp.BGP_MAX_MESSAGE_LENGTH-bgp.BGP_HEADER_LENGTH {
		return
	}
	// What a node does not say of its own paths.
	want, attrs := p, *p.Attrs
	attrs.MED, attrs.ASPath, attrs.Originator = 0, 0, peer
	want.ID, want.Attrs, want.Overlay = 0, &attrs, false
	e := receivedBytes(data)
	if e.Faults != 0 || len(e.Updates) != 1 || !reflect.DeepEqual(e.Updates[0], want) {
		t.Fatalf("announced %+v %+v\nreceived  %+v", want, attrs, e)
	}
}
