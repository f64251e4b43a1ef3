// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Bytes of headers.
const (
	ethernetSize = 14
	ip4Size      = 20
	ip6Size      = 40
	udpSize      = 8
	vxlanSize    = 8
	geneveSize   = 8
	greSize      = 4
	mplsSize     = 4
)

// UDP ports. The flows of tenants count up from the two bases; the source port has this many values.
const (
	vxlanPort       = 4789
	genevePort      = 6081
	mplsPort        = 6635
	entropyPort     = 49152
	sourceBase      = 10000
	destinationBase = 2000
	sourcePorts     = 10000
	initialTTL      = 64
)

// frame is a header that grows layer by layer, with the offsets that the generator needs.
type frame struct {
	layers  []gopacket.SerializableLayer
	n       int // bytes so far
	network gopacket.NetworkLayer
	lengths []*apiv1.GeneratorLength
	ip4     []uint32 // where IPv4 headers begin
	outer   int      // where the outer UDP header begins; 0: there is none
	inner   int      // where the last IP header begins
	zero    []int    // UDP headers that say "no checksum"
	loose   []loose
}

// loose are bits at an offset that may differ from the expected ones.
type loose struct {
	at   int
	bits []byte
}

func (f *frame) add(l gopacket.SerializableLayer, size int) {
	f.layers = append(f.layers, l)
	f.n += size
}

func (f *frame) loosen(at int, bits ...byte) { f.loose = append(f.loose, loose{at, bits}) }

func (f *frame) ethernet(dst, src net.HardwareAddr, v6 bool) {
	kind := layers.EthernetTypeIPv4
	if v6 {
		kind = layers.EthernetTypeIPv6
	}
	f.add(&layers.Ethernet{DstMAC: dst, SrcMAC: src, EthernetType: kind}, ethernetSize)
}

func (f *frame) ip(src, dst netip.Addr, proto layers.IPProtocol, ttl uint8) {
	f.inner = f.n
	if src.Is6() {
		f.lengths = append(f.lengths, &apiv1.GeneratorLength{Offset: uint32(f.n + 4), Minus: uint32(f.n + ip6Size)})
		ip := &layers.IPv6{Version: 6, NextHeader: proto, HopLimit: ttl, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
		f.network = ip
		f.add(ip, ip6Size)
		return
	}
	f.lengths = append(f.lengths, &apiv1.GeneratorLength{Offset: uint32(f.n + 2), Minus: uint32(f.n)})
	f.ip4 = append(f.ip4, uint32(f.n))
	ip := &layers.IPv4{Version: 4, IHL: 5, Flags: layers.IPv4DontFragment, Protocol: proto, TTL: ttl,
		SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	f.network = ip
	f.add(ip, ip4Size)
}

func (f *frame) udp(src, dst uint16) {
	udp := &layers.UDP{SrcPort: layers.UDPPort(src), DstPort: layers.UDPPort(dst)}
	_ = udp.SetNetworkLayerForChecksum(f.network) // fails only when this is not an IP header
	f.lengths = append(f.lengths, &apiv1.GeneratorLength{Offset: uint32(f.n + 4), Minus: uint32(f.n)})
	f.add(udp, udpSize)
}

// tenantPacket adds what tenants send: UDP, over IPv6 with the checksum that RFC 8200 requires.
func (f *frame) tenantPacket(src, dst netip.Addr, ttl uint8) {
	f.ip(src, dst, layers.IPProtocolUDP, ttl)
	if src.Is4() {
		f.loosen(f.n-ip4Size+10, 0xff, 0xff)
		f.zero = append(f.zero, f.n)
	} else {
		f.loosen(f.n+6, 0xff, 0xff)
	}
	f.loosen(f.n, 0xff, 0xff, 0xff, 0xff) // the flows' ports
	f.udp(sourceBase, destinationBase)
}

// tunnel adds everything between the wire's Ethernet header and the carried packet. Routers choose the entropy, and
// DSCP, TTL and id of the outer IP header.
func (f *frame) tunnel(o Overlay, src, dst netip.Addr, id uint32) {
	proto := layers.IPProtocolUDP
	if o == MPLSoGRE {
		proto = layers.IPProtocolGRE
	}
	if src.Is6() {
		f.loosen(f.n, 0x0f, 0xff, 0xff, 0xff)
		f.loosen(f.n+7, 0xff)
	} else {
		f.loosen(f.n+1, 0xff)
		f.loosen(f.n+4, 0xff, 0xff, 0x40, 0) // don't fragment
		f.loosen(f.n+8, 0xff, 0, 0xff, 0xff)
	}
	f.ip(src, dst, proto, initialTTL)
	if o == MPLSoGRE {
		f.add(&layers.GRE{Protocol: layers.EthernetTypeMPLSUnicast}, greSize)
	} else {
		f.outer = f.n
		f.zero = append(f.zero, f.n)
		f.loosen(f.n, 0xff, 0xff)
		f.loosen(f.n+6, 0xff, 0xff)
		f.udp(entropyPort, o.UDPPort())
	}
	switch o {
	case VXLAN:
		f.add(&layers.VXLAN{ValidIDFlag: true, VNI: id}, vxlanSize)
		return
	case Geneve:
		f.add(&layers.Geneve{Protocol: layers.EthernetTypeTransparentEthernetBridging, VNI: id}, geneveSize)
		return
	}
	f.loosen(f.n+2, 0x0e, 0xff) // traffic class and TTL
	f.add(&layers.MPLS{Label: id, StackBottom: true, TTL: initialTTL}, mplsSize)
}

// bytes serializes the header for a frame of a size.
func (f *frame) bytes(size int) ([]byte, error) {
	buf := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	all := append(f.layers[:len(f.layers):len(f.layers)], gopacket.Payload(make([]byte, size-f.n)))
	if err := gopacket.SerializeLayers(buf, options, all...); err != nil {
		return nil, err
	}
	header := buf.Bytes()[:f.n]
	for _, udp := range f.zero {
		binary.BigEndian.PutUint16(header[udp+6:], 0)
	}
	return header, nil
}

// mask has a 1 for each bit of the header that must be as expected.
func (f *frame) mask() []byte {
	m := make([]byte, f.n)
	for i := range m {
		m[i] = 0xff
	}
	for _, l := range f.loose {
		for i, bits := range l.bits {
			m[l.at+i] &^= bits
		}
	}
	return m
}
