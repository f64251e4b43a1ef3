// SPDX-License-Identifier: Apache-2.0
package router

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/corelane/corelane/internal/bench/scenario"
)

// batch is input for `ip -batch` and similar tools.
type batch struct{ bytes.Buffer }

func (b *batch) add(format string, arguments ...any) {
	fmt.Fprintf(b, format, arguments...)
	b.WriteByte('\n')
}

func linuxVXLAN(tenant int) string  { return fmt.Sprintf("vxlan%d", tenant) }
func linuxBridge(tenant int) string { return fmt.Sprintf("bridge%d", tenant) }

// linuxLinks makes the devices of the router, with the generator's ends in their namespace.
func linuxLinks(s *scenario.Setup, generator string) []byte {
	b := &batch{}
	if s.Bridged {
		for tenant := range s.Tenants {
			b.add("link add %s type bridge stp_state 0 mcast_snooping 0", linuxBridge(tenant))
			b.add("link set %s up", linuxBridge(tenant))
		}
	}
	for _, p := range s.Ports {
		b.add("link add %s mtu %d address %v type veth peer name %s mtu %d netns %s", p.Name, p.MTU, p.MAC, p.Name,
			p.MTU, generator)
		if s.Bridged && !p.Wire {
			b.add("link set %s master %s", p.Name, linuxBridge(p.Tenant))
		} else {
			b.add("address add %v dev %s", p.Address, p.Name)
			b.add("neighbor add %v lladdr %v dev %s nud permanent", p.Peer, p.PeerMAC, p.Name)
		}
		b.add("link set %s up", p.Name)
	}
	for _, t := range s.Tunnels {
		linuxTunnel(b, s, t)
	}
	return b.Bytes()
}

// linuxTunnel makes the device of a VNI. Its forwarding table has the remote ends and their VNIs.
func linuxTunnel(b *batch, s *scenario.Setup, t scenario.Tunnel) {
	name := linuxVXLAN(t.Tenant)
	b.add("link add %s mtu %d address %v type vxlan id %d local %v dstport 4789 nolearning noudpcsum udp6zerocsumtx "+
		"udp6zerocsumrx",
		name, s.Ports[0].MTU, s.Ports[len(s.Ports)-1].MAC, t.Receive, t.Local)
	if s.Bridged {
		b.add("link set %s master %s", name, linuxBridge(t.Tenant))
	}
	b.add("link set %s up", name)
}

// linuxGeneratorLinks brings the generator's ends up, without ARP. Their MAC addresses do not matter: the stack there
// accepts no frame.
func linuxGeneratorLinks(s *scenario.Setup) []byte {
	b := &batch{}
	for _, p := range s.Ports {
		b.add("link set %s up arp off", p.Name)
	}
	return b.Bytes()
}

// linuxForwarding fills the tables of bridges and VXLAN devices, which do not learn.
func linuxForwarding(s *scenario.Setup) []byte {
	b := &batch{}
	for _, t := range s.Tunnels {
		if !s.Bridged {
			b.add("fdb add %v dev %s dst %v vni %d self permanent", t.RouterMAC, linuxVXLAN(t.Tenant), t.Remote, t.Send)
		}
	}
	for _, h := range s.Hosts {
		name := h.Port
		if name == "" {
			t := s.Tunnels[h.Tunnel]
			name = linuxVXLAN(t.Tenant)
			b.add("fdb add %v dev %s dst %v vni %d self permanent", h.MAC, name, t.Remote, t.Send)
		}
		b.add("fdb add %v dev %s master static", h.MAC, name)
		b.add("link set dev %s learning off", name)
	}
	return b.Bytes()
}

// linuxRoutes adds the routes of the wire and of the tenants. A single tenant has the main table; several have a table
// each, which costs the kernel more.
func linuxRoutes(s *scenario.Setup) []byte {
	b := &batch{}
	for _, t := range s.Tunnels {
		wire := s.Ports[len(s.Ports)-1]
		b.add("route add %v via %v dev %s", t.Remote, wire.Peer, wire.Name)
		if !s.Bridged {
			b.add("neighbor add %v lladdr %v dev %s nud permanent", linuxRemote(s.IPv6), t.RouterMAC,
				linuxVXLAN(t.Tenant))
		}
	}
	for _, p := range s.Ports {
		if !p.Wire && linuxTable(s, p.Tenant) != "main" {
			b.add("route add %v dev %s table %s", p.Address.Masked(), p.Name, linuxTable(s, p.Tenant))
		}
	}
	for _, r := range s.Routes {
		via, device := r.Host, r.Port
		if device == "" {
			via, device = linuxRemote(s.IPv6), linuxVXLAN(s.Tunnels[r.Tunnel].Tenant)
		}
		b.add("route add %v via %v dev %s onlink table %s", r.Prefix, via, device, linuxTable(s, r.Tenant))
	}
	return b.Bytes()
}

// linuxRemote is the next hop behind every VXLAN device. A static neighbour gives it the remote router's MAC address.
func linuxRemote(v6 bool) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 15: 1})
	}
	return netip.AddrFrom4([4]byte{169, 254, 0, 1})
}

func linuxTable(s *scenario.Setup, tenant int) string {
	if s.Tenants == 1 || s.Bridged {
		return "main"
	}
	return fmt.Sprint(1000 + tenant)
}

// linuxRules select the table of a tenant, for `ip -4` or `ip -6`.
func linuxRules(s *scenario.Setup) []byte {
	b := &batch{}
	rule := func(device string, tenant int) {
		if table := linuxTable(s, tenant); table != "main" {
			b.add("rule add pref %d iif %s table %s", 1000+tenant, device, table)
		}
	}
	for _, p := range s.Ports {
		if !p.Wire {
			rule(p.Name, p.Tenant)
		}
	}
	for _, t := range s.Tunnels {
		rule(linuxVXLAN(t.Tenant), t.Tenant)
	}
	return b.Bytes()
}

// linuxTracking has the rules that track the flows of tenants, each tenant in its own zone. The outer packets of
// tunnels are not tracked.
func linuxTracking(s *scenario.Setup) []byte {
	if !s.Stateful {
		return nil
	}
	b := &batch{}
	b.add("table inet corelane {")
	b.add("chain enter { type filter hook prerouting priority raw;")
	for _, p := range s.Ports {
		if p.Wire {
			b.add("iifname %q notrack", p.Name)
		} else {
			b.add("iifname %q ct zone set %d", p.Name, p.Tenant+1)
		}
	}
	for _, t := range s.Tunnels {
		b.add("iifname %q ct zone set %d", linuxVXLAN(t.Tenant), t.Tenant+1)
	}
	b.add("}")
	b.add(`chain leave { type filter hook output priority raw; oifname "wire" notrack; }`)
	b.add("chain forward { type filter hook forward priority filter; policy drop; ct state established,related " +
		"accept; ct state new accept; }")
	b.add("}")
	return b.Bytes()
}
