// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Profile is what the generator sends to a router that does the scenario's work, and what it expects back.
func (b *Setup) Profile() (*apiv1.GeneratorProfile, error) { return b.profile(false) }

// Unchanged is the same for a router that sends frames out of the other port unchanged.
func (b *Setup) Unchanged() (*apiv1.GeneratorProfile, error) { return b.profile(true) }

func (b *Setup) profile(unchanged bool) (*apiv1.GeneratorProfile, error) {
	p := &apiv1.GeneratorProfile{}
	for i := range b.Ports {
		p.Ports = append(p.Ports, b.Ports[i].GeneratorPort())
	}
	for tenant := range b.Tenants {
		source, sink := b.sides(tenant)
		path := path{Setup: b, tenant: tenant, from: source, to: sink, unchanged: unchanged}
		if err := path.addTo(p); err != nil {
			return nil, err
		}
		if b.Both {
			path.from, path.to, path.back = sink, source, true
			if err := path.addTo(p); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// side is one end of a tenant's traffic: behind a port, or behind a tunnel.
type side struct {
	port    *Port
	tunnel  *Tunnel
	mac     net.HardwareAddr // of the host; bridged only
	address netip.Addr
}

// sides returns where a tenant's traffic comes from and where it goes. On the way back they are exchanged.
func (b *Setup) sides(tenant int) (source, sink side) {
	var ports []*Port
	for i := range b.Ports {
		if b.Ports[i].Tenant == tenant {
			ports = append(ports, &b.Ports[i])
		}
	}
	wire := &b.Ports[len(b.Ports)-1]
	switch b.Direction {
	case TenantToWire:
		source, sink = side{port: ports[0]}, side{port: wire, tunnel: &b.Tunnels[tenant]}
	case WireToTenant:
		source, sink = side{port: wire, tunnel: &b.Tunnels[tenant]}, side{port: ports[0]}
	case TenantToTenant:
		source, sink = side{port: ports[0]}, side{port: ports[1]}
	}
	source.address, sink.address = b.addresses(tenant, source)
	source.mac, sink.mac = source.hostMAC(tenant), sink.hostMAC(tenant)
	return source, sink
}

func (x side) hostMAC(tenant int) net.HardwareAddr {
	if x.tunnel != nil {
		return mac(macBehindTunnel, tenant)
	}
	return x.port.PeerMAC
}

// addresses returns the addresses of the tenant's hosts at both ends.
func (b *Setup) addresses(tenant int, source side) (from, to netip.Addr) {
	switch {
	case b.Bridged:
		return b.tenantPrefix(tenant, 0, 2).Addr(), b.tenantPrefix(tenant, 0, 3).Addr()
	case source.tunnel != nil:
		from = b.tenantPrefix(tenant, farNetwork, 2).Addr()
	default:
		from = source.port.Peer
	}
	return from, host(destinations(1, b.IPv6)[0])
}

// path is what a stream is made from.
type path struct {
	*Setup
	tenant    int
	from, to  side
	back      bool // from the sink to the source
	unchanged bool
}

func (p *path) addTo(profile *apiv1.GeneratorProfile) error {
	sent := p.sent()
	plain := p.tenantFrame().n
	size := func(tenants int) int { return tenants - plain + sent.n }
	header, err := sent.bytes(size(p.Sizes[0]))
	if err != nil {
		return fmt.Errorf("header of %s: %w", p.name(), err)
	}
	s := &apiv1.GeneratorStream{
		Name: p.name(), TxPort: p.from.port.Name, RxPort: p.to.port.Name,
		Header: header, InnerOffset: uint32(sent.inner), Lengths: sent.lengths, Ip4Offsets: sent.ip4,
		EntropyOffset: uint32(sent.outer), Flows: p.flows(),
	}
	for _, n := range p.Sizes {
		s.Sizes = append(s.Sizes, uint32(size(n)))
	}
	if err := p.expect(s, sent); err != nil {
		return fmt.Errorf("expected header of %s: %w", p.name(), err)
	}
	profile.Streams = append(profile.Streams, s)
	return nil
}

func (p *path) name() string { return p.from.port.Name + "->" + p.to.port.Name }

// expect sets the expected header.
func (p *path) expect(s *apiv1.GeneratorStream, sent *frame) (err error) {
	want := sent
	if !p.unchanged {
		want = p.received()
	}
	if s.Expected, err = want.bytes(p.Sizes[0] - p.tenantFrame().n + want.n); err != nil {
		return err
	}
	if len(s.Flows.Destinations) > 0 {
		want.loosen(want.inner+destinationAt, 0xff, 0xff, 0xff, 0xff)
	}
	if len(p.Sizes) > 1 {
		for _, l := range want.lengths {
			want.loosen(int(l.Offset), 0xff, 0xff)
		}
	}
	s.ExpectedMask = want.mask()
	return nil
}

const destinationAt = 16 // of an IPv4 header

// flows returns this tenant's flows. On the way back source and destination are exchanged.
func (p *path) flows() *apiv1.GeneratorFlows {
	count := p.Flows / p.Tenants
	if p.tenant < p.Flows%p.Tenants {
		count++
	}
	f := &apiv1.GeneratorFlows{Count: uint64(count), SourcePorts: sourcePorts, Shuffle: true,
		DestinationPorts: (maxFlows + sourcePorts - 1) / sourcePorts}
	f.NewPerSecond = float64(p.NewFlows) / float64(p.Tenants)
	if p.back {
		f.SourcePorts, f.DestinationPorts = uint32((count+sourcePorts-1)/sourcePorts), sourcePorts
		return f
	}
	if p.tenant == 0 && p.Scenario.Routes > 1 {
		f.Destinations = p.destinations()
	}
	return f
}

func (p *path) destinations() []uint32 {
	list := make([]uint32, p.Scenario.Routes)
	for i, prefix := range destinations(p.Scenario.Routes, false) {
		list[i] = binary.BigEndian.Uint32(host(prefix).AsSlice())
	}
	return list
}

// sent is the header of the frames to the router.
func (p *path) sent() *frame {
	f := &frame{}
	dst, src := p.from.port.MAC, p.from.port.PeerMAC
	if p.Bridged {
		dst, src = p.to.mac, p.from.mac
	}
	if t := p.from.tunnel; t != nil {
		f.ethernet(p.from.port.MAC, p.from.port.PeerMAC, p.Underlay6)
		f.tunnel(t.Overlay, t.Remote, t.Local, t.Receive)
		if !p.Bridged {
			src = t.RouterMAC
		}
	}
	p.carried(f, p.from.tunnel, dst, src, initialTTL)
	return f
}

// received is the header that the router must send.
func (p *path) received() *frame {
	f := &frame{}
	dst, src, ttl := p.to.port.PeerMAC, p.to.port.MAC, uint8(initialTTL-1)
	if p.Bridged {
		dst, src, ttl = p.to.mac, p.from.mac, initialTTL
	}
	if t := p.to.tunnel; t != nil {
		f.ethernet(p.to.port.PeerMAC, p.to.port.MAC, p.Underlay6)
		f.tunnel(t.Overlay, t.Local, t.Remote, t.Send)
		if !p.Bridged {
			dst = t.RouterMAC
		}
	}
	p.carried(f, p.to.tunnel, dst, src, ttl)
	return f
}

// carried adds the tenant's packet, with its Ethernet header where the tunnel carries one.
func (p *path) carried(f *frame, t *Tunnel, dst, src net.HardwareAddr, ttl uint8) {
	if t == nil || t.Overlay.HasVNI() || p.Bridged {
		f.ethernet(dst, src, p.IPv6)
	}
	f.tenantPacket(p.from.address, p.to.address, ttl)
}

// tenantFrame is the frame on the tenant's side, to which the sizes of a scenario apply.
func (p *path) tenantFrame() *frame {
	f := &frame{}
	p.carried(f, nil, p.to.mac, p.from.mac, initialTTL)
	return f
}
