// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
)

const (
	minPacket  = 14 // an Ethernet header
	maxPacket  = 65535
	validBytes = "hexadecimal bytes of an Ethernet frame, or @FILE with a pcap or pcapng file whose first packet is " +
		"taken"
)

// parsePacket reads "0200 0000 0001 ..." or "@file.pcap".
func parsePacket(text string) ([]byte, error) {
	var data []byte
	var err error
	if name, ok := strings.CutPrefix(text, "@"); ok {
		data, err = readPacket(name)
	} else {
		if data, err = parseHex(text); err != nil {
			err = errors.New(strings.TrimPrefix(err.Error(), "encoding/hex: "))
		}
	}
	switch {
	case err != nil:
		return nil, input.Errorf("--packet", validBytes, "%v", err)
	case len(data) < minPacket || len(data) > maxPacket:
		return nil, input.Errorf("--packet", fmt.Sprintf("%d to %d bytes", minPacket, maxPacket), "%d bytes", len(data))
	}
	return data, nil
}

// parseHex takes hexadecimal digits with any of ' ', ':', '-', '.' and newlines between bytes.
func parseHex(text string) ([]byte, error) {
	text = strings.TrimPrefix(text, "0x")
	return hex.DecodeString(strings.Map(func(r rune) rune {
		if strings.ContainsRune(" :-.\t\r\n", r) {
			return -1
		}
		return r
	}, text))
}

// readPacket returns the first packet of a capture file.
func readPacket(name string) ([]byte, error) {
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	data, link, err := firstPacket(file)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s holds no packet", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case link != layers.LinkTypeEthernet:
		return nil, fmt.Errorf("%s: link type %s, not Ethernet", name, link)
	}
	return data, nil
}

func firstPacket(file []byte) ([]byte, layers.LinkType, error) {
	if ng, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions); err == nil {
		data, _, err := ng.ReadPacketData()
		return data, ng.LinkType(), err
	}
	r, err := pcapgo.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, 0, errors.New("neither pcap nor pcapng")
	}
	data, _, err := r.ReadPacketData()
	return data, r.LinkType(), err
}

// summary describes a packet in one line, layer by layer.
func summary(data []byte) string {
	var parts []string
	for _, l := range gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy).Layers() {
		if s := layerText(l); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " / ")
}

// decodeTunnels registers the decoders of the UDP ports that carry tunnels.
func decodeTunnels(s *apiv1.Settings) {
	for _, tunnel := range []struct {
		ports []uint32
		layer gopacket.LayerType
	}{
		{s.MplsoudpPorts, layers.LayerTypeMPLS},
		{s.VxlanPorts, layers.LayerTypeVXLAN},
		{s.GenevePorts, layers.LayerTypeGeneve},
	} {
		for _, port := range tunnel.ports {
			layers.RegisterUDPPortLayerType(layers.UDPPort(port), tunnel.layer)
		}
	}
}

func layerText(l gopacket.Layer) string {
	if f, ok := l.(gopacket.NetworkLayer); ok && len(f.LayerContents()) == 0 {
		return "" // a decoder leaves this of a truncated header; the failure follows
	}
	switch l := l.(type) {
	case *layers.Ethernet:
		return fmt.Sprintf("%s > %s", l.SrcMAC, l.DstMAC)
	case *layers.Dot1Q:
		return fmt.Sprintf("vlan %d", l.VLANIdentifier)
	case *layers.ARP:
		return arpText(l)
	case *layers.IPv4:
		return fmt.Sprintf("%s > %s ttl %d", l.SrcIP, l.DstIP, l.TTL)
	case *layers.IPv6:
		return fmt.Sprintf("%s > %s hop limit %d", l.SrcIP, l.DstIP, l.HopLimit)
	case *layers.UDP:
		return fmt.Sprintf("UDP %d > %d", uint16(l.SrcPort), uint16(l.DstPort))
	case *layers.TCP:
		return fmt.Sprintf("TCP %d > %d %s", uint16(l.SrcPort), uint16(l.DstPort), tcpFlags(l))
	case *layers.ICMPv4:
		return "ICMP " + l.TypeCode.String()
	case *layers.ICMPv6:
		return "ICMPv6 " + l.TypeCode.String()
	case *layers.MPLS:
		return fmt.Sprintf("MPLS %d ttl %d", l.Label, l.TTL)
	case *layers.VXLAN:
		return fmt.Sprintf("VXLAN %d", l.VNI)
	case *layers.Geneve:
		return fmt.Sprintf("Geneve %d", l.VNI)
	case *layers.GRE:
		return "GRE"
	case *gopacket.Payload:
		return ""
	case *gopacket.DecodeFailure:
		return "malformed: " + l.Error().Error()
	}
	if name := l.LayerType().String(); !strings.HasPrefix(name, "ICMPv6") { // the body; the type is printed already
		return name
	}
	return ""
}

func arpText(a *layers.ARP) string {
	sender, target := dotted(a.SourceProtAddress), dotted(a.DstProtAddress)
	if a.Operation == layers.ARPReply {
		return fmt.Sprintf("ARP %s is at %x", sender, a.SourceHwAddress)
	}
	return fmt.Sprintf("ARP who has %s, tell %s", target, sender)
}

func dotted(addr []byte) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(addr), "[]"), " ", ".")
}

func tcpFlags(t *layers.TCP) string {
	var set strings.Builder
	for _, f := range []struct {
		on     bool
		letter byte
	}{{t.SYN, 'S'}, {t.FIN, 'F'}, {t.RST, 'R'}, {t.PSH, 'P'}, {t.ACK, '.'}} {
		if f.on {
			set.WriteByte(f.letter)
		}
	}
	return "[" + set.String() + "]"
}
