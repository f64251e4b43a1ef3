// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"fmt"
	"net/netip"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/vpn"
)

func withVni(s *intent.Set) { s.Instances[0].Vni = 300 }

// prefixPath makes a path of EVPN of host 192.0.2.N to a prefix, with what change sets.
func prefixPath(n byte, prefix string, change func(*vpn.Path)) vpn.Path {
	return path(n, prefix, func(p *vpn.Path) {
		p.Kind, p.Label = vpn.KindPrefix, 400
		p.Encaps, p.RouterMac = []apiv1.Encap{apiv1.Encap_ENCAP_VXLAN}, vpn.Mac{2, 0, 0, 0, 1, n}
		if change != nil {
			change(p)
		}
	})
}

// A prefix over VXLAN is sent to the VNI and to the router MAC that its path names, and is announced with ours.
func TestPrefixesOfEVPN(t *testing.T) {
	e := engine(t, withVni)
	e.SetPorts(map[string]bool{"vm1": true})
	if list := e.Announcements(); len(list) != 0 {
		t.Error("announced without a router MAC:", list)
	}
	e.SetRouterMac("02:00:00:00:01:01")
	list := e.Announcements()
	if len(list) != 1 || list[0].Kind != vpn.KindPrefix || list[0].Label != 300 || list[0].Prefix.String() !=
		"10.0.0.1/32" || list[0].RouterMac != (vpn.Mac{2, 0, 0, 0, 1, 1}) ||
		fmt.Sprint(list[0].Encaps, list[0].RD) != "[ENCAP_VXLAN] 192.0.2.1:1" {
		t.Errorf("%+v", list)
	}
	e.Update(prefixPath(2, "10.0.9.0/24", nil), prefixPath(3, "10.0.9.0/24", nil), prefixPath(2, "2001:db8::/64", nil))
	s := e.Desired()
	if len(s.Vnis) != 1 || s.Vnis[0].Vni != 300 || s.Vnis[0].GetVrf() != "vrf0" || len(s.Labels) != 0 {
		t.Error(s.Vnis, s.Labels)
	}
	if len(s.Routes) != 2 || len(s.Nexthops) != 3 { // two tunnels, and the group of both
		t.Error(s.Routes, s.Nexthops)
	}
	for _, h := range s.Nexthops {
		if x := h.GetTunnel(); x != nil && (x.Vni != 400 || x.Encap != apiv1.Encap_ENCAP_VXLAN ||
			x.RouterMac != "02:00:00:00:01:0"+x.Remote[len(x.Remote)-1:]) {
			t.Error(x)
		}
	}
	again := engine(t, withVni) // next hops keep their ids over a restart
	again.Hold(s)
	again.SetRouterMac("02:00:00:00:01:01")
	again.Update(prefixPath(3, "10.0.9.0/24", nil), prefixPath(2, "2001:db8::/64", nil),
		prefixPath(2, "10.0.9.0/24", nil))
	if ops := state.Diff(again.Desired(), s); len(ops) != 0 {
		t.Error("a restart changed objects:", ops)
	}
	e.Update(prefixPath(3, "10.0.9.0/24", func(p *vpn.Path) { p.RouterMac[5] = 9 })) // its router MAC changed
	found := false
	for _, h := range e.Desired().Nexthops {
		found = found || h.GetTunnel().GetRouterMac() == "02:00:00:00:01:09"
	}
	if !found {
		t.Error("the next hop kept the old router MAC:", e.Desired().Nexthops)
	}
}

func TestPrefixVerdicts(t *testing.T) {
	const p = "10.0.9.0/24"
	for _, c := range []struct {
		name, want string
		vni        uint32
		path       vpn.Path
	}{
		{"one", "192.0.2.2: used; ", 300, prefixPath(2, p, nil)},
		{"label", "192.0.2.2: other kind; ", 300, path(2, p, nil)},
		{"no VNI here", "192.0.2.2: other kind; ", 0, prefixPath(2, p, nil)},
		{"no router MAC", "192.0.2.2: bad router MAC; ", 300,
			prefixPath(2, p, func(p *vpn.Path) { p.RouterMac = vpn.Mac{} })},
		{"group address", "192.0.2.2: bad router MAC; ", 300,
			prefixPath(2, p, func(p *vpn.Path) { p.RouterMac = vpn.Mac{1} })},
		{"gateway", "192.0.2.2: overlay index; ", 300, prefixPath(2, p, func(p *vpn.Path) { p.Overlay = true })},
		{"Ethernet segment", "192.0.2.2: overlay index; ", 300,
			prefixPath(2, p, func(p *vpn.Path) { p.ESI[9] = 1 })},
		{"tag", "192.0.2.2: bad tag; ", 300, prefixPath(2, p, func(p *vpn.Path) { p.Tag = 1 })},
		{"VNI 0", "192.0.2.2: bad VNI; ", 300, prefixPath(2, p, func(p *vpn.Path) { p.Label = 0 })},
		{"MPLS", "192.0.2.2: no encapsulation; ", 300, prefixPath(2, p, func(p *vpn.Path) { p.Encaps = nil })},
		{"own", "192.0.2.1: own; ", 300, prefixPath(1, p, nil)},
		{"unreachable", "203.0.113.1: unreachable; ", 300, prefixPath(2, p, func(p *vpn.Path) {
			p.Nexthop = netip.MustParseAddr("203.0.113.1")
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := engine(t, func(s *intent.Set) { s.Instances[0].Vni = c.vni })
			e.Update(c.path)
			if got := verdicts(e, p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
