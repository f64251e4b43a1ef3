// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// What the low bytes of our MAC addresses count.
const (
	macOfPort = 1 + iota
	macOfPeer
	macBehindTunnel
	macOfRemoteRouter
)

// Labels and VNIs differ by direction and tenant.
const (
	firstSend    = 1001
	firstReceive = 2001
)

const (
	tunnelRoom = 100 // MTU of the wire beyond the tenants': no tunnel has longer headers, so nothing is fragmented
	minMTU     = 1500
	farNetwork = 100 // third byte, or group, of the networks behind tunnels
)

// Build gives a scenario its addresses, and sockets in dir.
func Build(s Scenario, dir string, ringSize int) (*Setup, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if ringSize < 64 || ringSize > 16384 || ringSize&(ringSize-1) != 0 {
		return nil, fmt.Errorf("ring size %d; valid: a power of two from 64 to 16384", ringSize)
	}
	b := &Setup{Scenario: s}
	b.Sizes = slices.Clone(s.Sizes)
	for tenant := range s.Tenants {
		b.addTenant(tenant)
	}
	if s.Overlay != Plain {
		b.addWire()
	}
	for i := range b.Ports {
		p := &b.Ports[i]
		p.MAC, p.PeerMAC = mac(macOfPort, i), mac(macOfPeer, i)
		p.Socket, p.RingSize, p.Queues = filepath.Join(dir, p.Name+".sock"), ringSize, s.Workers
		if path := limits.Text(apiv1.Notation_NOTATION_PATH); len(p.Socket) > int(path.Longest) {
			return nil, fmt.Errorf("socket %s: the path is too long; valid: %s", p.Socket, path.Valid)
		}
	}
	b.addHosts()
	return b, nil
}

// addTenant adds a tenant's ports, tunnel and routes, towards the sink and towards the source.
func (b *Setup) addTenant(tenant int) {
	b.addPort(tenant, 0)
	switch b.Direction {
	case TenantToWire:
		b.addTunnel(tenant)
		b.addRoutes(tenant, "", netip.Addr{})
	case WireToTenant:
		b.addTunnel(tenant)
		p := &b.Ports[len(b.Ports)-1]
		b.addRoutes(tenant, p.Name, p.Peer)
		if !b.Bridged {
			b.Routes = append(b.Routes, Route{Tenant: tenant, Prefix: b.tenantPrefix(tenant, farNetwork, 0).Masked(),
				Tunnel: tenant})
		}
	case TenantToTenant:
		sink := b.addPort(tenant, 1)
		b.addRoutes(tenant, sink.Name, sink.Peer)
	}
}

func (b *Setup) addPort(tenant, side int) *Port {
	b.Ports = append(b.Ports, Port{
		Name:    fmt.Sprintf("tenant%d", len(b.Ports)),
		Tenant:  tenant,
		Address: b.tenantPrefix(tenant, side, 1),
		Peer:    b.tenantPrefix(tenant, side, 2).Addr(),
		MTU:     b.tenantMTU(),
	})
	return &b.Ports[len(b.Ports)-1]
}

func (b *Setup) tenantMTU() int { return max(minMTU, slices.Max(b.Sizes)-ethernetSize) }

func (b *Setup) addWire() {
	b.Ports = append(b.Ports, Port{
		Name:    "wire",
		Wire:    true,
		Tenant:  -1,
		Address: b.wirePrefix(0, 1),
		Peer:    b.wirePrefix(0, 2).Addr(),
		MTU:     b.tenantMTU() + tunnelRoom,
	})
}

func (b *Setup) addTunnel(tenant int) {
	b.Tunnels = append(b.Tunnels, Tunnel{
		Tenant:    tenant,
		Overlay:   b.Overlay,
		Local:     b.wirePrefix(0, 1).Addr(),
		Remote:    b.wirePrefix(1, tenant+1).Addr(),
		Send:      uint32(firstSend + tenant),
		Receive:   uint32(firstReceive + tenant),
		RouterMAC: mac(macOfRemoteRouter, tenant),
	})
}

// addRoutes adds routes towards the sink: to a port or, without one, into the tenant's tunnel. All tenants have the
// same prefixes.
func (b *Setup) addRoutes(tenant int, port string, via netip.Addr) {
	if b.Bridged {
		return
	}
	n := b.Scenario.Routes
	if tenant > 0 {
		n = 1
	}
	for _, prefix := range destinations(n, b.IPv6) {
		b.Routes = append(b.Routes, Route{Tenant: tenant, Prefix: prefix, Port: port, Host: via, Tunnel: tenant})
	}
}

// addHosts adds a host behind each port and each tunnel of the bridge domains.
func (b *Setup) addHosts() {
	if !b.Bridged {
		return
	}
	for _, p := range b.Ports {
		if !p.Wire {
			b.Hosts = append(b.Hosts, Host{Tenant: p.Tenant, MAC: p.PeerMAC, Port: p.Name})
		}
	}
	for i, t := range b.Tunnels {
		b.Hosts = append(b.Hosts, Host{Tenant: t.Tenant, MAC: mac(macBehindTunnel, t.Tenant), Tunnel: i})
	}
}

// tenantPrefix is an address, with prefix length, in a network of a tenant.
func (b *Setup) tenantPrefix(tenant, network, host int) netip.Prefix {
	if b.IPv6 {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: byte(tenant), 5: byte(network), 15: byte(host)}),
			64)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(tenant), byte(network), byte(host)}), 24)
}

// wirePrefix is an address of the underlay: network 0 is on the link, tunnels end in network 1. RFC 5737, RFC 9637.
func (b *Setup) wirePrefix(network, host int) netip.Prefix {
	if b.Underlay6 {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x3f, 0xff, 5: byte(network), 15: byte(host)}), 64)
	}
	if network == 0 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(host)}), 24)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(host)}), 24)
}

func mac(kind, number int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0xc1, 0, 0, byte(kind), byte(number)}
}
