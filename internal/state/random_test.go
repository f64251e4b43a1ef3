// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// randomState returns a valid state that uses few names, ids and addresses, so that two states have much in common and
// conflict in the rest.
func randomState(r *rand.Rand) *State {
	g := &generator{r: r, s: &State{Settings: &apiv1.Settings{}}, used: map[string]bool{}}
	if r.IntN(3) > 0 {
		g.s.Settings.MacAgeSeconds = uint32(10 + r.IntN(3))
		g.s.Settings.IcmpErrorsPerSecond = uint32(r.IntN(2))
	}
	g.workers()
	g.names()
	g.rules()
	g.ports()
	g.mirrors()
	g.nexthops()
	g.flood()
	g.leaves()
	g.nat()
	g.services()
	g.macs()
	g.routes()
	g.s.Normalize()
	return g.s
}

type generator struct {
	r    *rand.Rand
	s    *State
	used map[string]bool
}

func (g *generator) coin() bool { return g.r.IntN(2) == 0 }

// fresh returns true once for each key.
func (g *generator) fresh(key string) bool {
	if g.used[key] {
		return false
	}
	g.used[key] = true
	return true
}

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

func (g *generator) workers() {
	if g.coin() {
		return
	}
	g.s.Workers = []*apiv1.Worker{}
	for id := range uint32(4) {
		w := &apiv1.Worker{Id: id, Cpu: uint32(g.r.IntN(4)), Idle: apiv1.IdlePolicy(g.r.IntN(5)),
			SleepMaxUs: uint32(1 + g.r.IntN(100)), LoopThresholdUs: uint32(1 + g.r.IntN(1000))}
		alone := !slices.ContainsFunc(g.s.Workers, func(o *apiv1.Worker) bool {
			return o.Cpu == w.Cpu && (keepsCPU(o) || keepsCPU(w))
		})
		if g.coin() && alone {
			g.s.Workers = append(g.s.Workers, w)
		}
	}
	if len(g.s.Workers) == 0 {
		return
	}
	forwarding := pick(g, g.s.Workers) // a daemon without any takes no others
	for _, w := range g.s.Workers {
		if w != forwarding && g.coin() {
			w.Role = apiv1.WorkerRole(g.r.IntN(3))
		}
		if !forwards(w) && g.coin() {
			w.Target = fmt.Sprint(forwarding.Id)
		}
	}
}

func (g *generator) id(what string) uint32 {
	id := uint32(g.r.IntN(6))
	if id == 0 || !g.fresh(fmt.Sprint(what, id)) {
		return 0
	}
	return id
}

func (g *generator) names() {
	for i := range 4 {
		if g.r.IntN(3) > 0 {
			g.s.Vrfs = append(g.s.Vrfs, &apiv1.Vrf{Name: fmt.Sprint("v", i), Id: g.id("vrf")})
		}
		if g.r.IntN(3) > 0 {
			g.s.Bridges = append(g.s.Bridges, &apiv1.Bridge{Name: fmt.Sprint("b", i), Id: g.id("bridge"),
				NoLearning: g.coin(), NeighborSuppression: g.coin(), MulticastSnooping: g.coin()})
		}
		if g.r.IntN(3) > 0 {
			g.s.Meters = append(g.s.Meters, g.meter(fmt.Sprint("m", i)))
		}
	}
}

func (g *generator) meter(name string) *apiv1.Meter {
	if g.coin() {
		return &apiv1.Meter{Name: name, PacketRate: uint32(1 + g.r.IntN(2))}
	}
	return &apiv1.Meter{Name: name, BitRate: uint64(8000 + g.r.IntN(2)), BurstBytes: 10000}
}

func (g *generator) rules() {
	prefixes := []string{"10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0"}
	for i := range 2 {
		if g.coin() {
			g.s.Groups = append(g.s.Groups,
				&apiv1.AddressGroup{Name: fmt.Sprint("g", i), Prefixes: prefixes[g.r.IntN(3):]})
		}
	}
	for i := range 3 {
		if g.r.IntN(3) == 0 {
			continue
		}
		list := &apiv1.RuleList{Name: fmt.Sprint("l", i), DefaultAction: apiv1.RuleAction(g.r.IntN(2))}
		g.s.RuleLists = append(g.s.RuleLists, list)
		for id := range uint32(12) {
			if g.coin() {
				g.s.Rules = append(g.s.Rules, g.rule(list.Name, id+1))
			}
		}
	}
}

