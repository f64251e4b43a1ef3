// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// variants of all scenarios that can be built.
func variants() []Scenario {
	var list []Scenario
	for _, s := range List() {
		for _, bits := range []int{0, 1, 2, 3} {
			v := s
			v.IPv6, v.Underlay6 = bits&1 != 0, bits&2 != 0
			v.Both, v.Tenants, v.Sizes = true, 2, []int{78, 78}
			v.Name = fmt.Sprintf("%s ipv6=%v underlay6=%v", s.Name, v.IPv6, v.Underlay6)
			if v.Validate() == nil {
				list = append(list, v)
			}
		}
	}
	return list
}

func build(t *testing.T, s Scenario) *Setup {
	t.Helper()
	b, err := Build(s, "/run/bench", 1024)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return b
}

func profileOf(t *testing.T, b *Setup) *apiv1.GeneratorProfile {
	t.Helper()
	p, err := b.Profile()
	if err != nil {
		t.Fatalf("%s: %v", b.Name, err)
	}
	return p
}

// whole is a frame with this header, filled up to its size.
func whole(header []byte, size int) []byte {
	return append(slices.Clone(header), make([]byte, size-len(header))...)
}

// decode finds the layers of a frame. gopacket takes what is behind a label for IP; bridged, it is Ethernet.
func decode(t *testing.T, frame []byte, bridged bool) []gopacket.Layer {
	t.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	list := p.Layers()
	if i := slices.IndexFunc(list, func(l gopacket.Layer) bool {
		return l.LayerType() == layers.LayerTypeMPLS
	}); i >= 0 && bridged {
		p = gopacket.NewPacket(list[i].LayerPayload(), layers.LayerTypeEthernet, gopacket.Default)
		list = append(list[:i+1], p.Layers()...)
	} else if i < 0 && len(list) > 2 && list[2].LayerType() == layers.LayerTypeUDP &&
		list[2].(*layers.UDP).DstPort == mplsPort {
		p = gopacket.NewPacket(list[2].LayerPayload(), layers.LayerTypeMPLS, gopacket.Default)
		return append(list[:3], decodeRest(p, bridged)...)
	}
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("%v in % x", e.Error(), frame)
	}
	return list
}

func decodeRest(p gopacket.Packet, bridged bool) []gopacket.Layer {
	list := p.Layers()
	if bridged {
		return append(list[:1], gopacket.NewPacket(list[0].LayerPayload(), layers.LayerTypeEthernet,
			gopacket.Default).Layers()...)
	}
	return list
}

// types returns the layers that a frame of the scenario must have.
func types(s *Scenario, tunnelled bool) string {
	ip := func(v6 bool) string {
		if v6 {
			return "IPv6"
		}
		return "IPv4"
	}
	text := "Ethernet " + ip(s.IPv6) + " UDP Payload"
	if !tunnelled {
		return text
	}
	if !s.Bridged && !s.Overlay.HasVNI() {
		text = text[len("Ethernet "):]
	}
	return "Ethernet " + ip(s.Underlay6) + map[Overlay]string{VXLAN: " UDP VXLAN ", MPLSoUDP: " UDP MPLS ",
		MPLSoGRE: " GRE MPLS ", Geneve: " UDP Geneve "}[s.Overlay] + text
}

func TestHeadersAreWhole(t *testing.T) {
	for _, s := range variants() {
		b := build(t, s)
		for _, stream := range profileOf(t, b).Streams {
			t.Run(s.Name+" "+stream.Name, func(t *testing.T) {
				size := int(stream.Sizes[0])
				out := size - len(stream.Header) + len(stream.Expected)
				checkFrame(t, b, whole(stream.Header, size), stream.TxPort == "wire")
				checkFrame(t, b, whole(stream.Expected, out), stream.RxPort == "wire")
				if len(stream.Expected) != len(stream.ExpectedMask) {
					t.Errorf("%d bytes of mask for %d", len(stream.ExpectedMask), len(stream.Expected))
				}
				if in := stream.Header[stream.InnerOffset:]; len(in) != 28 && len(in) != 48 {
					t.Errorf("%d bytes from the inner IP header on", len(in))
				}
			})
		}
	}
}

// checkFrame checks the layers of a frame, that each of them ends where the frame does, and their checksums.
func checkFrame(t *testing.T, b *Setup, frame []byte, tunnelled bool) {
	t.Helper()
	var names string
	list := decode(t, frame, b.Bridged)
	for i, l := range list {
		if i > 0 {
			names += " "
		}
		names += l.LayerType().String()
		switch l := l.(type) {
		case *layers.IPv4:
			if int(l.Length) != len(l.Contents)+len(l.Payload) || sum(l.Contents) != 0xffff {
				t.Errorf("IPv4: length %d, sum %x", l.Length, sum(l.Contents))
			}
		case *layers.IPv6:
			if int(l.Length) != len(l.Payload) {
				t.Errorf("IPv6: length %d, is %d", l.Length, len(l.Payload))
			}
		case *layers.UDP:
			checkUDP(t, l, list[i-1], i > 2)
		}
	}
	if want := types(&b.Scenario, tunnelled); names != want {
		t.Errorf("layers %s, not %s", names, want)
	}
}

