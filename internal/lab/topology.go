// SPDX-License-Identifier: Apache-2.0

// Package lab builds small networks out of network namespaces: hosts with a corelaned each, a wire between them, and
// tenants behind them. A lab is nothing but namespaces, processes and its run directory. Each part is recorded before
// it is made, so that it can be removed even when its maker was killed.
package lab

import (
	"fmt"
	"slices"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Topology is a lab that can be brought up.
type Topology struct {
	Name, Title string
	WireMTU     uint32 // largest IP packet between hosts
	Wire        Wire
	Hosts       []Host // the one with Index n at n-1
	Networks    []Network
}

// Wire is what connects the hosts.
type Wire int

const (
	WireFinished   Wire = iota // veth pairs whose packets have MTU size and checksums, as on a cable
	WireCut                    // veth pairs whose packets have MTU size. Guests' veth pairs keep all offloads
	WireWhole                  // veth pairs with all offloads
	WireMemif                  // shared memory between two Corelane hosts
	WireMemifWhole             // the same, with large segments as one packet
)

// Host is a machine of the underlay.
type Host struct {
	Name  string
	Index int  // 1, 2, ...: part of its addresses
	Linux bool // the kernel has the tunnels, and there is no corelaned
	Ovs   bool // Linux, but Open vSwitch is the bridge
}

// Network belongs to a tenant, and has one guest on each of its hosts.
type Network struct {
	Name   string
	Index  int // part of its addresses
	Encap  apiv1.Encap
	Bridge bool   // a bridge domain: all guests in one subnet; else a VRF with a subnet per host
	Vni    uint32 // VXLAN and Geneve; 0: labels
	MTU    uint32 // of the guests' interfaces
	Twins  bool   // there are two guests on each host
	Vhost  bool   // guests have virtio-net devices, on vhost-user ports; else they have taps or veth pairs
	Plain  bool   // Corelane's ports offer the guests no offloads
	Hosts  []string
}

// Guest is one tenant's machine: a namespace with an interface eth0.
type Guest struct {
	Network Network
	Host    Host
	Second  bool // of two on the host
}

// Underlay is the family of the addresses between hosts.
type Underlay string

const (
	IPv4 Underlay = "ipv4"
	IPv6 Underlay = "ipv6"
)

// ParseUnderlay reads what --underlay takes.
func ParseUnderlay(text string) (Underlay, error) {
	if u := Underlay(text); u == IPv4 || u == IPv6 {
		return u, nil
	}
	return "", fmt.Errorf("underlay '%s' is unknown; valid: %s, %s", text, IPv4, IPv6)
}

const bothMTU = 1600

var topologies = []Topology{
	{
		Name: "two-hosts", Title: "two Corelane hosts on one wire, VRF red in MPLSoUDP", WireMTU: bothMTU,
		Hosts: []Host{{Name: "h1", Index: 1}, {Name: "h2", Index: 2}},
		Networks: []Network{
			{Name: "red", Index: 1, Encap: apiv1.Encap_ENCAP_MPLSOUDP, MTU: bothMTU, Hosts: []string{"h1", "h2"}},
		},
	},
	{
		Name: "overlay", Title: "two Corelane hosts and a Linux host: every overlay, and a VXLAN bridge domain " +
			"shared with the kernel",
		WireMTU: bothMTU,
		Hosts:   []Host{{Name: "h1", Index: 1}, {Name: "h2", Index: 2}, {Name: "h3", Index: 3, Linux: true}},
		Networks: []Network{
			{Name: "red", Index: 1, Encap: apiv1.Encap_ENCAP_MPLSOUDP, MTU: bothMTU, Hosts: []string{"h1", "h2"}},
			{Name: "green", Index: 2, Encap: apiv1.Encap_ENCAP_MPLSOGRE, MTU: bothMTU, Hosts: []string{"h1", "h2"}},
			{Name: "blue", Index: 3, Encap: apiv1.Encap_ENCAP_VXLAN, Vni: 3000, MTU: bothMTU,
				Hosts: []string{"h1", "h2"}},
			{Name: "amber", Index: 5, Encap: apiv1.Encap_ENCAP_GENEVE, Vni: 4000, MTU: bothMTU,
				Hosts: []string{"h1", "h2"}},
			{Name: "office", Index: 4, Encap: apiv1.Encap_ENCAP_VXLAN, Vni: 5000, MTU: 1500, Bridge: true,
				Hosts: []string{"h1", "h2", "h3"}},
		},
	},
}

// Topologies lists the labs that a user can bring up.
func Topologies() []Topology { return slices.Clone(topologies) }

// Find returns a lab by its name: one of Topologies, or one that a measurement brings up for itself.
func Find(name string) (Topology, error) {
	var names []string
	for _, t := range append(append(Topologies(), hostPath), bulkTopologies...) {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Topology{}, fmt.Errorf("lab '%s' is unknown; valid: %s", name, strings.Join(names, ", "))
}

// Guests lists the guests of all networks.
func (t Topology) Guests() []Guest {
	var list []Guest
	for _, n := range t.Networks {
		for _, name := range n.Hosts {
			list = append(list, Guest{Network: n, Host: t.host(name)})
			if n.Twins {
				list = append(list, Guest{Network: n, Host: t.host(name), Second: true})
			}
		}
	}
	return list
}

// Guest returns a guest by its network and host.
func (t Topology) Guest(network, host string) Guest {
	for _, g := range t.Guests() {
		if g.Network.Name == network && g.Host.Name == host {
			return g
		}
	}
	panic("lab " + t.Name + " has no " + network + " on " + host)
}

func (t Topology) host(name string) Host {
	for _, h := range t.Hosts {
		if h.Name == name {
			return h
		}
	}
	panic("lab " + t.Name + " has no host " + name)
}

// peers returns the other hosts of a network.
func (t Topology) peers(n Network, of Host) []Host {
	var list []Host
	for _, name := range n.Hosts {
		if name != of.Name {
			list = append(list, t.host(name))
		}
	}
	return list
}

// Netns is the namespace of a host, a guest or the wire ("wire").
func (t Topology) Netns(of string) string { return "cl-" + t.Name + "-" + of }

// Name returns the name of the guest for `lab run`.
func (g Guest) Name() string { return g.Network.Name + "-" + g.Host.Name + g.suffix() }

// Port is the name of the guest's port on its host.
func (g Guest) Port() string { return g.Network.Name + g.suffix() }

func (g Guest) suffix() string {
	if g.Second {
		return "-2"
	}
	return ""
}

// number is part of the guest's addresses.
func (g Guest) number() int {
	if g.Second {
		return 100 + g.Host.Index
	}
	return g.Host.Index
}

// Address is the host's in the underlay.
func (h Host) Address(u Underlay) string {
	if u == IPv6 {
		return fmt.Sprintf("2001:db8:ffff::%d", h.Index)
	}
	return fmt.Sprintf("192.0.2.%d", h.Index)
}

// cidr is the address with its prefix length.
func (h Host) cidr(u Underlay) string {
	return h.Address(u) + map[Underlay]string{IPv4: "/24", IPv6: "/64"}[u]
}

func (h Host) mac() string { return fmt.Sprintf("02:c1:00:00:01:%02x", h.Index) }

// routerMac is the MAC address of the host's virtual router in routed VXLAN.
func (h Host) routerMac() string { return fmt.Sprintf("02:c1:00:00:02:%02x", h.Index) }

// Subnet returns the guest's subnet: the whole network's if it is bridged, else the host's part of it.
func (g Guest) Subnet(u Underlay) string {
	part := g.number()
	if g.Network.Bridge {
		part = 0
	}
	if u == IPv6 {
		return fmt.Sprintf("2001:db8:%d:%d::/64", g.Network.Index, part)
	}
	return fmt.Sprintf("10.%d.%d.0/24", g.Network.Index, part)
}

// Address is the guest's in family u, which is independent of the underlay.
func (g Guest) Address(u Underlay) string {
	base, _, _ := strings.Cut(g.Subnet(u), "/")
	if u == IPv6 {
		return fmt.Sprintf("%s%d", base, 10+g.number())
	}
	return fmt.Sprintf("%s%d", strings.TrimSuffix(base, "0"), 10+g.number())
}

// Gateway returns the address of the gateway of a routed guest.
func (g Guest) Gateway(u Underlay) string {
	base, _, _ := strings.Cut(g.Subnet(u), "/")
	if u == IPv6 {
		return base + "1"
	}
	return strings.TrimSuffix(base, "0") + "1"
}

func length(subnet string) string {
	_, n, _ := strings.Cut(subnet, "/")
	return "/" + n
}

func (g Guest) cidr(u Underlay) string { return g.Address(u) + length(g.Subnet(u)) }

func (g Guest) gatewayCidr(u Underlay) string { return g.Gateway(u) + length(g.Subnet(u)) }

// label is the one by which host h receives a network's packets. Each host has its own.
func (n Network) label(h Host) uint32 { return uint32(1000 + 10*n.Index + h.Index) }

// nexthop is the id of the tunnel to a host.
func (n Network) nexthop(to Host) uint32 { return uint32(10*n.Index + to.Index) }
