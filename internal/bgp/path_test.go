// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/vpn"
)

var peer = netip.MustParseAddr("192.0.2.100")

func sample(prefix string) vpn.Path {
	return vpn.Path{Key: vpn.Key{RD: vpn.Target{Form: 1, Value: [6]byte{192, 0, 2, 1, 0, 7}},
		Prefix: netip.MustParsePrefix(prefix)}, Nexthop: netip.MustParseAddr("192.0.2.1"), Label: 100000,
		Attrs: &vpn.Attrs{LocalPref: 100, Targets: []vpn.Target{{Value: [6]byte{0xfd, 0xe8, 0, 0, 0, 100}},
			{Form: 1, Value: [6]byte{192, 0, 2, 9, 0, 3}}, {Form: 2, Value: [6]byte{0, 1, 0, 0, 0, 5}}},
			Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOUDP, apiv1.Encap_ENCAP_MPLSOGRE}}}
}

// wire sends a path through the bytes of an UPDATE message, as a peer would.
func wire(t *testing.T, p vpn.Path) *apiutil.Path {
	t.Helper()
	out, err := encode(p)
	if err != nil {
		t.Fatal(err)
	}
	data, err := bgp.NewBGPUpdateMessage(nil, out.Attrs, nil).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	msg, err := bgp.ParseBGPMessage(data)
	if err != nil {
		t.Fatal(err)
	}
	in := &apiutil.Path{Family: out.Family, PeerAddress: peer, PeerID: peer,
		Attrs: msg.Body.(*bgp.BGPUpdate).PathAttributes}
	for _, a := range in.Attrs {
		if reach, ok := a.(*bgp.PathAttributeMpReachNLRI); ok {
			in.Nlri = reach.Value[0].NLRI
		}
	}
	return in
}

func received(in *apiutil.Path) Event {
	e := Event{}
	decode(in, &known{}, &e)
	return e
}

func TestRoundTrip(t *testing.T) {
	for _, prefix := range []string{"10.1.2.3/32", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::5/128", "2001:db8::/32"} {
		want := sample(prefix)
		e := received(wire(t, want))
		want.Peer, want.Originator = peer, peer
		if e.Faults != 0 || len(e.Updates) != 1 || !reflect.DeepEqual(e.Updates[0], want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", prefix, e, want)
		}
		in := wire(t, sample(prefix))
		in.Withdrawal = true
		if e := received(in); len(e.Withdrawn) != 1 || e.Withdrawn[0] != want.Key {
			t.Errorf("%s: withdrawn %+v, want %+v", prefix, e.Withdrawn, want.Key)
		}
	}
}