func (g *generator) rule(list string, id uint32) *apiv1.Rule {
	r := &apiv1.Rule{List: list, Id: id, Action: apiv1.RuleAction(g.r.IntN(2)), Log: g.coin()}
	switch g.r.IntN(5) {
	case 0:
		r.Protocol, r.DestinationPorts = pick(g, []string{"tcp", "udp", "sctp"}),
			pick(g, []string{"80", "8000-8999", "0"})
		r.SourcePorts = pick(g, []string{"", "0-1023"})
	case 1:
		r.Protocol, r.IcmpType, r.IcmpCode = "icmp", "3", pick(g, []string{"", "4", "0-1"})
	case 2:
		r.Protocol, r.IcmpType = "icmpv6", pick(g, []string{"", "128"})
	case 3:
		r.Protocol, r.Source = pick(g, []string{"", "47", "tcp"}), pick(g, []string{"10.0.0.0/8", "2001:db8::/32"})
	case 4:
		r.Destination = "192.0.2.1/32"
	}
	if len(g.s.Meters) > 0 && r.Action == apiv1.RuleAction_RULE_ACTION_ALLOW && g.coin() {
		r.Meter = pick(g, g.s.Meters).Name
	}
	if len(g.s.Groups) > 0 && r.Source == "" && g.coin() {
		r.SourceGroup = pick(g, g.s.Groups).Name
	}
	return r
}

func (g *generator) ports() {
	for i := range 7 {
		p := &apiv1.Port{Name: fmt.Sprint("p", i), Mtu: uint32(1500 + g.r.IntN(2))}
		device := i // most ports have the same device in all states
		if g.r.IntN(6) == 0 {
			device, p.Queues = g.r.IntN(7), uint32(g.r.IntN(3))
		}
		if i < 3 {
			g.fabric(p, fmt.Sprint("net_null", device))
		} else {
			g.tenant(p, fmt.Sprint("tap", device))
		}
	}
	g.hosts()
	g.subports()
}

// subports adds sub-ports to some tenant ports.
func (g *generator) subports() {
	for _, parent := range slices.Clone(g.s.Ports) {
		name := fmt.Sprint("s", g.r.IntN(3), parent.Name)
		if parent.Role != apiv1.PortRole_PORT_ROLE_TENANT || len(g.s.Bridges) == 0 || g.coin() || !g.fresh(name) {
			continue
		}
		g.s.Ports = append(g.s.Ports, &apiv1.Port{Name: name, Role: apiv1.PortRole_PORT_ROLE_TENANT,
			Bridge: pick(g, g.s.Bridges).Name, Mtu: parent.Mtu - uint32(g.r.IntN(2)),
			Device: &apiv1.Port_Subport{Subport: &apiv1.SubportDevice{Parent: parent.Name,
				Vlan: uint32(1 + g.r.IntN(3)), OuterVlan: uint32(g.r.IntN(2))}}})
	}
}

// hosts adds host ports to some fabric ports, and steered addresses to some of these.
func (g *generator) hosts() {
	for _, fabric := range slices.Clone(g.s.Ports) {
		name := fmt.Sprint("h", g.r.IntN(3), fabric.Name) // states have different names
		if fabric.Role != apiv1.PortRole_PORT_ROLE_FABRIC || g.coin() || !g.fresh(name) {
			continue
		}
		g.s.Ports = append(g.s.Ports, &apiv1.Port{Name: name, Role: apiv1.PortRole_PORT_ROLE_HOST, Fabric: fabric.Name,
			Device: &apiv1.Port_Tap{Tap: &apiv1.TapDevice{}}})
		for i := range g.r.IntN(3) {
			g.s.Steers = append(g.s.Steers, &apiv1.HostSteer{Port: fabric.Name, Address: fmt.Sprint("192.0.2.", i+1)})
		}
	}
}

func (g *generator) fabric(p *apiv1.Port, dev string) {
	if g.r.IntN(6) == 0 || !g.fresh(dev) {
		return
	}
	p.Role = apiv1.PortRole_PORT_ROLE_FABRIC
	p.Device = &apiv1.Port_Dpdk{Dpdk: &apiv1.DpdkDevice{Devargs: dev}}
	for range g.r.IntN(3) {
		if a := fmt.Sprintf("192.0.%d.1/24", 1+g.r.IntN(5)); g.fresh(a) {
			p.Addresses = append(p.Addresses, a)
		}
	}
	g.s.Ports = append(g.s.Ports, p)
}