func checkUDP(t *testing.T, l *layers.UDP, ip gopacket.Layer, inner bool) {
	t.Helper()
	if int(l.Length) != udpSize+len(l.Payload) {
		t.Errorf("UDP: length %d, is %d", l.Length, udpSize+len(l.Payload))
	}
	v6, is6 := ip.(*layers.IPv6)
	if !is6 || (!inner && l.DstPort != destinationBase) {
		if l.Checksum != 0 {
			t.Errorf("UDP: checksum %x", l.Checksum)
		}
		return
	}
	pseudo := slices.Concat(v6.SrcIP, v6.DstIP, []byte{0, 0, byte(l.Length >> 8), byte(l.Length), 0, 0, 0, 17},
		l.Contents, l.Payload)
	if sum(pseudo) != 0xffff {
		t.Errorf("UDP over IPv6: sum %x", sum(pseudo))
	}
}

// sum of RFC 1071, not inverted: 0xffff over data with a right checksum.
func sum(data []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(data); i += 2 {
		s += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	s = s&0xffff + s>>16
	return uint16(s + s>>16)
}

// With the offsets of the profile the generator makes valid frames of every size.
func TestLengthsAndOffsets(t *testing.T) {
	for _, s := range variants() {
		s.Sizes = []int{78, 570, 9000}
		b := build(t, s)
		for _, stream := range profileOf(t, b).Streams {
			for _, size := range stream.Sizes {
				frame := whole(stream.Header, int(size))
				for _, l := range stream.Lengths {
					binary.BigEndian.PutUint16(frame[l.Offset:], uint16(size-l.Minus))
				}
				for _, at := range stream.Ip4Offsets {
					binary.BigEndian.PutUint16(frame[at+10:], 0)
					binary.BigEndian.PutUint16(frame[at+10:], ^sum(frame[at:at+ip4Size]))
				}
				if s.IPv6 {
					in := frame[stream.InnerOffset:]
					in[46], in[47] = 0, 0
					pseudo := slices.Concat(in[8:40], []byte{0, 0, in[4], in[5], 0, 0, 0, 17}, in[40:])
					binary.BigEndian.PutUint16(in[46:], ^sum(pseudo))
				}
				checkFrame(t, b, frame, stream.TxPort == "wire")
			}
		}
	}
}

// The mask and the expected header cover what a router must not change, and leave out what it may choose.
func TestExpected(t *testing.T) {
	s, err := Find("vxlan-encap")
	if err != nil {
		t.Fatal(err)
	}
	b := build(t, s)
	stream := profileOf(t, b).Streams[0]
	want := []struct {
		what     string
		at       int
		expected []byte
		mask     []byte
	}{
		{"outer MACs", 0, slices.Concat(b.Ports[1].PeerMAC, b.Ports[1].MAC), bytes.Repeat([]byte{0xff}, 12)},
		{"outer DSCP", 14, []byte{0x45, 0}, []byte{0xff, 0}},
		{"outer length", 16, []byte{0, 100}, []byte{0xff, 0xff}},
		{"outer id, DF, TTL", 18, []byte{0, 0, 0x40, 0, 64, 17}, []byte{0, 0, 0xbf, 0xff, 0, 0xff}},
		{"outer addresses", 26, net.IP{192, 0, 2, 1}, []byte{0xff, 0xff, 0xff, 0xff}},
		{"outer addresses", 30, net.IP{198, 51, 100, 1}, []byte{0xff, 0xff, 0xff, 0xff}},
		{"outer UDP", 34, []byte{0xc0, 0, 0x12, 0xb5, 0, 80, 0, 0}, []byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0}},
		{"VXLAN", 42, []byte{8, 0, 0, 0, 0, 3, 0xe9, 0}, bytes.Repeat([]byte{0xff}, 8)},
		{"inner MACs", 50, slices.Concat(b.Tunnels[0].RouterMAC, b.Ports[1].MAC), bytes.Repeat([]byte{0xff}, 12)},
		{"inner TTL", 72, []byte{63, 17}, []byte{0xff, 0xff}},
		{"inner addresses", 76, b.Ports[0].Peer.AsSlice(), []byte{0xff, 0xff, 0xff, 0xff}},
		{"inner UDP", 84, []byte{0x27, 0x10, 0x07, 0xd0, 0, 30, 0, 0}, []byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}},
	}
	for _, w := range want {
		if got := stream.Expected[w.at : w.at+len(w.expected)]; !bytes.Equal(got, w.expected) {
			t.Errorf("%s: % x, not % x", w.what, got, w.expected)
		}
		if got := stream.ExpectedMask[w.at : w.at+len(w.mask)]; !bytes.Equal(got, w.mask) {
			t.Errorf("%s: mask % x, not % x", w.what, got, w.mask)
		}
	}
	if stream.Sizes[0] != 64 || len(stream.Expected) != 92 {
		t.Errorf("frames of %d bytes, expected header of %d", stream.Sizes[0], len(stream.Expected))
	}
}

func TestUnchanged(t *testing.T) {
	for _, s := range variants() {
		p, err := build(t, s).Unchanged()
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range p.Streams {
			if !bytes.Equal(stream.Header, stream.Expected) {
				t.Errorf("%s %s: expected % x, sent % x", s.Name, stream.Name, stream.Expected, stream.Header)
			}
		}
	}
}
