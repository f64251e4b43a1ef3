// SPDX-License-Identifier: Apache-2.0
package router

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/corelane/corelane/internal/bench/scenario"
)

// The OpenFlow tables of the tenants' bridge. Register 0 is the tenant, register 1 the next hop.
const (
	ovsClassify = iota // by port, or by VNI or label
	ovsTrack           // by the state of the connection, when the scenario is stateful
	ovsForward         // by route or by MAC address
	ovsNexthop
)

// ovsFlows writes rules in the syntax of ovs-ofctl.
type ovsFlows struct {
	*scenario.Setup
	bytes.Buffer
	ports map[string]int // OpenFlow numbers by name
}

func (f *ovsFlows) add(table int, format string, arguments ...any) {
	fmt.Fprintf(f, "table=%d,", table)
	fmt.Fprintf(f, format, arguments...)
	f.WriteByte('\n')
}

// ovsTenantFlows are the rules of the bridge that joins tenants and tunnels.
func ovsTenantFlows(b *scenario.Setup) []byte {
	f := &ovsFlows{Setup: b, ports: ovsPortNumbers(b)}
	for _, p := range b.Ports {
		if !p.Wire {
			f.tenantPort(p)
		}
	}
	for i := range b.Tunnels {
		f.tunnel(i)
	}
	if b.Stateful {
		f.track()
	}
	for _, r := range b.Routes {
		f.route(r.Tenant, r.Prefix, f.nexthop(r.Port, r.Tunnel))
	}
	for _, h := range b.Hosts {
		f.add(ovsForward, "reg0=%d,dl_dst=%v actions=load:%d->NXM_NX_REG1[],goto_table:%d", h.Tenant, h.MAC,
			f.nexthop(h.Port, h.Tunnel), ovsNexthop)
	}
	return f.Bytes()
}

// nexthop is the number of a next hop: OpenFlow ports first, then tunnels.
func (f *ovsFlows) nexthop(port string, tunnel int) int {
	if port != "" {
		return f.ports[port]
	}
	return ovsTunnelPort + 1 + tunnel
}

// enter is the first action on a packet of a tenant.
func (f *ovsFlows) enter(tenant int) string {
	next := ovsForward
	if f.Stateful {
		next = ovsTrack
	}
	return fmt.Sprintf("load:%d->NXM_NX_REG0[],goto_table:%d", tenant, next)
}

// track adds rules that track flows, in a zone for each tenant. Packets pass the table twice.
func (f *ovsFlows) track() {
	const zone = "zone=NXM_NX_REG0[0..15]"
	family, _ := f.family()
	f.add(ovsTrack, "ct_state=-trk,%s actions=ct(table=%d,%s)", family, ovsTrack, zone)
	f.add(ovsTrack, "ct_state=+trk+est,%s actions=goto_table:%d", family, ovsForward)
	f.add(ovsTrack, "ct_state=+trk+new,%s actions=ct(commit,%s),goto_table:%d", family, zone, ovsForward)
}

// family returns OpenFlow's name of the tenants' address family, and the EtherType.
func (f *ovsFlows) family() (string, int) {
	if f.IPv6 {
		return "ipv6", 0x86dd
	}
	return "ip", 0x0800
}

func (f *ovsFlows) tenantPort(p scenario.Port) {
	family, _ := f.family()
	number := f.ports[p.Name]
	if f.Bridged {
		f.add(ovsClassify, "in_port=%d,%s actions=%s", number, family, f.enter(p.Tenant))
		f.add(ovsNexthop, "reg1=%d actions=output:%d", number, number)
		return
	}
	f.add(ovsClassify, "in_port=%d,dl_dst=%v,%s actions=%s", number, p.MAC, family, f.enter(p.Tenant))
	f.add(ovsNexthop, "reg1=%d,%s actions=dec_ttl,mod_dl_src:%v,mod_dl_dst:%v,output:%d", number, family, p.MAC,
		p.PeerMAC, number)
	f.route(p.Tenant, p.Address.Masked(), number)
}

