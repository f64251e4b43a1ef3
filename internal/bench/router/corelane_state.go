// SPDX-License-Identifier: Apache-2.0
package router

import (
	"fmt"
	"net/netip"
	"strconv"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/state"
)

// Ids of next hops.
const (
	wireNexthop   = 1    // the generator's end of the wire
	tunnelNexthop = 100  // plus the tunnel's index
	portNexthop   = 1000 // plus the port's index
)

// corelaneState is the desired state for a setup, as for `corelane apply`. All neighbours are static, so nothing is
// resolved.
func corelaneState(b *scenario.Setup) *state.State {
	s := &state.State{Settings: state.DefaultSettings()}
	if b.NewFlows > 0 {
		s.Settings.FlowUdpSeconds = 1 // makes room for new flows
	}
	for tenant := range b.Tenants {
		addTenant(s, b, tenant)
	}
	addRules(s, b.Rules)
	for i := range b.Ports {
		s.Ports = append(s.Ports, corelanePort(b, &b.Ports[i]))
		addPortNexthop(s, b, i)
	}
	for i := range b.Tunnels {
		addTunnel(s, b, i)
	}
	index := map[string]uint32{}
	for i, p := range b.Ports {
		index[p.Name] = uint32(i)
	}
	for _, r := range b.Routes {
		nexthop := uint32(tunnelNexthop + r.Tunnel)
		if r.Port != "" {
			nexthop = portNexthop + index[r.Port]
		}
		s.Routes = append(s.Routes, state.Route{Vrf: tenantName(r.Tenant), Prefix: r.Prefix, Nexthop: nexthop})
	}
	for _, h := range b.Hosts {
		s.Macs = append(s.Macs, corelaneMac(h))
	}
	s.Normalize()
	return s
}

const ruleList = "bench"

// addRules adds rules of which only the last one matches the flows.
func addRules(s *state.State, n int) {
	if n == 0 {
		return
	}
	s.RuleLists = append(s.RuleLists, &apiv1.RuleList{Name: ruleList})
	for i := range n {
		r := &apiv1.Rule{List: ruleList, Id: uint32(i + 1), Action: apiv1.RuleAction_RULE_ACTION_ALLOW}
		if i < n-1 {
			r.Protocol, r.DestinationPorts = "tcp", strconv.Itoa(1+i%65535)
			r.Source = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 32).String()
		}
		s.Rules = append(s.Rules, r)
	}
}

// tenantName is the name of a tenant's VRF or bridge.
func tenantName(tenant int) string { return fmt.Sprintf("tenant%d", tenant) }

func addTenant(s *state.State, b *scenario.Setup, tenant int) {
	if b.Bridged {
		s.Bridges = append(s.Bridges, &apiv1.Bridge{Name: tenantName(tenant)})
	} else {
		s.Vrfs = append(s.Vrfs, &apiv1.Vrf{Name: tenantName(tenant)})
	}
}

func corelanePort(b *scenario.Setup, p *scenario.Port) *apiv1.Port {
	port := &apiv1.Port{Name: p.Name, Role: apiv1.PortRole_PORT_ROLE_TENANT, Mac: p.MAC.String(), Mtu: uint32(p.MTU),
		Queues: uint32(p.Queues)}
	switch p.Device {
	case scenario.Vhost:
		port.Device = &apiv1.Port_Vhost{Vhost: &apiv1.VhostDevice{Socket: p.Socket}}
	case scenario.Tap:
		port.Device = &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: p.Interface()}}
	default:
		port.Device = &apiv1.Port_Memif{Memif: &apiv1.MemifDevice{Socket: p.Socket, RingSize: uint32(p.RingSize)}}
	}
	switch {
	case p.Wire:
		port.Role, port.Addresses = apiv1.PortRole_PORT_ROLE_FABRIC, []string{p.Address.String()}
	case b.Bridged:
		port.Bridge = tenantName(p.Tenant)
		trackFlows(port, b, p.Tenant)
	default:
		port.Vrf, port.Gateways = tenantName(p.Tenant), []string{p.Address.String()}
		trackFlows(port, b, p.Tenant)
		port.GuestMac, port.GuestAddresses = p.PeerMAC.String(), []string{p.Peer.String()}
		port.SourceCheck = apiv1.SourceCheck_SOURCE_CHECK_NONE // as the other routers; frames have many sources
	}
	return port
}

