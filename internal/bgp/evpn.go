// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"errors"
	"net/netip"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/corelane/corelane/internal/vpn"
)

// Routes of EVPN (RFC 7432, RFC 8365). Labels are the 24 bits as they are sent, since the tunnels are VXLAN: the VNI.

// evpnKey returns the key of a route. known is false for types that are of no use here (1, 4 and others).
func evpnKey(nlri *bgp.EVPNNLRI, p *apiutil.Path) (key vpn.Key, known, ok bool) {
	key = vpn.Key{Peer: p.PeerAddress, ID: p.RemoteID}
	var rd bgp.RouteDistinguisherInterface
	switch r := nlri.RouteTypeData.(type) {
	case *bgp.EVPNMacIPAdvertisementRoute:
		if r.MacAddressLength != 48 || len(r.MacAddress) != 6 {
			return key, true, false
		}
		rd, key.Kind, key.Mac, key.Tag = r.RD, vpn.KindMac, vpn.Mac(r.MacAddress), r.ETag
		if r.IPAddress.IsValid() {
			key.Prefix = hostPrefix(r.IPAddress)
		}
	case *bgp.EVPNMulticastEthernetTagRoute:
		if !r.IPAddress.IsValid() {
			return key, true, false
		}
		rd, key.Kind, key.Tag, key.Prefix = r.RD, vpn.KindFlood, r.ETag, hostPrefix(r.IPAddress)
	case *bgp.EVPNIPPrefixRoute:
		prefix := netip.PrefixFrom(r.IPPrefix, int(r.IPPrefixLength))
		if !prefix.IsValid() || r.IPPrefix.Is4In6() {
			return key, true, false
		}
		rd, key.Kind, key.Tag, key.Prefix = r.RD, vpn.KindPrefix, r.ETag, prefix.Masked()
	default:
		return key, false, true
	}
	key.RD, ok = rdOf(rd)
	return key, true, ok
}

func hostPrefix(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen())
}

// evpnPath fills in what is not part of the key.
func evpnPath(nlri *bgp.EVPNNLRI, attrs []bgp.PathAttributeInterface, path *vpn.Path) bool {
	switch r := nlri.RouteTypeData.(type) {
	case *bgp.EVPNMacIPAdvertisementRoute:
		if len(r.Labels) == 0 {
			return false
		}
		path.Label = r.Labels[0]
		return segmentOf(r.ESI, path)
	case *bgp.EVPNIPPrefixRoute:
		path.Label = r.Label
		path.Overlay = r.GWIPAddress.IsValid() && !r.GWIPAddress.IsUnspecified()
		return segmentOf(r.ESI, path)
	}
	for _, a := range attrs { // without a tunnel that replicates here, Label stays 0
		if pmsi, ok := a.(*bgp.PathAttributePmsiTunnel); ok && pmsi.TunnelType == bgp.PMSI_TUNNEL_TYPE_INGRESS_REPL {
			path.Label = pmsi.Label
		}
	}
	return true
}

func segmentOf(esi bgp.EthernetSegmentIdentifier, path *vpn.Path) bool {
	path.ESI[0] = byte(esi.Type)
	copy(path.ESI[1:], esi.Value)
	return len(esi.Value) <= 9
}

// encodeEVPN returns the route of a path, and attributes that only such a route has.
func encodeEVPN(p vpn.Path) (*bgp.EVPNNLRI, []bgp.PathAttributeInterface, error) {
	rd := routeDistinguisher(p.RD)
	esi := bgp.EthernetSegmentIdentifier{Type: bgp.ESIType(p.ESI[0]), Value: p.ESI[1:]} // GoBGP compares its bytes
	switch p.Kind {
	case vpn.KindPrefix:
		gateway := netip.IPv4Unspecified()
		if p.Prefix.Addr().Is6() {
			gateway = netip.IPv6Unspecified()
		}
		nlri, err := bgp.NewEVPNIPPrefixRoute(rd, esi, p.Tag, uint8(p.Prefix.Bits()), p.Prefix.Addr(), gateway, p.Label)
		return nlri, nil, err
	case vpn.KindMac:
		nlri, err := bgp.NewEVPNMacIPAdvertisementRoute(rd, esi, p.Tag, p.Mac.String(), p.Prefix.Addr(),
			[]uint32{p.Label})
		return nlri, nil, err
	case vpn.KindFlood:
		nlri, err := bgp.NewEVPNMulticastEthernetTagRoute(rd, p.Tag, p.Prefix.Addr())
		if err != nil {
			return nil, nil, err
		}
		end, err := bgp.NewIngressReplTunnelID(p.Nexthop)
		if err != nil {
			return nil, nil, err
		}
		return nlri, []bgp.PathAttributeInterface{
			bgp.NewPathAttributePmsiTunnel(bgp.PMSI_TUNNEL_TYPE_INGRESS_REPL, false, p.Label, end)}, nil
	}
	return nil, nil, errors.New("no route of EVPN has this kind of path")
}
