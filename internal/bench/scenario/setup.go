// SPDX-License-Identifier: Apache-2.0

// Package scenario defines what a router has to do in a benchmark, the same for every router.
package scenario

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Overlay of the packets on the wire.
type Overlay string

// What the wire carries.
const (
	Plain    Overlay = ""
	VXLAN    Overlay = "vxlan"
	MPLSoUDP Overlay = "mplsoudp"
	MPLSoGRE Overlay = "mplsogre"
	Geneve   Overlay = "geneve"
)

// UDPPort is the destination port of an overlay; 0 for GRE, which has none.
func (o Overlay) UDPPort() uint16 {
	return map[Overlay]uint16{VXLAN: vxlanPort, MPLSoUDP: mplsPort, Geneve: genevePort}[o]
}

// HasVNI says whether a VNI identifies the tenant, and routed packets have an Ethernet header. Otherwise a label does,
// without one.
func (o Overlay) HasVNI() bool { return o == VXLAN || o == Geneve }

// Direction of the traffic.
type Direction string

// Directions: where frames come from, and where they go.
const (
	TenantToWire   Direction = "tenant->wire"
	WireToTenant   Direction = "wire->tenant"
	TenantToTenant Direction = "tenant->tenant"
)

// Scenario is one line of `corelane bench list`.
type Scenario struct {
	Name      string
	Summary   string
	Direction Direction
	Overlay   Overlay
	Bridged   bool // by MAC address in a bridge domain; else routed: MAC addresses rewritten, TTL decremented
	Stateful  bool // each flow is tracked
	IPv6      bool // of the tenants
	Underlay6 bool
	Both      bool // traffic in both directions at once
	Tenants   int  // each with ports, routes and a label or VNI of its own
	// of the first tenant towards the sink, /24 spread over the address space; others, and IPv6, have one
	Routes    int
	Flows     int   // of all tenants together, in each direction
	NewFlows  int   // of all tenants together: flows that end each second and are replaced by new ones
	FlowLimit int   // flows that the last tenant may have at once, 0 = any number; Corelane only
	FlowRate  int   // new flows per second that it may make, 0 = any number
	Rules     int   // security rules of each tenant port in each direction; the last one allows everything
	Sizes     []int // of frames on the tenant's side, with Ethernet header, without FCS
	Workers   int
}

// Label is the name with the variants, so that different work does not have the same name.
func (s *Scenario) Label() string {
	label := s.Name
	for _, v := range []struct {
		on   bool
		what string
	}{{s.Stateful, "stateful"}, {s.IPv6, "IPv6"}, {s.Underlay6, "IPv6 underlay"}, {s.Both, "both ways"},
		{s.Tenants > 1, fmt.Sprintf("%d tenants", s.Tenants)},
		{s.NewFlows > 0, fmt.Sprintf("%d new flows/s", s.NewFlows)}, {s.Rules > 0, fmt.Sprintf("%d rules", s.Rules)}} {
		if v.on {
			label += ", " + v.what
		}
	}
	return label
}

// Setup is a scenario with all addresses. Adapters program routers from it.
type Setup struct {
	Scenario
	Ports   []Port // tenants' first, the wire last (none between two tenants)
	Routes  []Route
	Tunnels []Tunnel // one per tenant
	Hosts   []Host   // bridged: where the MAC addresses are
}

// Kinds of a port's device.
const (
	Memif = "memif"
	Vhost = "vhost"
	Tap   = "tap" // the kernel's interface has the name of Port.Interface()
)

// Port of the router, with the generator on its other side.
type Port struct {
	Name    string // "tenant0", "tenant1", "wire"
	Wire    bool
	Tenant  int              // index; of the wire: -1
	MAC     net.HardwareAddr // the router's
	PeerMAC net.HardwareAddr // the generator's: static neighbour
	// the router's: gateway of the tenant, or its end of the tunnels; its network is on the link
	Address  netip.Prefix
	Peer     netip.Addr // the generator's: next hop, and source of what a tenant's port sends
	Device   string     // kind: Memif, Vhost or Tap; empty: memif
	Socket   string     // path; the router is the server, the generator is the client (memif: id 0)
	RingSize int        // slots of a memif ring, and descriptors of any other queue
	Queues   int        // in each direction; by default one per worker
	MTU      int
}

// Interface is the kernel's name of a tap. Two runs at the same time do not have the same.
func (p *Port) Interface() string { return fmt.Sprintf("bench%d", os.Getpid()) }

// GeneratorPort is the generator's end of a port.
func (p *Port) GeneratorPort() *apiv1.GeneratorPort {
	g := &apiv1.GeneratorPort{Name: p.Name}
	switch p.Device {
	case Vhost:
		g.Device = &apiv1.GeneratorPort_Devargs{Devargs: fmt.Sprintf("net_virtio_user0,path=%s,queue_size=%d", p.Socket,
			p.RingSize)}
	case Tap:
		args := "net_af_packet0,iface=" + p.Interface()
		if p.MTU > minMTU {
			args += ",framesz=9216,blocksz=36864,framecnt=512"
		}
		g.Device = &apiv1.GeneratorPort_Devargs{Devargs: args}
	default:
		g.Device = &apiv1.GeneratorPort_Memif{Memif: &apiv1.GeneratorMemif{Socket: p.Socket,
			RingSize: uint32(p.RingSize), Queues: uint32(p.Queues)}}
	}
	return g
}

// Route of a tenant.
type Route struct {
	Tenant int
	Prefix netip.Prefix
	Port   string // deliver out of this port, to Host
	Host   netip.Addr
	Tunnel int // Port is empty: index of Setup.Tunnels
}

// Tunnel is one tenant's way over the wire, both directions. For routed VXLAN, the wire port's MAC address is also this
// router's inner MAC: the source of sent frames and the destination of received ones.
type Tunnel struct {
	Tenant    int
	Overlay   Overlay
	Local     netip.Addr
	Remote    netip.Addr // is reached over the wire port's Peer
	Send      uint32     // label or VNI
	Receive   uint32
	RouterMAC net.HardwareAddr // routed VXLAN: the other router's MAC, the inner destination of sent frames
}

// Host of a bridge domain.
type Host struct {
	Tenant int
	MAC    net.HardwareAddr
	Port   string // or, when empty, behind Tunnel
	Tunnel int
}
