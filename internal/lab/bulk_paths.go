// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"fmt"
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// The labs of the measurement of bulk TCP. Guests have an MTU of 1500 or 9000; the wire carries their tunnels whole.
const (
	bulkMTU    = 1500
	bulkJumbo  = 9000
	bulkWire   = 1600
	bulkRules  = 1000
	plainName  = "plain" // the network whose ports have no offloads
	guardName  = "guard" // the network with stateful ports, rules and translation
	bulkVni    = 6000    // of the first network
	linuxVxlan = "kernel VXLAN"

	openVswitch = "Open vSwitch, DPDK, TSO"
	ovsVxlan    = "Open vSwitch VXLAN"
	vhostUser   = "vhost-user to vhost-user"
	vhostPlain  = vhostUser + ", no offloads" // what ports were before they took large segments
	vhostOvs    = openVswitch + ", vhost-user"
)

var (
	oneCorelane = []Host{{Name: "h1", Index: 1}}
	twoCorelane = []Host{{Name: "h1", Index: 1}, {Name: "h2", Index: 2}}
	oneLinux    = []Host{{Name: "h1", Index: 1, Linux: true}}
	oneOvs      = []Host{{Name: "h1", Index: 1, Linux: true, Ovs: true}}
	twoOvs      = []Host{{Name: "h1", Index: 1, Linux: true, Ovs: true}, {Name: "h2", Index: 2, Linux: true, Ovs: true}}
	twoLinux    = []Host{{Name: "h1", Index: 1, Linux: true}, {Name: "h2", Index: 2, Linux: true}}
)

var bulkTopologies = []Topology{
	{Name: "bulk-one", Title: "two guests of a Corelane host", WireMTU: bulkWire, Hosts: oneCorelane,
		Networks: []Network{bulkTwins("one", 1, bulkMTU, false), bulkTwins("jumbo", 2, bulkJumbo, false)}},
	{Name: "bulk-bridge", Title: "two guests of a kernel bridge", WireMTU: bulkWire, Wire: WireWhole, Hosts: oneLinux,
		Networks: []Network{bulkTwins("one", 1, bulkMTU, true), bulkTwins("jumbo", 2, bulkJumbo, true)}},
	{Name: "bulk-ovs", Title: "two guests of Open vSwitch", WireMTU: bulkWire, Wire: WireWhole, Hosts: oneOvs,
		Networks: []Network{bulkTwins("one", 1, bulkMTU, true), bulkTwins("jumbo", 2, bulkJumbo, true)}},
	{Name: "bulk-vhost", Title: "two virtio guests of a Corelane host", WireMTU: bulkWire, Hosts: oneCorelane,
		Networks: []Network{bulkVirtio("one", 1, bulkMTU, false), bulkVirtio("jumbo", 2, bulkJumbo, false),
			bulkVirtio(plainName, 3, bulkMTU, false)}},
	{Name: "bulk-vhost-ovs", Title: "two virtio guests of Open vSwitch", WireMTU: bulkWire, Wire: WireWhole,
		Hosts:    oneOvs,
		Networks: []Network{bulkVirtio("one", 1, bulkMTU, true), bulkVirtio("jumbo", 2, bulkJumbo, true)}},
	{Name: "bulk-memif", Title: "two Corelane hosts, connected by a memif", WireMTU: bulkJumbo + 100, Wire: WireMemif,
		Hosts: twoCorelane, Networks: append(bulkOverlays(),
			bulkNetwork("jumbo", 5, apiv1.Encap_ENCAP_VXLAN, bulkJumbo),
			bulkNetwork(guardName, 6, apiv1.Encap_ENCAP_VXLAN, bulkMTU))},
	{Name: "bulk-memif-whole", Title: "two Corelane hosts, connected by a memif with whole segments",
		WireMTU: bulkJumbo + 100, Wire: WireMemifWhole, Hosts: twoCorelane, Networks: bulkOverlays()},
	{Name: "bulk-veth", Title: "two Corelane hosts, connected by veth, MTU-sized packets on the wire",
		WireMTU: bulkWire, Wire: WireCut, Hosts: twoCorelane, Networks: bulkOverlays()},
	{Name: "bulk-veth-whole", Title: "two Corelane hosts, connected by veth, whole segments on the wire",
		WireMTU: bulkWire, Wire: WireWhole, Hosts: twoCorelane, Networks: bulkOverlays()[:1]},
	{Name: "bulk-ovs-two", Title: "two hosts of Open vSwitch with VXLAN, connected by veth", WireMTU: bulkWire,
		Hosts: twoOvs, Networks: bulkLinux()[:1]},
	{Name: "bulk-cut", Title: "two Linux hosts with VXLAN, MTU-sized packets on the wire", WireMTU: bulkJumbo + 100,
		Wire: WireCut, Hosts: twoLinux, Networks: bulkLinux()},
	{Name: "bulk-whole", Title: "two Linux hosts with VXLAN, whole segments on the wire", WireMTU: bulkJumbo + 100,
		Wire: WireWhole, Hosts: twoLinux, Networks: bulkLinux()},
}

func bulkTwins(name string, index int, mtu uint32, bridge bool) Network {
	return Network{Name: name, Index: index, MTU: mtu, Bridge: bridge, Twins: true, Hosts: []string{"h1"}}
}

func bulkVirtio(name string, index int, mtu uint32, bridge bool) Network {
	n := bulkTwins(name, index, mtu, bridge)
	n.Vhost, n.Plain = true, name == plainName
	return n
}