// What other implementations send, and what is refused.
func TestForeignPaths(t *testing.T) {
	type changer func(in *apiutil.Path, nlri *bgp.LabeledVPNIPAddrPrefix, c *bgp.PathAttributeExtendedCommunities)
	change := func(f changer) Event {
		in := wire(t, sample("10.1.2.3/32"))
		for _, a := range in.Attrs {
			if c, ok := a.(*bgp.PathAttributeExtendedCommunities); ok {
				f(in, in.Nlri.(*bgp.LabeledVPNIPAddrPrefix), c)
			}
		}
		return received(in)
	}
	encaps := func(types ...bgp.TunnelType) []apiv1.Encap {
		return change(func(_ *apiutil.Path, _ *bgp.LabeledVPNIPAddrPrefix, c *bgp.PathAttributeExtendedCommunities) {
			c.Value = nil
			for _, tunnel := range types {
				c.Value = append(c.Value, bgp.NewEncapExtended(tunnel))
			}
		}).Updates[0].Encaps
	}
	if got := encaps(37001); !reflect.DeepEqual(got, []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOUDP}) {
		t.Error("old Contrail:", got)
	}
	if got := encaps(bgp.TUNNEL_TYPE_VXLAN, bgp.TUNNEL_TYPE_SR_POLICY); got != nil {
		t.Error("VXLAN means nothing for VPNv4 (FRR leaks it from EVPN):", got)
	}
	if e := change(func(_ *apiutil.Path, n *bgp.LabeledVPNIPAddrPrefix, _ *bgp.PathAttributeExtendedCommunities) {
		n.Labels.Labels = []uint32{100, 200}
	}); e.Faults != 1 || len(e.Updates) != 0 {
		t.Errorf("a stack of labels: %+v", e)
	}
	if e := change(func(_ *apiutil.Path, _ *bgp.LabeledVPNIPAddrPrefix, c *bgp.PathAttributeExtendedCommunities) {
		for range maxTargets {
			c.Value = append(c.Value, target(vpn.Target{}))
		}
	}); e.Faults != 1 || len(e.Updates) != 0 {
		t.Errorf("too many targets: %d faults, %d updates", e.Faults, len(e.Updates))
	}
	e := change(func(in *apiutil.Path, _ *bgp.LabeledVPNIPAddrPrefix, _ *bgp.PathAttributeExtendedCommunities) {
		originator, err := bgp.NewPathAttributeOriginatorId(netip.MustParseAddr("192.0.2.7"))
		if err != nil {
			t.Fatal(err)
		}
		in.Attrs = append(in.Attrs, originator,
			bgp.NewPathAttributeCommunities([]uint32{65000<<16 | 1, uint32(bgp.COMMUNITY_LLGR_STALE)}))
	})
	if !e.Updates[0].LongStale {
		t.Error("the path of a host whose session has ended long ago (RFC 9494) is like all others")
	}
	if got := e.Updates[0].Originator.String(); got != "192.0.2.7" {
		t.Error("originator of a reflected path:", got)
	}
}

