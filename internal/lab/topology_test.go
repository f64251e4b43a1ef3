// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/state"
)

// The file of every host is valid, and means the same when it is loaded.
func TestNodesAreValid(t *testing.T) {
	for _, topology := range append(Topologies(), bulkTopologies...) {
		for _, h := range topology.Hosts {
			if h.Linux {
				continue
			}
			for _, u := range []Underlay{IPv4, IPv6} {
				node := topology.Node(h, u)
				var text bytes.Buffer
				if err := state.Write(&text, node); err != nil {
					t.Fatal(err)
				}
				back, err := state.Load("node.yaml", text.Bytes())
				if err != nil {
					t.Fatalf("%s %s %s: %v\n%s", topology.Name, h.Name, u, err, text.Bytes())
				}
				if ops := state.Diff(back, node); len(ops) > 0 {
					t.Errorf("%s %s %s: %v", topology.Name, h.Name, u, ops)
				}
			}
		}
	}
}

// Another underlay changes only the tunnels.
func TestUnderlayChangesOnlyTunnels(t *testing.T) {
	overlay, err := Find("overlay")
	if err != nil {
		t.Fatal(err)
	}
	h := overlay.Hosts[0]
	ops := state.Diff(overlay.Node(h, IPv6), overlay.Node(h, IPv4))
	if len(ops) != 6 {
		t.Errorf("%v", ops)
	}
	for _, op := range ops {
		if op.Verb != state.Set || op.Noun != "nexthop" {
			t.Errorf("%v", op)
		}
	}
}

// Both ends of a tunnel agree: the label or VNI that one sends is known at the other.
func TestTunnelsMeet(t *testing.T) {
	for _, topology := range append(Topologies(), bulkTopologies...) {
		for _, n := range topology.Networks {
			for _, from := range n.Hosts {
				for _, to := range topology.peers(n, topology.host(from)) {
					nh := tunnel(n, topology.host(from), to, IPv4).GetTunnel()
					if to.Linux {
						continue
					}
					far := topology.Node(to, IPv4)
					found := false
					for _, l := range far.Labels {
						found = found || l.Label == nh.Label && (l.GetVrf() == n.Name || l.GetBridge() == n.Name)
					}
					for _, v := range far.Vnis {
						found = found || v.Vni == nh.Vni && (v.GetVrf() == n.Name || v.GetBridge() == n.Name)
					}
					if !found {
						t.Errorf("%s: %s sends to %s with an unknown label or VNI: %v", topology.Name, from, to.Name,
							nh)
					}
				}
			}
		}
	}
}

// Names are short enough, addresses are in their subnets, and no address is used twice.
func TestNamesAndAddresses(t *testing.T) {
	for _, topology := range Topologies() {
		seen := map[string]string{}
		for _, g := range topology.Guests() {
			if len(g.Name()) > 15 || len(topology.Netns(g.Name())) > 63 {
				t.Errorf("%s is too long", g.Name())
			}
			for _, u := range []Underlay{IPv4, IPv6} {
				a, subnet := netip.MustParseAddr(g.Address(u)), netip.MustParsePrefix(g.Subnet(u))
				if !subnet.Contains(a) || subnet.Masked() != subnet {
					t.Errorf("%s: %s in %s", g.Name(), a, subnet)
				}
				if other := seen[a.String()]; other != "" {
					t.Errorf("%s and %s have %s", g.Name(), other, a)
				}
				seen[a.String()] = g.Name()
				if gw := netip.MustParseAddr(g.Gateway(u)); !subnet.Contains(gw) || gw == a {
					t.Errorf("%s: gateway %s", g.Name(), gw)
				}
			}
		}
	}
}

func TestFindNamesTheLabs(t *testing.T) {
	_, err := Find("nothing")
	if err == nil || !strings.Contains(err.Error(), "two-hosts, overlay") {
		t.Error(err)
	}
	if _, err := ParseUnderlay("ipx"); err == nil || !strings.Contains(err.Error(), "ipv4, ipv6") {
		t.Error(err)
	}
}
