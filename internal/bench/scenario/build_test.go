// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	var names []string
	for _, s := range List() {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if found, err := Find(s.Name); err != nil || found.Summary != s.Summary || s.Summary == "" {
			t.Errorf("%s: found %v, %v", s.Name, found, err)
		}
		names = append(names, s.Name)
	}
	want := "vxlan-encap vxlan-decap vxlan-bridge-encap vxlan-bridge-decap mplsoudp-encap mplsoudp-decap " +
		"mplsoudp-bridge-encap " +
		"mplsoudp-bridge-decap mplsogre-encap mplsogre-decap mplsogre-bridge-encap mplsogre-bridge-decap " +
		"geneve-encap geneve-decap geneve-bridge-encap geneve-bridge-decap routed bridged"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s\nnot %s", got, want)
	}
	_, err := Find("vxlan-encaps")
	if err == nil || !strings.Contains(err.Error(), "similar: vxlan-encap, vxlan-decap,") {
		t.Errorf("%v", err)
	}
}

func TestBadScenarios(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Scenario)
		want   string
	}{
		{"vxlan-encap", func(s *Scenario) {
			s.IPv6 = true
		}, "frame size 64 has no room for IPv6 headers and the generator's probe; valid: 78 to 9000"},
		{"vxlan-encap", func(s *Scenario) { s.Sizes = nil }, "0 frame sizes; valid: 1 to 64 of them"},
		{"vxlan-encap", func(s *Scenario) {
			s.Sizes = []int{64, 63}
		}, "frame size 63 is out of range; valid: 64 to 9000"},
		{"vxlan-encap", func(s *Scenario) {
			s.Sizes = []int{9001}
		}, "frame size 9001 is out of range; valid: 64 to 9000"},
		{"vxlan-encap", func(s *Scenario) { s.Flows = 0 }, "flows 0 is out of range; valid: 1 to 16777216"},
		{"vxlan-encap", func(s *Scenario) {
			s.Flows = 1<<24 + 1
		}, "flows 16777217 is out of range; valid: 1 to 16777216"},
		{"vxlan-encap", func(s *Scenario) {
			s.Routes = 1000001
		}, "routes 1000001 is out of range; valid: 1 to 1000000"},
		{"vxlan-encap", func(s *Scenario) { s.Tenants = 65 }, "tenants 65 is out of range; valid: 1 to 64"},
		{"vxlan-encap", func(s *Scenario) {
			s.Tenants, s.Flows = 3, 2
		}, "2 flows do not reach 3 tenants; valid: at least one flow for each tenant"},
		{"vxlan-encap", func(s *Scenario) { s.Workers = 17 }, "workers 17 is out of range; valid: 1 to 16"},
		{"vxlan-encap", func(s *Scenario) {
			s.Overlay = "gre"
		}, "overlay 'gre' is unknown; valid: vxlan, mplsoudp, mplsogre, geneve"},
		{"vxlan-encap", func(s *Scenario) {
			s.Overlay = Plain
		}, "tenant->wire needs an overlay; valid: vxlan, mplsoudp, mplsogre, geneve"},
		{"vxlan-encap", func(s *Scenario) {
			s.Direction = "up"
		}, "direction 'up' is unknown; valid: tenant->wire, wire->tenant, tenant->tenant"},
		{"vxlan-encap", func(s *Scenario) {
			s.Direction = TenantToTenant
		}, "tenant->tenant has no wire that VXLAN could be on"},
		{"vxlan-bridge-encap", func(s *Scenario) {
			s.Routes = 2
		}, "2 routes, but vxlan-bridge-encap looks up MAC addresses; valid: 1"},
		{"routed", func(s *Scenario) { s.IPv6, s.Sizes, s.Routes = true, []int{78}, 2 },
			"2 routes of IPv6, but the generator varies the last 32 bits of addresses, which /64 prefixes have in " +
				"common; valid: 1"},
		{"routed", func(s *Scenario) { s.Underlay6 = true }, "an IPv6 underlay, but no tunnel that it would carry"},
	} {
		s, err := Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		c.change(&s)
		if err := s.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%v\nnot %s", err, c.want)
		}
		if _, err := Build(s, "/run/bench", 1024); err == nil {
			t.Errorf("built in spite of %s", c.want)
		}
	}
}

func TestBadPlaces(t *testing.T) {
	s := List()[0]
	for _, ring := range []int{0, 32, 1000, 32768} {
		if _, err := Build(s, "/run/bench", ring); err == nil || !strings.Contains(err.Error(), "power of two") {
			t.Errorf("ring size %d: %v", ring, err)
		}
	}
	if _, err := Build(s, strings.Repeat("/long", 20), 1024); err == nil ||
		!strings.Contains(err.Error(), "path is too long") {
		t.Errorf("long path: %v", err)
	}
}