func (g *generator) tenant(p *apiv1.Port, ifname string) {
	if g.r.IntN(6) == 0 || !g.fresh(ifname) {
		return
	}
	p.Role = apiv1.PortRole_PORT_ROLE_TENANT
	p.Device = &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: ifname}}
	if len(g.s.Bridges) > 0 && g.r.IntN(3) > 0 {
		p.Bridge = pick(g, g.s.Bridges).Name
	}
	if len(g.s.Vrfs) > 0 && g.r.IntN(3) > 0 {
		p.Vrf = pick(g, g.s.Vrfs).Name
		for _, other := range g.s.Ports {
			if other.Bridge != "" && other.Bridge == p.Bridge && other.Vrf != "" {
				p.Vrf = other.Vrf
			}
		}
		if len(g.s.Meters) > 0 && g.coin() {
			p.Stateful, p.EgressMeter, p.IngressMeter = true, pick(g, g.s.Meters).Name, pick(g, g.s.Meters).Name
		}
		if a := fmt.Sprint("10.0.0.", 1+g.r.IntN(3)); g.fresh(p.Vrf + a) {
			p.GuestAddresses = []string{a}
		}
	}
	if p.Vrf == "" && p.Bridge != "" && g.coin() {
		p.GuestAddresses = []string{fmt.Sprint("10.0.0.", 1+g.r.IntN(3))}
	}
	p.Stateful = p.Stateful || (p.Vrf != "" || p.Bridge != "") && g.coin()
	if p.Stateful && g.coin() {
		p.FlowLimit, p.FlowRate = uint32(g.r.IntN(3)), uint32(g.r.IntN(3))
	}
	if len(g.s.RuleLists) > 0 && p.Stateful && g.coin() {
		p.EgressRules, p.IngressRules = pick(g, g.s.RuleLists).Name, pick(g, g.s.RuleLists).Name
	}
	if p.Vrf != "" || p.Bridge != "" {
		g.s.Ports = append(g.s.Ports, p)
	}
}

func (g *generator) mirrors() {
	for i := range 3 {
		m := &apiv1.Mirror{Name: fmt.Sprint("x", i), SnapLength: uint32(64 + g.r.IntN(2))}
		switch {
		case len(g.s.Ports) > 0 && g.coin():
			m.Target = &apiv1.Mirror_Port{Port: pick(g, g.s.Ports).Name}
		case g.coin():
			m.Target = &apiv1.Mirror_Erspan{Erspan: &apiv1.MirrorErspan{Remote: "192.0.2.200",
				Session: uint32(g.r.IntN(2))}}
		case g.coin():
			m.Target = &apiv1.Mirror_Geneve{Geneve: &apiv1.MirrorVni{Remote: "192.0.2.200",
				Vni: uint32(1 + g.r.IntN(2))}}
		default:
			continue
		}
		g.s.Mirrors = append(g.s.Mirrors, m)
	}
	for _, p := range g.s.Ports {
		if len(g.s.Mirrors) > 0 && (p.Vrf != "" || p.Bridge != "") && g.coin() {
			p.Stateful, p.Mirror = true, pick(g, g.s.Mirrors).Name
		}
	}
	for _, r := range g.s.Rules {
		if len(g.s.Mirrors) > 0 && g.coin() {
			r.Mirror = pick(g, g.s.Mirrors).Name
		}
	}
}

// hostOf returns the address of a host on the link of a port, by which routes of both families may lead. The addresses
// of fabric ports are on different links, so their hosts have addresses that every link has.
func hostOf(p *apiv1.Port, host int) string {
	if p.Role == apiv1.PortRole_PORT_ROLE_FABRIC {
		return fmt.Sprintf("fe80::%x", host)
	}
	return fmt.Sprint("192.0.2.", host)
}