// evpnSamples are a path to a MAC address, one with its IP address that has moved, a sticky one, one of an Ethernet
// segment, one for flooding, and two prefixes.
func evpnSamples() []vpn.Path {
	path := func(kind vpn.Kind, prefix string, change func(*vpn.Path)) vpn.Path {
		p := sample("10.0.0.0/8")
		p.Kind, p.Prefix, p.Label, p.Encaps = kind, netip.Prefix{}, 0xabcdef, []apiv1.Encap{apiv1.Encap_ENCAP_VXLAN}
		if prefix != "" {
			p.Prefix = netip.MustParsePrefix(prefix)
		}
		if kind == vpn.KindMac {
			p.Mac = vpn.Mac{2, 0, 0, 0, 9, 1}
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	return []vpn.Path{
		path(vpn.KindMac, "", nil),
		path(vpn.KindMac, "10.9.0.1/32", func(p *vpn.Path) { p.Sequence = 3 }),
		path(vpn.KindMac, "2001:db8::1/128", func(p *vpn.Path) { p.Sticky, p.Tag = true, 7 }),
		path(vpn.KindMac, "", func(p *vpn.Path) { p.ESI = [10]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} }),
		path(vpn.KindFlood, "192.0.2.1/32", nil),
		path(vpn.KindPrefix, "10.8.0.0/16", func(p *vpn.Path) { p.RouterMac = vpn.Mac{2, 0, 0, 0, 1, 1} }),
		path(vpn.KindPrefix, "2001:db8:8::/48", func(p *vpn.Path) { p.Tag = 7 }),
	}
}

func TestEVPNRoundTrip(t *testing.T) {
	for i, want := range evpnSamples() {
		e := received(wire(t, want))
		in := wire(t, want)
		want.Peer, want.Originator = peer, peer
		if e.Faults != 0 || len(e.Updates) != 1 || !reflect.DeepEqual(e.Updates[0], want) {
			t.Errorf("%d:\ngot  %+v\nwant %+v", i, e, want)
			continue
		}
		in.Withdrawal = true
		if e := received(in); len(e.Withdrawn) != 1 || e.Withdrawn[0] != want.Key {
			t.Errorf("%d: withdrawn %+v, want %+v", i, e.Withdrawn, want.Key)
		}
	}
}

// The bytes of a route, as RFC 7432 (sections 7.2, 7.3 and 7.7), RFC 8365 (section 5.1.3), RFC 6514 (section 5),
// RFC 9136 (section 3.1) and RFC 9135 (section 8.1) have them: the VNI is the whole label field.
func TestEVPNBytes(t *testing.T) {
	samples := evpnSamples()
	for _, c := range []struct {
		path  vpn.Path
		parts []string
	}{
		{samples[1], []string{
			"0019" + "46" + "04c0000201" + "00", "0225" + "0001c00002010007" + "00000000000000000000" + "00000000" +
				"30020000000901" + "200a090001" + "abcdef", "030c000000000008", "0600000000000003"}},
		{samples[2], []string{"00000007" + "30020000000901" + "8020010db8000000000000000000000001" + "abcdef",
			"0600010000000000"}},
		{samples[4], []string{"0311" + "0001c00002010007" + "00000000" + "20c0000201",
			"c01609" + "00" + "06" + "abcdef" + "c0000201"}},
		{samples[5], []string{"0522" + "0001c00002010007" + "00000000000000000000" + "00000000" + "10" + "0a080000" +
			"00000000" + "abcdef", "0603" + "020000000101"}},
		{samples[6], []string{"053a" + "0001c00002010007" + "00000000000000000000" + "00000007" + "30" +
			"20010db8000800000000000000000000" + "00000000000000000000000000000000" + "abcdef"}},
	} {
		out, err := encode(c.path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := bgp.NewBGPUpdateMessage(nil, out.Attrs, nil).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range c.parts {
			if !strings.Contains(hex.EncodeToString(data), part) {
				t.Errorf("%v %v: no %s in\n%x", c.path.Kind, c.path.Prefix, part, data)
			}
		}
	}
}

func TestForeignEVPN(t *testing.T) {
	flood := evpnSamples()[4]
	in := wire(t, flood)
	for _, a := range in.Attrs {
		if pmsi, ok := a.(*bgp.PathAttributePmsiTunnel); ok {
			pmsi.TunnelType = bgp.PMSI_TUNNEL_TYPE_PIM_SM_TREE
		}
	}
	if e := received(in); len(e.Updates) != 1 || e.Updates[0].Label != 0 {
		t.Errorf("a multicast tree is no VNI to replicate to: %+v", e)
	}
	in = wire(t, evpnSamples()[0])
	r := in.Nlri.(*bgp.EVPNNLRI).RouteTypeData.(*bgp.EVPNMacIPAdvertisementRoute)
	r.MacAddressLength = 24
	if e := received(in); e.Faults != 1 || len(e.Updates) != 0 {
		t.Errorf("half a MAC address: %+v", e)
	}
	in.Nlri = bgp.NewEVPNEthernetAutoDiscoveryRoute(r.RD, r.ESI, 0, 100)
	if e := received(in); e.Faults != 0 || len(e.Updates) != 0 {
		t.Errorf("type 1 is of no use, and no fault: %+v", e)
	}
	in = wire(t, evpnSamples()[5])
	prefix := in.Nlri.(*bgp.EVPNNLRI).RouteTypeData.(*bgp.EVPNIPPrefixRoute)
	prefix.GWIPAddress = netip.MustParseAddr("10.9.0.1")
	if e := received(in); len(e.Updates) != 1 || !e.Updates[0].Overlay {
		t.Errorf("a gateway's address is an overlay index: %+v", e)
	}
	prefix.IPPrefix = netip.MustParseAddr("10.8.1.2") // bits beyond the length, which are no part of the key
	if e := received(in); len(e.Updates) != 1 || e.Updates[0].Prefix.String() != "10.8.0.0/16" {
		t.Errorf("%+v", e)
	}
}
