// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"path/filepath"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/state"
)

const fabricPort = "fab0"

// fabricDevice has a ring that is large enough for the time slice of another thread. It sends through the kernel's
// queue, so that tcpdump sees its packets. packetDevice is a packet socket, for wires that keep some offloads.
const (
	fabricDevice = "net_af_packet0,iface=" + fabricPort + ",framecnt=2048,qdisc_bypass=0"
	packetDevice = "net_af_packet0,iface=" + fabricPort + ",vnet=1"
)

// fabricRing of a memif: room for the windows of some TCP connections, in packets of MTU size.
const fabricRing = 8192

// Node is the desired state of a host of the lab, with tunnels over the given underlay.
func (t Topology) Node(h Host, u Underlay) *state.State {
	s := &state.State{Settings: state.DefaultSettings()}
	if len(t.Hosts) > 1 {
		s.Ports = append(s.Ports, t.fabric(h))
	}
	for _, g := range t.Guests() {
		if g.Host != h {
			continue
		}
		s.Ports = append(s.Ports, t.guestPort(g))
		if g.Second { // the rest is that of the first one
			continue
		}
		if g.Network.Bridge {
			t.bridged(s, g, u)
		} else {
			t.routed(s, g, u)
		}
	}
	s.Normalize()
	return s
}

func (t Topology) sharesMemory() bool { return t.Wire == WireMemif || t.Wire == WireMemifWhole }

func (t Topology) fabric(h Host) *apiv1.Port {
	p := &apiv1.Port{Name: fabricPort, Role: apiv1.PortRole_PORT_ROLE_FABRIC,
		Device: &apiv1.Port_Dpdk{Dpdk: &apiv1.DpdkDevice{Devargs: fabricDevice}},
		Mtu:    t.WireMTU, Addresses: []string{h.cidr(IPv4), h.cidr(IPv6)}}
	if t.Wire == WireCut || t.Wire == WireWhole {
		p.Device = &apiv1.Port_Dpdk{Dpdk: &apiv1.DpdkDevice{Devargs: packetDevice}}
	}
	if t.sharesMemory() { // the first host is the server
		m := &apiv1.MemifDevice{RingSize: fabricRing, WholeSegments: t.Wire == WireMemifWhole,
			Socket: filepath.Join(Root, t.Name, t.Hosts[0].Name, "run", "fabric.sock")}
		if h.Index != t.Hosts[0].Index {
			m.Role = apiv1.MemifRole_MEMIF_ROLE_CLIENT
		}
		p.Device = &apiv1.Port_Memif{Memif: m}
	}
	return p
}

func (t Topology) guestPort(g Guest) *apiv1.Port {
	p := &apiv1.Port{Name: g.Port(), Role: apiv1.PortRole_PORT_ROLE_TENANT, Mtu: g.Network.MTU,
		Device: &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: "eth0", Netns: t.Netns(g.Name())}}}
	if g.Network.Vhost {
		p.Device = &apiv1.Port_Vhost{Vhost: &apiv1.VhostDevice{Socket: t.vhostSocket(g)}}
	}
	if g.Network.Plain {
		p.Offload = apiv1.Offload_OFFLOAD_NONE
	}
	if g.Network.Bridge {
		p.Bridge = g.Network.Name
		return p
	}
	p.Vrf = g.Network.Name
	p.Gateways = []string{g.gatewayCidr(IPv4), g.gatewayCidr(IPv6)}
	p.GuestAddresses = []string{g.Address(IPv4), g.Address(IPv6)}
	return p
}

// vhostSocket is the one that a guest with a virtio-net device shares with the host's router.
func (t Topology) vhostSocket(g Guest) string {
	if g.Host.Ovs {
		return filepath.Join(Root, t.Name, g.Name()+".vhost")
	}
	return filepath.Join(Root, t.Name, g.Host.Name, "run", g.Port()+".vhost")
}

// routed adds a VRF, a tunnel to each other host and routes to its subnets.
func (t Topology) routed(s *state.State, g Guest, u Underlay) {
	n := g.Network
	s.Vrfs = append(s.Vrfs, &apiv1.Vrf{Name: n.Name})
	if n.Vni != 0 {
		s.Vnis = append(s.Vnis, &apiv1.Vni{Vni: n.Vni, Target: &apiv1.Vni_Vrf{Vrf: n.Name}})
	} else {
		s.Labels = append(s.Labels, &apiv1.Label{Label: n.label(g.Host), Target: &apiv1.Label_Vrf{Vrf: n.Name}})
	}
	for _, peer := range t.peers(n, g.Host) {
		s.Nexthops = append(s.Nexthops, tunnel(n, g.Host, peer, u))
		far := t.Guest(n.Name, peer.Name)
		for _, family := range []Underlay{IPv4, IPv6} {
			s.Routes = append(s.Routes, state.NewRoute(n.Name, far.Subnet(family), n.nexthop(peer)))
		}
	}
}

// bridged adds a bridge domain that floods to every other host.
func (t Topology) bridged(s *state.State, g Guest, u Underlay) {
	n := g.Network
	b := &apiv1.Bridge{Name: n.Name}
	for _, peer := range t.peers(n, g.Host) {
		s.Nexthops = append(s.Nexthops, tunnel(n, g.Host, peer, u))
		b.Flood = append(b.Flood, n.nexthop(peer))
	}
	s.Bridges = append(s.Bridges, b)
	s.Vnis = append(s.Vnis, &apiv1.Vni{Vni: n.Vni, Target: &apiv1.Vni_Bridge{Bridge: n.Name}})
}

func tunnel(n Network, from, to Host, u Underlay) *apiv1.Nexthop {
	t := &apiv1.TunnelNexthop{Encap: n.Encap, Local: from.Address(u), Remote: to.Address(u)}
	switch {
	case n.Vni == 0:
		t.Label = n.label(to)
	case n.Bridge:
		t.Vni = n.Vni
	default:
		t.Vni, t.RouterMac = n.Vni, to.routerMac()
	}
	return &apiv1.Nexthop{Id: n.nexthop(to), Kind: &apiv1.Nexthop_Tunnel{Tunnel: t}}
}