func (f *ovsFlows) route(tenant int, prefix netip.Prefix, nexthop int) {
	match := "ip,nw_dst"
	if prefix.Addr().Is6() {
		match = "ipv6,ipv6_dst"
	}
	f.add(ovsForward, "priority=%d,reg0=%d,%s=%v actions=load:%d->NXM_NX_REG1[],goto_table:%d",
		1000+prefix.Bits(), tenant, match, prefix, nexthop, ovsNexthop)
}

// tunnel adds the rules of both directions. Labels carry whole frames, or packets without the Ethernet header, which a
// port of type legacy_l3 removes.
func (f *ovsFlows) tunnel(i int) {
	t := f.Tunnels[i]
	family, kind := f.family()
	wire := f.wire()
	gre := fmt.Sprintf("in_port=%d,mpls,mpls_label=%d,mpls_bos=1", ovsTunnelPort, t.Receive)
	send := fmt.Sprintf("%s,output:%d", ovsEnds(t), ovsTunnelPort)
	next := fmt.Sprintf("reg1=%d,%s actions=", f.nexthop("", i), family)
	switch {
	case t.Overlay.HasVNI() && f.Bridged:
		f.add(ovsClassify, "in_port=%d,tun_id=%d,%s actions=%s", ovsTunnelPort, t.Receive, family, f.enter(t.Tenant))
		f.add(ovsNexthop, "%sset_field:%d->tun_id,%s", next, t.Send, send)
	case t.Overlay.HasVNI():
		f.add(ovsClassify, "in_port=%d,tun_id=%d,dl_dst=%v,%s actions=%s", ovsTunnelPort, t.Receive, wire.MAC, family,
			f.enter(t.Tenant))
		f.add(ovsNexthop, "%sdec_ttl,mod_dl_src:%v,mod_dl_dst:%v,set_field:%d->tun_id,%s", next, wire.MAC, t.RouterMAC,
			t.Send, send)
	case f.Bridged:
		f.add(ovsClassify, "%s actions=decap(),decap(packet_type(ns=0,type=0)),%s", gre, f.enter(t.Tenant))
		f.add(ovsNexthop, "%sencap(mpls),set_field:%d->mpls_label,set_field:64->mpls_ttl,%s", next, t.Send, send)
	default:
		f.add(ovsClassify, "%s actions=pop_mpls:0x%04x,%s", gre, kind, f.enter(t.Tenant))
		f.add(ovsNexthop, "%sdec_ttl,push_mpls:0x8847,set_field:%d->mpls_label,%s", next, t.Send, send)
	}
}

func (f *ovsFlows) wire() scenario.Port { return f.Ports[len(f.Ports)-1] }

func ovsEnds(t scenario.Tunnel) string {
	field := "tun"
	if t.Local.Is6() {
		field = "tun_ipv6"
	}
	return fmt.Sprintf("set_field:%v->%s_src,set_field:%v->%s_dst", t.Local, field, t.Remote, field)
}

// ovsWireFlows are the rules of the bridge on the wire: tunnels pass, and nothing from the kernel.
func ovsWireFlows(b *scenario.Setup) []byte {
	f := &ovsFlows{Setup: b, ports: ovsPortNumbers(b)}
	wire := f.wire()
	family, dst := "ip", "nw_dst"
	if b.Underlay6 {
		family, dst = "ipv6", "ipv6_dst"
	}
	proto := family + ",nw_proto=47"
	if port := b.Overlay.UDPPort(); port != 0 {
		proto = fmt.Sprintf("%s,nw_proto=17,tp_dst=%d", family, port)
	}
	f.add(0, "in_port=LOCAL,%s actions=output:%d", proto, f.ports[wire.Name])
	f.add(0, "in_port=%d,%s,%s=%v actions=LOCAL", f.ports[wire.Name], proto, dst, wire.Address.Addr())
	return f.Bytes()
}
