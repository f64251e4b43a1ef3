// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/vpn"
)

var rt = vpn.Target{Value: [6]byte{0xfd, 0xe8, 0, 0, 0, 0}} // 65000:0

func engine(t testing.TB, change func(*intent.Set)) *vpn.Engine {
	t.Helper()
	h := &host{set: &intent.Set{Bgp: &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", TunnelAddress: "192.0.2.1",
		LabelMin: 1000, LabelMax: 1050, NexthopMin: 5000, NexthopMax: 9000, StaleSeconds: 3600, DeferralSeconds: 30,
		MaxPaths: 100, ResendSeconds: 10, Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOUDP}},
		Peers: []*agentv1.Peer{{Address: reflector.String()}, {Address: "192.0.2.253"}}}}
	h.addInstance(0)
	h.set.Attachments = []*agentv1.Attachment{{Port: &apiv1.Port{Name: "vm1", Vrf: "vrf0",
		GuestAddresses: []string{"10.0.0.1"}, Gateways: []string{"10.0.0.254/24"}}}}
	if change != nil {
		change(h.set)
	}
	e := vpn.New(vpn.NewJournal())
	e.Tick(time.Unix(1e9, 0))
	e.SetIntent(h.set)
	e.SetReach([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("0.0.0.0/0")})
	e.PeerUp(reflector)
	e.PeerUp(netip.MustParseAddr("192.0.2.253"))
	return e
}

// path makes a path of host 192.0.2.N to a prefix, with what change sets.
func path(n byte, prefix string, change func(*vpn.Path)) vpn.Path {
	p := vpn.Path{Key: vpn.Key{Peer: reflector, RD: vpn.Target{Form: 1, Value: [6]byte{192, 0, 2, n, 0, 1}},
		Prefix: netip.MustParsePrefix(prefix)}, Nexthop: netip.AddrFrom4([4]byte{192, 0, 2, n}),
		Label: 2000 + uint32(n),
		Attrs: &vpn.Attrs{Targets: []vpn.Target{rt}, Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOGRE,
			apiv1.Encap_ENCAP_MPLSOUDP}, LocalPref: 100, Originator: netip.AddrFrom4([4]byte{192, 0, 2, n})}}
	if change != nil {
		change(&p)
	}
	return p
}

func verdicts(e *vpn.Engine, prefix string) string {
	text := ""
	e.Judge("vrf0", netip.MustParsePrefix(prefix), func(j vpn.Judged) {
		text += fmt.Sprintf("%v: %s; ", j.Path.Nexthop, j.Verdict)
	})
	return text
}