// trackFlows sets what a tenant's port has for its flows.
func trackFlows(port *apiv1.Port, b *scenario.Setup, tenant int) {
	port.Stateful = b.Stateful
	if b.Rules > 0 {
		port.EgressRules, port.IngressRules = ruleList, ruleList
	}
	if tenant == b.Tenants-1 {
		port.FlowLimit, port.FlowRate = uint32(b.FlowLimit), uint32(b.FlowRate)
	}
}

// addPortNexthop adds the router at the other end of the wire, or the guest of a port.
func addPortNexthop(s *state.State, b *scenario.Setup, i int) {
	p := &b.Ports[i]
	id := uint32(portNexthop + i)
	if p.Wire {
		id = wireNexthop
	} else if b.Bridged {
		return
	}
	s.Nexthops = append(s.Nexthops, &apiv1.Nexthop{Id: id, Kind: &apiv1.Nexthop_Port{
		Port: &apiv1.PortNexthop{Port: p.Name, Address: p.Peer.String(), Mac: p.PeerMAC.String()}}})
}

var encaps = map[scenario.Overlay]apiv1.Encap{scenario.VXLAN: apiv1.Encap_ENCAP_VXLAN,
	scenario.MPLSoUDP: apiv1.Encap_ENCAP_MPLSOUDP, scenario.MPLSoGRE: apiv1.Encap_ENCAP_MPLSOGRE,
	scenario.Geneve: apiv1.Encap_ENCAP_GENEVE}

// addTunnel adds a tunnel in both directions, and the route to its remote end.
func addTunnel(s *state.State, b *scenario.Setup, i int) {
	t := &b.Tunnels[i]
	tunnel := &apiv1.TunnelNexthop{Encap: encaps[t.Overlay], Local: t.Local.String(), Remote: t.Remote.String()}
	if b.Underlay6 && t.Overlay != scenario.MPLSoGRE { // as the other routers and the generator
		tunnel.Udp6Checksum = apiv1.Udp6Checksum_UDP6_CHECKSUM_OFF
	}
	if t.Overlay.HasVNI() {
		tunnel.Vni = t.Send
		if !b.Bridged {
			tunnel.RouterMac = t.RouterMAC.String()
		}
		s.Vnis = append(s.Vnis, corelaneVni(b, t))
	} else {
		tunnel.Label = t.Send
		s.Labels = append(s.Labels, corelaneLabel(b, t))
	}
	s.Nexthops = append(s.Nexthops,
		&apiv1.Nexthop{Id: uint32(tunnelNexthop + i), Kind: &apiv1.Nexthop_Tunnel{Tunnel: tunnel}})
	remote := netip.PrefixFrom(t.Remote, t.Remote.BitLen())
	s.Routes = append(s.Routes, state.Route{Vrf: state.FabricVrf, Prefix: remote, Nexthop: wireNexthop})
}

func corelaneVni(b *scenario.Setup, t *scenario.Tunnel) *apiv1.Vni {
	if b.Bridged {
		return &apiv1.Vni{Vni: t.Receive, Target: &apiv1.Vni_Bridge{Bridge: tenantName(t.Tenant)}}
	}
	return &apiv1.Vni{Vni: t.Receive, Target: &apiv1.Vni_Vrf{Vrf: tenantName(t.Tenant)}}
}

func corelaneLabel(b *scenario.Setup, t *scenario.Tunnel) *apiv1.Label {
	if b.Bridged {
		return &apiv1.Label{Label: t.Receive, Target: &apiv1.Label_Bridge{Bridge: tenantName(t.Tenant)}}
	}
	return &apiv1.Label{Label: t.Receive, Target: &apiv1.Label_Vrf{Vrf: tenantName(t.Tenant)}}
}

func corelaneMac(h scenario.Host) *apiv1.Mac {
	m := &apiv1.Mac{Bridge: tenantName(h.Tenant), Mac: h.MAC.String()}
	if h.Port != "" {
		m.Target = &apiv1.Mac_Port{Port: h.Port}
	} else {
		m.Target = &apiv1.Mac_Nexthop{Nexthop: uint32(tunnelNexthop + h.Tunnel)}
	}
	return m
}
