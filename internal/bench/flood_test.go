// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
)

func TestFloodStreams(t *testing.T) {
	sc, err := scenario.Find("mplsoudp-encap")
	if err != nil {
		t.Fatal(err)
	}
	sc.Tenants, sc.Flows, sc.Stateful = 2, 2000, true
	setup, err := scenario.Build(sc, "/", 1024)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range floodKinds {
		p, err := setup.Profile()
		if err != nil {
			t.Fatal(err)
		}
		s := p.Streams[1]
		k.change(s)
		if s.Flows.Count != floodFlows || !s.Flows.Shuffle || len(s.Expected) != len(s.ExpectedMask) ||
			int(s.Sizes[0]) < len(s.Header)+16 {
			t.Errorf("%s: %v", k.name, s)
		}
		packet := gopacket.NewPacket(append(slices.Clone(s.Header), make([]byte, 16)...), layers.LayerTypeEthernet,
			gopacket.Default)
		tcp, _ := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if (tcp != nil) != (k.name == "syn") || tcp != nil && (!tcp.SYN || tcp.ACK || tcp.DataOffset != 5 ||
			tcp.SrcPort == 0 || len(s.Lengths) != 1) {
			t.Errorf("%s: TCP %v, lengths %v", k.name, tcp, s.Lengths)
		}
		ip, _ := packet.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if ip == nil || (ip.FragOffset != 0) != (k.name == "fragments") || ip.FragOffset != 0 && ip.Flags != 0 {
			t.Errorf("%s: IPv4 %v", k.name, ip)
		}
	}
}

func TestFloodOptions(t *testing.T) {
	good := FloodOptions{Rate: 1e6, FloodRate: 4e6, FlowLimit: 5, FlowRate: 5,
		Kinds: []string{"new", "syn", "fragments", "quota"}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*FloodOptions){
		"KIND: 'x' is unknown; valid: new, syn, fragments, quota": func(o *FloodOptions) {
			o.Kinds = []string{"new", "x"}
		},
		"--rate: 999 is out of range; valid: 1000 to 100000000": func(o *FloodOptions) { o.Rate = 999 },
		"--flood-rate: 100000001 is out of range; valid: 1000 to 100000000": func(o *FloodOptions) {
			o.FloodRate = 100_000_001
		},
		"--flow-limit: -1 is out of range; valid: 0 to 4294967295": func(o *FloodOptions) { o.FlowLimit = -1 },
		"--flow-rate: 4294967296 is out of range; valid: 0 to 4294967295": func(o *FloodOptions) {
			o.FlowRate = 1 << 32
		},
	} {
		o := good
		change(&o)
		if err := o.check(); err == nil || err.Error() != want || !input.Is(err) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFloodWeights(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		x, y uint32
	}{{1e6, 4e6, 100, 400}, {4e6, 1e6, 400, 100}, {3e5, 1e6, 100, 333}} {
		if x, y := weights(c.a, c.b); x != c.x || y != c.y {
			t.Errorf("%g, %g: %d, %d", c.a, c.b, x, y)
		}
	}
}