func TestParseSizes(t *testing.T) {
	for text, want := range map[string][]int{"64": {64}, "64,1500": {64, 1500}, "imix": IMIX, "": nil, "64,big": nil} {
		got, err := ParseSizes(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	count := map[int]int{}
	for _, size := range IMIX {
		count[size]++
	}
	if count[64] != 7 || count[570] != 4 || count[1518] != 1 {
		t.Errorf("the mix is %v", count)
	}
}

func TestPorts(t *testing.T) {
	s, _ := Find("mplsoudp-decap")
	s.Tenants, s.Sizes = 2, []int{9000}
	b := build(t, s)
	if len(b.Ports) != 3 || b.Ports[1].Name != "tenant1" || !b.Ports[2].Wire ||
		b.Ports[2].Socket != "/run/bench/wire.sock" {
		t.Errorf("%+v", b.Ports)
	}
	if b.Ports[0].MTU != 8986 || b.Ports[2].MTU != 9086 {
		t.Errorf("MTU %d and %d", b.Ports[0].MTU, b.Ports[2].MTU)
	}
	s, _ = Find("routed")
	s.Tenants = 2
	if b := build(t, s); len(b.Ports) != 4 || b.Ports[3].Tenant != 1 || len(b.Tunnels) != 0 {
		t.Errorf("%+v", b.Ports)
	}
}

// No address, MAC address, label or VNI is used twice.
func TestNothingTwice(t *testing.T) {
	for _, s := range List() {
		s.Tenants, s.Routes = maxTenants, 1
		b := build(t, s)
		seen := map[string]string{}
		once := func(value, what string) {
			if other := seen[value]; other != "" {
				t.Errorf("%s: %s is %s and %s", s.Name, value, other, what)
			}
			seen[value] = what
		}
		for _, p := range b.Ports {
			once(p.MAC.String(), p.Name)
			once(p.PeerMAC.String(), p.Name+"'s peer")
			once(p.Address.String(), p.Name+"'s address")
			once(p.Peer.String(), p.Name+"'s peer's address")
			once(p.Socket, p.Name+"'s socket")
		}
		for _, u := range b.Tunnels {
			once(u.Remote.String(), "a remote end")
			once(u.RouterMAC.String(), "a remote router")
		}
	}
}

func TestDestinations(t *testing.T) {
	reserved := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24"),
		netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("224.0.0.0/3")}
	first := map[byte]int{}
	seen := map[netip.Prefix]bool{}
	const n = 100000
	for _, p := range destinations(n, false) {
		if seen[p] || p.Masked() != p || p.Bits() != 24 {
			t.Fatalf("%s twice, or no prefix", p)
		}
		seen[p] = true
		first[p.Addr().As4()[0]]++
		for _, r := range reserved {
			if r.Overlaps(p) {
				t.Errorf("%s is in %s", p, r)
			}
		}
	}
	for octet, count := range first { // an even spread gives 457
		if count < 380 || count > 530 {
			t.Errorf("%d.0.0.0/8 has %d", octet, count)
		}
	}
	if len(first) != 219 {
		t.Errorf("spread over %d first bytes", len(first))
	}
	if a, b := destinations(n, false), destinations(n, false); !slices.Equal(a, b) ||
		!slices.Equal(a[:7], destinations(7, false)) {
		t.Error("not always the same")
	}
}

// Every flow's destination has a route towards the sink, and there are as many flows as in the scenario.
func TestFlows(t *testing.T) {
	s, _ := Find("vxlan-encap")
	s.Routes, s.Flows, s.Tenants = 1000, 100001, 2
	b := build(t, s)
	prefixes := map[netip.Prefix]bool{}
	for _, r := range b.Routes {
		if r.Tenant == 0 && r.Port == "" && r.Tunnel == 0 {
			prefixes[r.Prefix] = true
		}
	}
	p := profileOf(t, b)
	flows := p.Streams[0].Flows
	if len(prefixes) != 1000 || len(flows.Destinations) != 1000 || len(p.Streams[1].Flows.Destinations) != 0 {
		t.Fatalf("%d prefixes, %d and %d destinations", len(prefixes), len(flows.Destinations),
			len(p.Streams[1].Flows.Destinations))
	}
	for _, d := range flows.Destinations {
		a := netip.AddrFrom4([4]byte{byte(d >> 24), byte(d >> 16), byte(d >> 8), byte(d)})
		if !prefixes[netip.PrefixFrom(a, 24).Masked()] {
			t.Errorf("no route to %s", a)
		}
	}
	if flows.Count != 50001 || p.Streams[1].Flows.Count != 50000 {
		t.Errorf("%d and %d flows", flows.Count, p.Streams[1].Flows.Count)
	}
	if flows.SourcePorts*flows.DestinationPorts < maxFlows || sourceBase+flows.SourcePorts > 65535 ||
		destinationBase+flows.DestinationPorts > 65535 {
		t.Errorf("%d source and %d destination ports", flows.SourcePorts, flows.DestinationPorts)
	}
}

// Answers of a connection have its addresses and ports, exchanged.
func TestWayBack(t *testing.T) {
	s, _ := Find("vxlan-encap")
	s.Both, s.Flows = true, 100000
	p := profileOf(t, build(t, s))
	there, back := p.Streams[0], p.Streams[1]
	if there.TxPort != back.RxPort || there.RxPort != back.TxPort || there.Name == back.Name {
		t.Errorf("%s and %s", there.Name, back.Name)
	}
	in, out := there.Header[there.InnerOffset:], back.Header[back.InnerOffset:]
	if string(in[12:16]) != string(out[16:20]) || string(in[16:20]) != string(out[12:16]) {
		t.Errorf("there % x, back % x", in[12:20], out[12:20])
	}
	if back.Flows.SourcePorts != 10 || back.Flows.DestinationPorts != sourcePorts || back.Flows.Count != 100000 {
		t.Errorf("%v", back.Flows)
	}
}

func TestLabel(t *testing.T) {
	for want, s := range map[string]Scenario{
		"routed":                        {Name: "routed", Tenants: 1},
		"vxlan-encap, IPv6, 3 tenants":  {Name: "vxlan-encap", Tenants: 3, IPv6: true},
		"bridged, stateful, both ways":  {Name: "bridged", Stateful: true, Both: true},
		"mplsogre-decap, IPv6 underlay": {Name: "mplsogre-decap", Underlay6: true},
	} {
		if got := s.Label(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