func (g *generator) nexthops() {
	var single []uint32
	for _, i := range g.r.Perm(6) {
		id := uint32(i + 1)
		n := &apiv1.Nexthop{Id: id}
		switch g.r.IntN(5) {
		case 0:
			n.Kind = &apiv1.Nexthop_Tunnel{Tunnel: &apiv1.TunnelNexthop{Encap: apiv1.Encap_ENCAP_MPLSOUDP,
				Remote: fmt.Sprint("192.0.2.", 100+g.r.IntN(3)), Label: uint32(16 + g.r.IntN(3))}}
			single = append(single, id)
		case 1, 2:
			ports := g.routable()
			if len(ports) == 0 {
				continue
			}
			port := pick(g, ports)
			n.Kind = &apiv1.Nexthop_Port{Port: &apiv1.PortNexthop{Port: port.Name, Address: hostOf(port, 9)}}
			single = append(single, id)
		case 3:
			if len(single) == 0 {
				continue
			}
			n.Kind = &apiv1.Nexthop_Group{Group: g.group(single)}
		case 4:
			if g.coin() {
				continue
			}
			n.Kind = &apiv1.Nexthop_Discard{Discard: &apiv1.Empty{}}
		}
		g.s.Nexthops = append(g.s.Nexthops, n)
	}
}

func (g *generator) group(single []uint32) *apiv1.GroupNexthop {
	group := &apiv1.GroupNexthop{}
	for _, id := range single {
		if len(group.Members) == 0 || g.coin() {
			group.Members = append(group.Members, &apiv1.GroupMember{Nexthop: id, Weight: uint32(1 + g.r.IntN(2))})
		}
	}
	return group
}

func (g *generator) flood() {
	for _, b := range g.s.Bridges {
		for _, n := range g.s.Nexthops {
			if n.GetTunnel() != nil && g.coin() {
				b.Flood = append(b.Flood, n.Id)
			}
		}
	}
}

// routable returns all ports but host ports.
func (g *generator) routable() []*apiv1.Port {
	return slices.DeleteFunc(slices.Clone(g.s.Ports), func(p *apiv1.Port) bool {
		return p.Role == apiv1.PortRole_PORT_ROLE_HOST
	})
}

func (g *generator) leaves() {
	for i := range uint32(3) {
		switch g.r.IntN(4) {
		case 0:
			if len(g.s.Vrfs) > 0 {
				v := pick(g, g.s.Vrfs).Name
				g.s.Labels = append(g.s.Labels, &apiv1.Label{Label: 16 + i, Target: &apiv1.Label_Vrf{Vrf: v}})
				g.s.Vnis = append(g.s.Vnis, &apiv1.Vni{Vni: 1 + i, Target: &apiv1.Vni_Vrf{Vrf: v}})
			}
		case 1:
			if len(g.s.Bridges) > 0 {
				b := pick(g, g.s.Bridges).Name
				l := &apiv1.Label{Label: 16 + i, Target: &apiv1.Label_Bridge{Bridge: b}}
				if len(g.s.Groups) > 0 && g.coin() {
					l.Sources = pick(g, g.s.Groups).Name
				}
				g.s.Labels = append(g.s.Labels, l)
			}
		case 2:
			if len(g.s.Nexthops) > 0 {
				n := pick(g, g.s.Nexthops).Id
				v := &apiv1.Vni{Vni: 1 + i, Target: &apiv1.Vni_Nexthop{Nexthop: n}}
				if len(g.s.Groups) > 0 && g.coin() {
					v.Sources = pick(g, g.s.Groups).Name
				}
				g.s.Vnis = append(g.s.Vnis, v)
			}
		}
		if ports := g.routable(); len(ports) > 0 && g.coin() {
			p := pick(g, ports)
			g.s.Neighbors = append(g.s.Neighbors, &apiv1.Neighbor{Port: p.Name, Address: hostOf(p, 50+int(i)),
				Mac: fmt.Sprint("02:00:00:00:00:0", 1+g.r.IntN(2))})
		}
	}
}