func TestVerdicts(t *testing.T) {
	const p = "10.0.9.0/24"
	for _, c := range []struct {
		name, prefix, want string
		paths              []vpn.Path
	}{
		{"one", p, "192.0.2.2: used; ", []vpn.Path{path(2, p, nil)}},
		{"shared", p, "192.0.2.2: used; 192.0.2.3: used; ", []vpn.Path{path(3, p, nil), path(2, p, nil)}},
		{"preference", p, "192.0.2.3: used; 192.0.2.2: local pref; ", []vpn.Path{path(2, p, nil),
			path(3, p, func(p *vpn.Path) { p.LocalPref = 200 })}},
		{"AS path", p, "192.0.2.3: used; 192.0.2.2: AS path; ", []vpn.Path{path(3, p, nil),
			path(2, p, func(p *vpn.Path) { p.ASPath = 1 })}},
		{"MED", p, "192.0.2.3: used; 192.0.2.2: MED; ", []vpn.Path{path(3, p, nil),
			path(2, p, func(p *vpn.Path) { p.MED = 1 })}},
		{"long-lived stale", p, "192.0.2.3: used; 192.0.2.2: stale; ", []vpn.Path{path(3, p, nil),
			path(2, p, func(p *vpn.Path) { p.LongStale, p.LocalPref = true, 200 })}},
		{"long-lived stale alone", p, "192.0.2.2: used; ", []vpn.Path{
			path(2, p, func(p *vpn.Path) { p.LongStale = true })}},
		{"two reflectors", p, "192.0.2.2: used; 192.0.2.2: duplicate; ", []vpn.Path{path(2, p, nil),
			path(2, p, func(p *vpn.Path) { p.Peer = netip.MustParseAddr("192.0.2.253") })}},
		{"own", p, "192.0.2.7: own; ", []vpn.Path{path(7, p, func(p *vpn.Path) {
			p.Originator = netip.MustParseAddr("192.0.2.1")
		})}},
		{"own address", p, "192.0.2.1: own; ", []vpn.Path{path(1, p, nil)}},
		{"a guest here", "10.0.0.1/32", "192.0.2.2: local; ", []vpn.Path{path(2, "10.0.0.1/32", nil)}},
		{"a gateway's network", "10.0.0.0/24", "192.0.2.2: local; ", []vpn.Path{path(2, "10.0.0.0/24", nil)}},
		{"other target", p, "192.0.2.2: not imported; ", []vpn.Path{path(2, p, func(p *vpn.Path) { p.Targets = nil })}},
		{"implicit null", p, "192.0.2.2: bad label; ", []vpn.Path{path(2, p, func(p *vpn.Path) { p.Label = 3 })}},
		{"loopback", p, "127.0.0.1: bad next hop; ", []vpn.Path{path(2, p, func(p *vpn.Path) {
			p.Nexthop = netip.MustParseAddr("127.0.0.1")
		})}},
		{"a default route does not count", p, "203.0.113.1: unreachable; ", []vpn.Path{path(2, p, func(p *vpn.Path) {
			p.Nexthop = netip.MustParseAddr("203.0.113.1")
		})}},
		{"plain VPNv4", p, "192.0.2.2: no encapsulation; ", []vpn.Path{path(2, p, func(p *vpn.Path) {
			p.Encaps = nil
		})}},
		{"GRE only", p, "192.0.2.2: no encapsulation; ", []vpn.Path{path(2, p, func(p *vpn.Path) {
			p.Encaps = []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOGRE}
		})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := engine(t, nil)
			e.Update(c.paths...)
			if got := verdicts(e, c.prefix); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDefaultEncapOfAPeer(t *testing.T) {
	e := engine(t, func(s *intent.Set) { s.Peers[0].DefaultEncap = apiv1.Encap_ENCAP_MPLSOGRE })
	e.Update(path(2, "10.0.9.0/24", func(p *vpn.Path) { p.Encaps = nil }))
	hops := e.Desired().Nexthops
	if len(hops) != 1 || hops[0].GetTunnel().GetEncap() != apiv1.Encap_ENCAP_MPLSOGRE {
		t.Error(hops)
	}
}

func TestBounds(t *testing.T) {
	e := engine(t, func(s *intent.Set) { s.Instances[0].RouteLimit, s.Bgp.MaxPaths = 2, 3 })
	for i := range byte(5) {
		e.Update(path(2, fmt.Sprintf("10.0.%d.0/24", i+1), nil))
	}
	if s := e.Status(); s.Paths != 3 || s.Refused != 2 {
		t.Errorf("%+v", s)
	}
	routes := e.Desired().Routes
	if len(routes) != 2 {
		t.Fatal(routes)
	}
	e.Withdraw(path(2, routes[0].Prefix.String(), nil).Key) // makes room for the third one
	if routes = e.Desired().Routes; len(routes) != 2 {
		t.Error(routes)
	}
	e = engine(t, func(s *intent.Set) { s.Bgp.NexthopMax = s.Bgp.NexthopMin })
	e.Update(path(2, "10.0.1.0/24", nil), path(3, "10.0.2.0/24", nil))
	if s := e.Desired(); len(s.Routes) != 1 || len(s.Nexthops) != 1 {
		t.Error(s.Routes, s.Nexthops)
	}
}

func TestMaxGroup(t *testing.T) {
	e := engine(t, nil)
	for i := range byte(vpn.MaxGroup + 1) {
		e.Update(path(10+i, "10.0.9.0/24", nil))
	}
	left := 0
	e.Judge("", netip.Prefix{}, func(j vpn.Judged) {
		if j.Verdict == vpn.TooManyPaths {
			left++
		}
	})
	s := e.Desired()
	if left != 1 || len(s.Nexthops) != vpn.MaxGroup+1 {
		t.Error(left, len(s.Nexthops))
	}
	for i := range byte(vpn.MaxGroup + 1) {
		e.Withdraw(path(10+i, "10.0.9.0/24", nil).Key)
	}
	if s = e.Desired(); len(s.Nexthops) != 0 || len(s.Routes) != 0 {
		t.Error("left over:", s.Nexthops, s.Routes)
	}
}

// Withdrawn and "the session died" are different facts.
func TestStale(t *testing.T) {
	e := engine(t, nil)
	e.Update(path(2, "10.0.1.0/24", nil), path(2, "10.0.2.0/24", nil))
	e.PeerDown(reflector)
	if n := len(e.Desired().Routes); n != 2 {
		t.Fatalf("%d routes after the end of the session", n)
	}
	e.Update(path(3, "10.0.2.0/24", func(p *vpn.Path) { p.Peer = netip.MustParseAddr("192.0.2.253"); p.LocalPref = 1 }))
	if got := verdicts(e, "10.0.2.0/24"); got != "192.0.2.3: used; 192.0.2.2: stale; " {
		t.Error(got)
	}
	e.PeerUp(reflector)
	e.Update(path(2, "10.0.2.0/24", nil))
	if n := len(e.Desired().Routes); n != 2 {
		t.Errorf("%d routes before End-of-RIB", n)
	}
	e.EndOfRib(reflector)
	e.Tick(time.Unix(1e9+9, 0))
	if n := len(e.Desired().Routes); n != 2 {
		t.Errorf("%d routes while a reflector that was restarted may hear of more", n)
	}
	e.Tick(time.Unix(1e9+10, 0))
	if routes := e.Desired().Routes; len(routes) != 1 || routes[0].Prefix.String() != "10.0.2.0/24" {
		t.Error(routes)
	}
	e.PeerDown(reflector)
	e.Tick(time.Unix(1e9+3609, 0))
	if n := len(e.Desired().Routes); n != 1 {
		t.Error(n)
	}
}

func TestAStaleTimeEnds(t *testing.T) {
	e := engine(t, nil)
	e.Update(path(2, "10.0.1.0/24", nil))
	e.PeerDown(reflector)
	e.Tick(time.Unix(1e9+3600, 0))
	if routes := e.Desired().Routes; len(routes) != 0 {
		t.Error(routes)
	}
}

func TestAnnouncements(t *testing.T) {
	e := engine(t, nil)
	if list := e.Announcements(); len(list) != 0 {
		t.Error("a port that the data plane does not have is announced:", list)
	}
	e.SetPorts(map[string]bool{"vm1": true})
	list := e.Announcements()
	if len(list) != 1 || list[0].Prefix.String() != "10.0.0.1/32" || list[0].Label != 1000 ||
		list[0].RD.String() != "192.0.2.1:1" || list[0].Nexthop.String() != "192.0.2.1" {
		t.Error(list)
	}
}

// A label rests after its instance, so that packets which are still sent with it do not reach another tenant.
func TestLabelsRest(t *testing.T) {
	j := vpn.NewJournal()
	e := vpn.New(j)
	set := func(at int64, names ...string) map[string]uint32 {
		s := &intent.Set{Bgp: &agentv1.Bgp{RouterId: "192.0.2.1", TunnelAddress: "192.0.2.1", LabelMin: 1000,
			LabelMax: 1001}}
		for _, n := range names {
			s.Instances = append(s.Instances, &agentv1.Instance{Vrf: n})
		}
		e.Tick(time.Unix(at, 0))
		e.SetIntent(s)
		labels := map[string]uint32{}
		for _, i := range e.Instances() {
			labels[i.Config.Vrf] = i.Label
		}
		return labels
	}
	set(1e9, "a", "b")
	if got := set(1e9+1, "b", "c"); got["c"] != 0 {
		t.Error("the label of an instance that has just ended was given again:", got)
	}
	set(1e9+2, "b")
	if got := set(1e9+700, "b", "d"); got["d"] != 1000 || got["b"] != 1001 {
		t.Error(got)
	}
}

// What instances and segments import is what reflectors are asked for, each target once.
func TestImports(t *testing.T) {
	e := engine(t, func(s *intent.Set) {
		s.Instances[0].ImportTargets = []string{"65000:7", "65000:0"}
		s.Instances = append(s.Instances, &agentv1.Instance{Vrf: "more",
			ImportTargets: []string{"192.0.2.1:1", "65000:7"}})
		s.Segments = []*agentv1.Segment{{Bridge: "lan", Vni: 9, ImportTargets: []string{"65000:0", "65000:9"}}}
	})
	if got := fmt.Sprint(e.Imports()); got != "[65000:0 65000:7 65000:9 192.0.2.1:1]" {
		t.Error(got)
	}
}
