// SPDX-License-Identifier: Apache-2.0
package router

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/scenario"
)

func TestCPUMask(t *testing.T) {
	for _, c := range []struct {
		cpus        []int
		want, plain string
	}{
		{[]int{0}, "1", "1"},
		{[]int{1, 3}, "a", "a"},
		{[]int{31}, "80000000", "80000000"},
		{[]int{0, 32, 65}, "2,00000001,00000001", "20000000100000001"},
	} {
		if got := cpuMask(c.cpus); got != c.want || plainMask(c.cpus) != c.plain {
			t.Errorf("%v: %s and %s; want %s and %s", c.cpus, got, plainMask(c.cpus), c.want, c.plain)
		}
	}
}

func TestLinuxSupports(t *testing.T) {
	for _, s := range []scenario.Scenario{{}, {Bridged: true}, {Overlay: scenario.VXLAN, Underlay6: true}} {
		if err := (&Linux{}).Supports(&s); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, s := range []scenario.Scenario{{Overlay: scenario.MPLSoUDP}, {Overlay: scenario.MPLSoGRE},
		{Overlay: scenario.Geneve}, {Bridged: true, Stateful: true}} {
		if err := (&Linux{}).Supports(&s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}

func TestLinuxTracks(t *testing.T) {
	root := t.TempDir()
	s := &scenario.Scenario{Stateful: true, Flows: 1000}
	if err := linuxTracks(s, root); err == nil || !strings.Contains(err.Error(), "nf_conntrack") {
		t.Errorf("without connection tracking: %v", err)
	}
	file := filepath.Join(root, "net/netfilter/nf_conntrack_max")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("999\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := linuxTracks(s, root); err == nil || !strings.Contains(err.Error(), "1000 flows; valid: up to "+
		"net.netfilter.nf_conntrack_max, 999") {
		t.Errorf("too many flows: %v", err)
	}
}

func TestLinuxConfiguration(t *testing.T) {
	setups := variants(t, func(s *scenario.Scenario) error { // those that do not depend on this machine's kernel
		s.Stateful = s.Stateful && !s.Bridged
		return nil
	})
	for _, c := range []struct {
		scenario string
		text     func(*scenario.Setup) []byte
		want     string
	}{
		{"routed/0", links, "link add tenant0 mtu 1500 address 02:c1:00:00:01:00 type veth peer name tenant0 mtu " +
			"1500 netns other"},
		{"routed/0", links, "neighbor add 10.0.0.2 lladdr 02:c1:00:00:02:00 dev tenant0 nud permanent"},
		{"routed/0", linuxRoutes, "route add 59.208.32.0/24 via 10.0.1.2 dev tenant1 onlink table main"},
		{"routed/1", linuxRules, "rule add pref 1001 iif tenant2 table 1001"},
		{"routed/1", linuxRoutes, "route add 59.208.32.0/24 via 10.1.1.2 dev tenant3 onlink table 1001"},
		{"routed/1", linuxTracking, `iifname "tenant2" ct zone set 2`},
		{"bridged/0", linuxForwarding, "fdb add 02:c1:00:00:02:01 dev tenant1 master static"},
		{"vxlan-encap/0", links, "link add vxlan0 mtu 1500 address 02:c1:00:00:01:01 type vxlan id 2001 local " +
			"192.0.2.1 dstport 4789 " +
			"nolearning noudpcsum udp6zerocsumtx udp6zerocsumrx"},
		{"vxlan-encap/0", linuxForwarding, "fdb add 02:c1:00:00:04:00 dev vxlan0 dst 198.51.100.1 vni 1001 self " +
			"permanent"},
		{"vxlan-encap/0", linuxRoutes, "route add 59.208.32.0/24 via 169.254.0.1 dev vxlan0 onlink table main"},
		{"vxlan-encap/2", linuxRoutes, "neighbor add fe80::1 lladdr 02:c1:00:00:04:00 dev vxlan0 nud permanent"},
		{"vxlan-encap/4", linuxRules, "rule add pref 1001 iif vxlan1 table 1001"},
		{"vxlan-bridge-decap/0", linuxForwarding,
			"fdb add 02:c1:00:00:03:00 dev vxlan0 dst 198.51.100.1 vni 1001 self permanent"},
	} {
		if text := string(c.text(setups[c.scenario])); !strings.Contains("\n"+text, "\n"+c.want+"\n") {
			t.Errorf("%s: no %q in\n%s", c.scenario, c.want, text)
		}
	}
	if text := linuxTracking(setups["routed/0"]); len(text) > 0 {
		t.Errorf("stateless, but %s", text)
	}
}

func links(s *scenario.Setup) []byte { return linuxLinks(s, "other") }

func TestAFPacket(t *testing.T) {
	for _, c := range []struct {
		p    scenario.Port
		want string
	}{
		{scenario.Port{Name: "wire", MTU: 1600, RingSize: 1024},
			"net_af_packet1,iface=wire,framesz=2048,framecnt=1024,blocksz=65536,qdisc_bypass=1"},
		{scenario.Port{Name: "wire", MTU: 9000, RingSize: 64},
			"net_af_packet1,iface=wire,framesz=9088,framecnt=64,blocksz=290816,qdisc_bypass=1"},
	} {
		if got := afPacket(1, c.p); got != c.want {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
}

func TestProtocolDrops(t *testing.T) {
	drops := map[string]uint64{}
	protocolDrops("Ip: Forwarding InDiscards ForwDatagrams OutNoRoutes\nIp: 1 3 7 0\nTcp: RtoAlgorithm InErrs\nTcp: "+
		"1 0\n", drops)
	protocolDrops("Ip6InDiscards                   \t5\nIp6InReceives                   \t9\nIp6InNoRoutes \t2\n",
		drops)
	if want := map[string]uint64{"IpInDiscards": 3, "Ip6InDiscards": 5, "Ip6InNoRoutes": 2}; !maps.Equal(drops, want) {
		t.Errorf("%v; want %v", drops, want)
	}
}