// nat adds rules that often have addresses of other rules or guests in another state.
func (g *generator) nat() {
	if len(g.s.Vrfs) == 0 {
		return
	}
	for id := range uint32(5) {
		m := &apiv1.NatRule{Id: 1 + id, Vrf: pick(g, g.s.Vrfs).Name, Protocol: apiv1.NatProtocol_NAT_PROTOCOL_TCP}
		if g.coin() {
			m.ExternalVrf = pick(g, g.s.Vrfs).Name
		}
		outside, last := fmt.Sprint("198.51.100.", 1+g.r.IntN(4)), ""
		switch g.r.IntN(4) {
		case 0:
			continue
		case 1:
			if g.coin() {
				outside = fmt.Sprint("10.0.0.", 1+g.r.IntN(3)) // guests have these addresses too
			}
			m.Kind = &apiv1.NatRule_Floating{Floating: &apiv1.FloatingNat{Inside: "10.9.0.1", Outside: outside}}
		case 2:
			if g.coin() {
				last = "198.51.100.9"
			}
			m.Kind = &apiv1.NatRule_Source{Source: &apiv1.SourceNat{Prefix: "10.9.0.0/16", First: outside, Last: last}}
			m.Except = []string{"10.0.0.0/8", "172.16.0.0/12"}[:g.r.IntN(3)]
			m.FirstPort = uint32(g.r.IntN(2) * 80)
		case 3:
			m.Kind = &apiv1.NatRule_Destination{Destination: &apiv1.DestinationNat{Address: outside,
				Port:     uint32(80 + g.r.IntN(2)),
				Backends: []*apiv1.NatBackend{{Address: "10.9.0.2", Weight: uint32(g.r.IntN(3))}}}}
		}
		Normalize(m)
		if newNatIndex(g.s.Nat).clash(m) == nil && natGuest(m, g.s.Ports) == "" {
			g.s.Nat = append(g.s.Nat, m)
		}
	}
}

// services adds services that often have the address of another one in another state, and endpoints.
func (g *generator) services() {
	if len(g.s.Vrfs) == 0 {
		return
	}
	taken := map[string]bool{}
	for i := range 4 {
		s := &apiv1.Service{Name: fmt.Sprint("s", i), Vrf: pick(g, g.s.Vrfs).Name,
			Address: fmt.Sprint("198.51.100.", 1+g.r.IntN(3)), Port: uint32(80 + g.r.IntN(2)),
			Protocol: apiv1.NatProtocol_NAT_PROTOCOL_TCP, Scheduler: apiv1.ServiceScheduler(g.r.IntN(2)),
			NoEndpoints: apiv1.ServiceNoEndpoints(g.r.IntN(2)), ClientPrefix: uint32(g.r.IntN(33))}
		if g.coin() {
			s.ExternalVrf = pick(g, g.s.Vrfs).Name
		}
		Normalize(s)
		if g.coin() || taken[front(s)] || serviceClash(s, g.s.Nat) != nil {
			continue
		}
		taken[front(s)] = true
		g.s.Services = append(g.s.Services, s)
		for j := range g.r.IntN(3) {
			e := &apiv1.Endpoint{Service: s.Name, Address: fmt.Sprint("10.9.0.", j), Port: uint32(g.r.IntN(2)) * 8080,
				Weight: uint32(g.r.IntN(3))}
			g.s.Endpoints = append(g.s.Endpoints, e)
		}
	}
}

func (g *generator) macs() {
	for _, b := range g.s.Bridges {
		for i := range uint32(4) {
			if g.coin() {
				g.mac(b.Name, i)
			}
		}
	}
}

func (g *generator) mac(bridge string, i uint32) {
	m := &apiv1.Mac{Bridge: bridge, Mac: fmt.Sprint("02:00:00:00:01:0", i)}
	tunnels := slices.DeleteFunc(slices.Clone(g.s.Nexthops), func(n *apiv1.Nexthop) bool {
		return n.GetTunnel() == nil
	})
	switch {
	case len(tunnels) > 0 && g.coin():
		m.Target = &apiv1.Mac_Nexthop{Nexthop: pick(g, tunnels).Id}
	default:
		for _, p := range g.s.Ports {
			if p.Bridge == bridge {
				m.Target = &apiv1.Mac_Port{Port: p.Name}
			}
		}
		if m.Target == nil {
			return
		}
	}
	if g.coin() {
		m.Addresses = []string{fmt.Sprint("10.77.0.", 1+g.r.IntN(2)), "fd77::1"}
	}
	g.s.Macs = append(g.s.Macs, m)
}

func (g *generator) routes() {
	if len(g.s.Nexthops) == 0 {
		return
	}
	vrfs := []string{FabricVrf}
	for _, v := range g.s.Vrfs {
		vrfs = append(vrfs, v.Name)
	}
	for i := range 12 {
		r := Route{Vrf: pick(g, vrfs), Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i % 6), 0, 0}), 17),
			Nexthop: pick(g, g.s.Nexthops).Id}
		if g.fresh(r.Vrf + r.Prefix.String()) {
			g.s.Routes = append(g.s.Routes, r)
		}
	}
}