func bulkNetwork(name string, index int, encap apiv1.Encap, mtu uint32) Network {
	n := Network{Name: name, Index: index, Encap: encap, MTU: mtu, Hosts: []string{"h1", "h2"}}
	if encap == apiv1.Encap_ENCAP_VXLAN || encap == apiv1.Encap_ENCAP_GENEVE {
		n.Vni = uint32(bulkVni + index)
	}
	return n
}

func bulkOverlays() []Network {
	return []Network{
		bulkNetwork("vxlan", 1, apiv1.Encap_ENCAP_VXLAN, bulkMTU),
		bulkNetwork("geneve", 2, apiv1.Encap_ENCAP_GENEVE, bulkMTU),
		bulkNetwork("mplsoudp", 3, apiv1.Encap_ENCAP_MPLSOUDP, bulkMTU),
		bulkNetwork("mplsogre", 4, apiv1.Encap_ENCAP_MPLSOGRE, bulkMTU),
	}
}

func bulkLinux() []Network {
	list := []Network{bulkNetwork("vxlan", 1, apiv1.Encap_ENCAP_VXLAN, bulkMTU),
		bulkNetwork("jumbo", 5, apiv1.Encap_ENCAP_VXLAN, bulkJumbo)}
	for i := range list {
		list[i].Bridge = true
	}
	return list
}

// BulkPath is a way of bulk TCP, in the words of the tables.
type BulkPath struct {
	Name     string `json:"path"`
	Corelane bool   `json:"corelane"`
	MTU      int    `json:"mtu"` // of the guests
	lab      string
	network  string
}

// BulkPaths lists what is measured. A path and its peers are neighbours.
func BulkPaths() (list []BulkPath) {
	add := func(lab, network, name string, mtu int) {
		corelane := slices.Contains([]string{"bulk-one", "bulk-vhost", "bulk-memif", "bulk-memif-whole", "bulk-veth",
			"bulk-veth-whole"}, lab)
		list = append(list, BulkPath{name, corelane, mtu, lab, network})
	}
	for _, size := range []struct {
		network string
		mtu     int
	}{{"one", bulkMTU}, {"jumbo", bulkJumbo}} {
		add("bulk-one", size.network, "tap to tap", size.mtu)
		add("bulk-bridge", size.network, "kernel bridge", size.mtu)
		add("bulk-ovs", size.network, openVswitch, size.mtu)
		add("bulk-vhost", size.network, vhostUser, size.mtu)
		add("bulk-vhost-ovs", size.network, vhostOvs, size.mtu)
		if size.mtu == bulkMTU {
			add("bulk-vhost", plainName, vhostPlain, bulkMTU)
		}
	}
	for _, n := range bulkOverlays() {
		add("bulk-memif", n.Name, n.overlayName()+", memif", bulkMTU)
		add("bulk-memif-whole", n.Name, n.overlayName()+", memif, whole", bulkMTU)
		add("bulk-veth", n.Name, n.overlayName()+", veth", bulkMTU)
		if n.Name == "vxlan" {
			add("bulk-veth-whole", n.Name, "VXLAN, veth, whole", bulkMTU)
			add("bulk-cut", n.Name, linuxVxlan+", MTU-sized", bulkMTU)
			add("bulk-whole", n.Name, linuxVxlan+", whole", bulkMTU)
			add("bulk-ovs-two", n.Name, ovsVxlan, bulkMTU)
		}
	}
	add("bulk-memif", guardName, fmt.Sprintf("VXLAN, memif, stateful, %d rules, NAT", bulkRules), bulkMTU)
	add("bulk-memif", "jumbo", "VXLAN, memif", bulkJumbo)
	add("bulk-cut", "jumbo", linuxVxlan+", MTU-sized", bulkJumbo)
	add("bulk-whole", "jumbo", linuxVxlan+", whole", bulkJumbo)
	return list
}

// BulkTarget is the least ratio of the rates of two paths: one connection, from the first guest to the second one, with
// an MTU of 1500.
type BulkTarget struct {
	Of, To string
	Least  float64
	Aim    float64 // 0: none
}

// BulkTargets are checked by --check.
func BulkTargets() []BulkTarget {
	list := []BulkTarget{{"tap to tap", "kernel bridge", 0.5, 0.8}, {"tap to tap", openVswitch, 1, 0},
		{vhostUser, vhostPlain, 3, 0}, {vhostUser, vhostOvs, 1, 0}}
	for _, wire := range []string{"VXLAN, memif", "VXLAN, memif, whole", "VXLAN, veth", "VXLAN, veth, whole"} {
		list = append(list, BulkTarget{wire, linuxVxlan + ", MTU-sized", 1, 1.5},
			BulkTarget{wire, linuxVxlan + ", whole", 0.5, 1}, BulkTarget{wire, ovsVxlan, 1, 0})
	}
	for _, n := range bulkOverlays()[1:] {
		list = append(list, BulkTarget{n.overlayName() + ", memif", "VXLAN, memif", 0.9, 0},
			BulkTarget{n.overlayName() + ", memif, whole", "VXLAN, memif, whole", 0.9, 0},
			BulkTarget{n.overlayName() + ", veth", "VXLAN, veth", 0.9, 0})
	}
	return append(list, BulkTarget{fmt.Sprintf("VXLAN, memif, stateful, %d rules, NAT", bulkRules), "VXLAN, memif", 0.9,
		0})
}
