// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
)

const (
	attackFlows = 1 << 22 // 5-tuples; the generator begins again after the last one
	attackMACs  = 1 << 20 // more than the bridge learns in a trial
	probeSize   = 16      // of the generator, behind the header
	leastFrame  = 60
	jumbo       = 9000
	longest     = 65024 // that the generator sends
	// ARP and ND messages of a port that the master handles in a trial: 1,000 per second, and 256 at once
	mastersShare = 1100
)

// Lengths of headers, and offsets in them.
const (
	ethernetHeader  = 14
	ip4Header       = 20
	udpHeader       = 8
	icmpHeader      = 8
	vxlanOuter      = ethernetHeader + ip4Header + udpHeader + 8
	fragmentAt      = 6
	ttlAt           = 8
	protocolAt      = 9
	destinationAt   = 16
	destinationPort = 33434 // where no guest listens
)

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// sized makes all frames of a length.
func sized(bytes int) func(*attacker) error {
	return func(a *attacker) error {
		a.stream.Sizes = []uint32{uint32(bytes)}
		return nil
	}
}

// jumbo makes frames that take several packet buffers.
func (a *attacker) jumbo() error {
	a.port.MTU = jumbo
	a.wire.MTU = jumbo + wireRoom
	if a.port.Device == scenario.Vhost { // takes only frames that fit one packet buffer
		a.options = []string{"--mbuf-size", "9216", "--mbufs", "16383"}
	}
	return sized(jumbo)(a)
}

func (a *attacker) newFlows() error {
	a.stream.Flows.Count, a.stream.Flows.Shuffle = attackFlows, true
	return nil
}

// stopReading leaves the guest's ring full.
func (a *attacker) stopReading() error {
	a.stream, a.unread, a.kept = a.towards, attackPort, ringSize
	return nil
}

// syn replaces the UDP header by a TCP SYN.
func (a *attacker) syn() error {
	syn := make([]byte, 20)
	syn[12], syn[13], syn[15] = 5<<4, 2, 255 // length, SYN, window
	s := a.stream
	udp := len(s.Header) - udpHeader
	s.Header = slices.Concat(s.Header[:udp+4], syn[4:]) // with the ports
	a.ip()[protocolAt] = byte(layers.IPProtocolTCP)
	s.Lengths = slices.DeleteFunc(s.Lengths, func(l *apiv1.GeneratorLength) bool { return int(l.Offset) >= udp })
	s.Sizes[0] += uint32(len(syn) - udpHeader)
	s.Expected = append(s.Expected, syn[:len(syn)-udpHeader]...) // of any content: this moves the probe
	return a.newFlows()
}

// fragments gives the packets a fragment offset.
func (a *attacker) fragments() error {
	binary.BigEndian.PutUint16(a.ip()[fragmentAt:], 100)
	return a.newFlows()
}

func (a *attacker) ttl() error {
	a.ip()[ttlAt] = 1
	return nil
}

// broadcasts sends UDP to everybody in a bridge domain.
func (a *attacker) broadcasts() error {
	copy(a.stream.Header, broadcast)
	copy(a.ip()[destinationAt:], net.IPv4bcast.To4())
	a.prepare = bridgeOf250
	return nil
}

// newMACs sends to one host of a bridge domain, each frame with a source MAC that the bridge does not know.
func (a *attacker) newMACs() error {
	copy(a.stream.Header, bridgedHost)
	a.stream.SourceMacs = true
	a.stream.Flows = &apiv1.GeneratorFlows{Count: attackMACs, SourceAddresses: attackMACs}
	a.stream.Expected = append(make([]byte, vxlanOuter), a.stream.Header...) // of any content: where the probe is
	a.prepare = bridgeToHost
	return nil
}

// ip is the IPv4 header of the stream, to its end.
func (a *attacker) ip() []byte { return a.stream.Header[a.stream.InnerOffset:] }

func (a *attacker) ethernet(to net.HardwareAddr, kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{DstMAC: to, SrcMAC: a.port.PeerMAC, EthernetType: kind}
}

func (a *attacker) gratuitousARP() error {
	a.kept = mastersShare
	address := a.port.Peer.AsSlice()
	return fixed(a.stream, a.ethernet(broadcast, layers.EthernetTypeARP),
		arp(a.port.PeerMAC, address, address))
}

// arp is a request.
func arp(source net.HardwareAddr, from, to []byte) *layers.ARP {
	return &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6,
		ProtAddressSize: 4, Operation: layers.ARPRequest, SourceHwAddress: source, SourceProtAddress: from,
		DstHwAddress: make([]byte, 6), DstProtAddress: to}
}

// advertisements sends neighbour advertisements that nobody has asked for.
func (a *attacker) advertisements() error {
	a.kept = mastersShare
	source, all := netip.MustParseAddr("fe80::c1").AsSlice(), netip.MustParseAddr("ff02::1").AsSlice()
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: source, DstIP: all}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		return err
	}
	return fixed(a.stream, a.ethernet(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, layers.EthernetTypeIPv6), ip, icmp,
		&layers.ICMPv6NeighborAdvertisement{Flags: 0x20, TargetAddress: source, Options: layers.ICMPv6Options{
			{Type: layers.ICMPv6OptTargetAddress, Data: a.port.PeerMAC}}})
}

// icmpErrors sends "port unreachable" about packets of a flow that does not exist.
func (a *attacker) icmpErrors() error {
	to := netip.AddrFrom4([4]byte(a.ip()[destinationAt:])).AsSlice()
	quoted := &layers.IPv4{Version: 4, IHL: 5, TTL: 60, Protocol: layers.IPProtocolUDP, SrcIP: to,
		DstIP: a.port.Peer.AsSlice(), Length: ip4Header + udpHeader}
	udp := &layers.UDP{SrcPort: destinationPort, DstPort: destinationPort, Length: udpHeader}
	return fixed(a.stream, a.ethernet(a.port.MAC, layers.EthernetTypeIPv4),
		&layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: quoted.DstIP, DstIP: to},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeDestinationUnreachable,
			layers.ICMPv4CodePort)}, quoted, udp)
}

// fixed makes a stream send one header, which may be of any protocol. Nothing is expected back.
func fixed(s *apiv1.GeneratorStream, header ...gopacket.SerializableLayer) error {
	buf := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	for _, l := range header {
		if udp, ok := l.(*layers.UDP); ok {
			_ = udp.SetNetworkLayerForChecksum(&layers.IPv4{SrcIP: net.IPv4zero, DstIP: net.IPv4zero})
		}
	}
	if err := gopacket.SerializeLayers(buf, options, header...); err != nil {
		return err
	}
	s.Header, s.Fixed = buf.Bytes(), true
	s.InnerOffset, s.EntropyOffset, s.Lengths, s.Ip4Offsets, s.Flows = 0, 0, nil, nil, nil
	s.Expected = nil
	s.Sizes = []uint32{uint32(max(leastFrame, len(s.Header)+probeSize))}
	return nil
}
