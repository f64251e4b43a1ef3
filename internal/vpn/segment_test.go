// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/vpn"
)

var (
	here    = vpn.Mac{2, 0, 0, 0, 0, 1} // of the guest of this node
	foreign = vpn.Mac{2, 0, 0, 0, 0, 9}
)

// segmentEngine is the engine of 192.0.2.5, which has a guest with the address here.
func segmentEngine(t *testing.T, j *vpn.Journal, change func(*intent.Set)) *vpn.Engine {
	t.Helper()
	s := &intent.Set{Bgp: &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.5", TunnelAddress: "192.0.2.5", LabelMin: 1000,
		LabelMax: 1050, NexthopMin: 5000, NexthopMax: 9000, StaleSeconds: 3600, DeferralSeconds: 30, MaxPaths: 1000,
		ResendSeconds: 10, Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOUDP}},
		Peers: []*agentv1.Peer{{Address: reflector.String()}},
		Segments: []*agentv1.Segment{{Bridge: "lan", Vni: 100, RemoteLimit: 10, ImportTargets: []string{"65000:0"},
			ExportTargets: []string{"65000:0"}}},
		Attachments: []*agentv1.Attachment{{Port: &apiv1.Port{Name: "vm1", Bridge: "lan", GuestMac: here.String()},
			Addresses: []string{"10.0.0.1", "2001:db8::1"}}}}
	if change != nil {
		change(s)
	}
	e := vpn.New(j)
	e.Tick(time.Unix(1e9, 0))
	e.SetIntent(s)
	e.SetReach([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	e.SetPorts(map[string]bool{"vm1": true})
	e.PeerUp(reflector)
	return e
}

// macPath makes a path of host 192.0.2.N to a MAC address, with what change sets.
func macPath(n byte, mac vpn.Mac, sequence uint32, change func(*vpn.Path)) vpn.Path {
	host := netip.AddrFrom4([4]byte{192, 0, 2, n})
	p := vpn.Path{Key: vpn.Key{Peer: reflector, RD: vpn.Target{Form: 1, Value: [6]byte{192, 0, 2, n, 0, 1}},
		Kind: vpn.KindMac, Mac: mac}, Nexthop: host, Label: 100, Attrs: &vpn.Attrs{Targets: []vpn.Target{rt},
		Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_VXLAN}, LocalPref: 100, Originator: host, Sequence: sequence}}
	if change != nil {
		change(&p)
	}
	return p
}

func floodPath(n byte) vpn.Path {
	return macPath(n, vpn.Mac{}, 0, func(p *vpn.Path) {
		p.Kind, p.Prefix = vpn.KindFlood, netip.PrefixFrom(p.Nexthop, 32)
	})
}

// places lists where the addresses of the bridge are: "02:00:00:00:00:09 192.0.2.2/100; ".
func places(s *state.State) string {
	tunnels := map[uint32]string{}
	for _, n := range s.Nexthops {
		tunnels[n.Id] = fmt.Sprintf("%s/%d", n.GetTunnel().GetRemote(), n.GetTunnel().GetVni())
	}
	var b strings.Builder
	for _, m := range s.Macs {
		place := m.GetPort()
		if m.GetNexthop() != 0 {
			place = tunnels[m.GetNexthop()]
		}
		fmt.Fprintf(&b, "%s %s; ", m.Mac, place)
	}
	return b.String()
}

// claims lists the announced sequence numbers of the guest's address.
func claims(e *vpn.Engine) string {
	e.Desired()
	var b strings.Builder
	for _, p := range e.Announcements() {
		if p.Kind == vpn.KindMac && !p.Prefix.IsValid() {
			fmt.Fprintf(&b, "%d ", p.Sequence)
		}
	}
	return b.String()
}

func segmentVerdicts(e *vpn.Engine) string {
	var b strings.Builder
	e.JudgeSegments("", func(j vpn.Judged) { fmt.Fprintf(&b, "%v: %s; ", j.Path.Nexthop, j.Verdict) })
	return b.String()
}

func TestSegment(t *testing.T) {
	e := segmentEngine(t, vpn.NewJournal(), nil)
	e.Update(macPath(2, foreign, 0, nil), macPath(2, foreign, 0, func(p *vpn.Path) {
		p.Prefix = netip.MustParsePrefix("10.0.0.9/32")
	}), floodPath(2), floodPath(3), macPath(3, vpn.Mac{2, 9}, 0, func(p *vpn.Path) { p.Label = 77 }))
	s := e.Desired()
	if len(s.Bridges) != 1 || len(s.Bridges[0].Flood) != 2 || len(s.Vnis) != 1 || s.Vnis[0].GetBridge() != "lan" {
		t.Error(s.Bridges, s.Vnis)
	}
	const want = "02:00:00:00:00:01 vm1; 02:00:00:00:00:09 192.0.2.2/100; 02:09:00:00:00:00 192.0.2.3/77; "
	if got := places(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var announced []string
	for _, p := range e.Announcements() {
		announced = append(announced, fmt.Sprint(p.Kind, " ", p.Mac, " ", p.Prefix, " ", p.Label, " ", p.RD))
	}
	if got := strings.Join(announced, "; "); got != "mac 02:00:00:00:00:01 invalid Prefix 100 192.0.2.5:1; "+
		"mac 02:00:00:00:00:01 10.0.0.1/32 100 192.0.2.5:1; mac 02:00:00:00:00:01 2001:db8::1/128 100 192.0.2.5:1; "+
		"flood 00:00:00:00:00:00 192.0.2.5/32 100 192.0.2.5:1" {
		t.Error(got)
	}
	e.Withdraw(macPath(2, foreign, 0, nil).Key, floodPath(2).Key)
	if got := places(e.Desired()); got != want {
		t.Error("the path with an IP address is still there:", got)
	}
	e.PeerDown(reflector) // a session that has ended withdraws nothing
	if s = e.Desired(); places(s) != want || len(s.Bridges[0].Flood) != 1 {
		t.Error(places(s), s.Bridges)
	}
	e.Tick(time.Unix(1e9+3600, 0))
	if s = e.Desired(); places(s) != "02:00:00:00:00:01 vm1; " || len(s.Bridges[0].Flood)+len(s.Nexthops) != 0 {
		t.Error(places(s), s.Bridges, s.Nexthops)
	}
}

func TestSegmentVerdicts(t *testing.T) {
	for _, c := range []struct {
		name, want string
		paths      []vpn.Path
	}{
		{"one", "192.0.2.2: used; ", []vpn.Path{macPath(2, foreign, 0, nil)}},
		{"sequence", "192.0.2.2: sequence; 192.0.2.3: used; ",
			[]vpn.Path{macPath(2, foreign, 0, nil), macPath(3, foreign, 1, nil)}},
		{"sticky", "192.0.2.2: used; 192.0.2.3: sticky; ", []vpn.Path{macPath(2, foreign, 0, func(p *vpn.Path) {
			p.Sticky = true
		}), macPath(3, foreign, 1, nil)}},
		{"lower address", "192.0.2.2: used; 192.0.2.3: address; ",
			[]vpn.Path{macPath(2, foreign, 4, nil), macPath(3, foreign, 4, nil)}},
		{"other target", "192.0.2.2: not imported; ",
			[]vpn.Path{macPath(2, foreign, 0, func(p *vpn.Path) { p.Targets = nil })}},
		{"own", "192.0.2.5: own; ", []vpn.Path{macPath(5, here, 0, nil)}},
		{"no VNI", "192.0.2.2: bad VNI; ", []vpn.Path{macPath(2, foreign, 0, func(p *vpn.Path) { p.Label = 0 })}},
		{"tag", "192.0.2.2: bad tag; ", []vpn.Path{macPath(2, foreign, 0, func(p *vpn.Path) { p.Tag = 7 })}},
		{"group address", "192.0.2.2: bad MAC; ", []vpn.Path{macPath(2, vpn.Mac{1, 0, 0x5e}, 0, nil)}},
		{"gateway", "192.0.2.2: bad MAC; ", []vpn.Path{macPath(2, vpn.Mac{0, 0, 0x5e, 0, 1, 1}, 0, nil)}},
		{"no encapsulation", "192.0.2.2: no encapsulation; ",
			[]vpn.Path{macPath(2, foreign, 0, func(p *vpn.Path) { p.Encaps = nil })}},
		{"unreachable", "203.0.113.1: unreachable; ", []vpn.Path{macPath(2, foreign, 0, func(p *vpn.Path) {
			p.Nexthop = netip.MustParseAddr("203.0.113.1")
		})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := segmentEngine(t, vpn.NewJournal(), nil)
			e.Update(c.paths...)
			if got := segmentVerdicts(e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNeighborSuppression(t *testing.T) {
	with := func(on bool) *state.State {
		e := segmentEngine(t, vpn.NewJournal(), func(s *intent.Set) { s.Segments[0].NeighborSuppression = on })
		address := func(text string) func(*vpn.Path) {
			return func(p *vpn.Path) { p.Prefix = netip.MustParsePrefix(text) }
		}
		e.Update(macPath(2, foreign, 1, nil), macPath(2, foreign, 1, address("10.0.0.9/32")),
			macPath(2, foreign, 1, address("2001:db8::9/128")),
			macPath(3, foreign, 0, address("10.0.0.8/32"))) // where the guest was before
		for i := range byte(20) {
			e.Update(macPath(2, vpn.Mac{2, 7}, 0, address(fmt.Sprintf("10.7.0.%d/32", i))))
		}
		return e.Desired()
	}
	for on, want := range map[bool]string{
		true:  "[10.0.0.1 2001:db8::1] [10.0.0.9 2001:db8::9] 16",
		false: "[] [] 0",
	} {
		s := with(on)
		got := fmt.Sprint(s.Macs[0].Addresses, s.Macs[1].Addresses, len(s.Macs[2].Addresses))
		if got != want || s.Bridges[0].NeighborSuppression != on {
			t.Errorf("%v: addresses %s, want %s; the bridge: %v", on, got, want, s.Bridges[0])
		}
	}
}

func TestSegmentBounds(t *testing.T) {
	e := segmentEngine(t, vpn.NewJournal(), func(s *intent.Set) { s.Segments[0].RemoteLimit = 1 })
	e.Update(macPath(2, foreign, 0, nil), macPath(2, vpn.Mac{2, 9}, 0, nil))
	if got := segmentVerdicts(e); !strings.Contains(got, "used; ") || !strings.Contains(got, "remote limit; ") {
		t.Error(got)
	}
	e.Withdraw(macPath(2, foreign, 0, nil).Key, macPath(2, vpn.Mac{2, 9}, 0, nil).Key)
	e.Update(macPath(2, vpn.Mac{2, 8}, 0, nil))
	if got := segmentVerdicts(e); got != "192.0.2.2: used; " {
		t.Error(got)
	}
	for i := range vpn.MaxFloodEnds + 1 {
		e.Update(floodPath(2), macPath(3, vpn.Mac{}, 0, func(p *vpn.Path) {
			p.Kind, p.Nexthop = vpn.KindFlood, netip.AddrFrom4([4]byte{192, 0, 2, 9})
			p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)
			p.Label = uint32(i + 200)
		}))
	}
	if n := len(e.Desired().Bridges[0].Flood); n != vpn.MaxFloodEnds {
		t.Error(n)
	}
	if got := segmentVerdicts(e); strings.Count(got, string(vpn.TooManyEnds)) != 2 {
		t.Error(got)
	}
}

// A guest that comes takes its address from the host where it was, and gives it up to the next one.
func TestMobility(t *testing.T) {
	j := vpn.NewJournal()
	e := segmentEngine(t, j, nil)
	e.Update(macPath(2, here, 3, nil))
	e.EndOfRib(reflector)
	if got := claims(e); got != "4 " {
		t.Errorf("claims %s, want more than the 3 of the host where it was", got)
	}
	if got := segmentVerdicts(e); got != "192.0.2.2: local; " {
		t.Error(got)
	}
	e.Update(macPath(3, here, 5, nil))
	if got := claims(e) + places(e.Desired()); got != "02:00:00:00:00:01 192.0.2.3/100; " {
		t.Error("it has moved on, and yet:", got)
	}
	if a := e.Attachments()[0]; a.Announced || !strings.Contains(a.Error, "elsewhere: 192.0.2.3 with sequence 5") {
		t.Error(a)
	}
	text, _ := json.Marshal(j)
	again := vpn.NewJournal()
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	e = segmentEngine(t, again, nil) // a restart is no move
	e.Update(macPath(3, here, 5, nil))
	e.EndOfRib(reflector)
	if got := claims(e); got != "" {
		t.Error("an agent that was restarted took the address back:", got)
	}
	e.Withdraw(macPath(3, here, 5, nil).Key)
	if got := claims(e); got != "4 " {
		t.Error("the other host has withdrawn it:", got)
	}
}

// A move back is one, whatever the journal had.
func TestMoveBack(t *testing.T) {
	var last *intent.Set
	e := segmentEngine(t, vpn.NewJournal(), func(s *intent.Set) { last = s })
	set := func(to agentv1.AttachmentState) {
		s := *last
		s.Attachments = []*agentv1.Attachment{{Port: last.Attachments[0].Port, State: to}}
		e.SetIntent(&s)
	}
	e.EndOfRib(reflector)
	if got := claims(e); got != "0 " {
		t.Error(got)
	}
	set(agentv1.AttachmentState_ATTACHMENT_LEAVING)
	if got := claims(e) + places(e.Desired()); got != "02:00:00:00:00:01 vm1; " {
		t.Error("until another host has it, its port is here:", got)
	}
	e.Update(macPath(2, here, 1, nil))
	if got := places(e.Desired()); got != "02:00:00:00:00:01 192.0.2.2/100; " {
		t.Error(got)
	}
	set(agentv1.AttachmentState_ATTACHMENT_INCOMING)
	if got := claims(e) + places(e.Desired()); got != "02:00:00:00:00:01 192.0.2.2/100; " {
		t.Error("it is not here yet:", got)
	}
	set(agentv1.AttachmentState_ATTACHMENT_ACTIVE)
	if got := claims(e); got != "2 " {
		t.Error(got)
	}
}

// Two hosts whose claims are equal decide alike: the lower address keeps it, with a higher number.
func TestEqualClaims(t *testing.T) {
	for other, want := range map[byte]string{2: "", 9: "1 "} {
		e := segmentEngine(t, vpn.NewJournal(), nil)
		e.EndOfRib(reflector)
		claims(e)
		e.Update(macPath(other, here, 0, nil))
		if got := claims(e); got != want {
			t.Errorf("against 192.0.2.%d: claims %q, want %q", other, got, want)
		}
	}
}

func TestSticky(t *testing.T) {
	e := segmentEngine(t, vpn.NewJournal(), func(s *intent.Set) { s.Attachments[0].Sticky = true })
	e.EndOfRib(reflector)
	claims(e)
	e.Update(macPath(2, here, 7, nil))
	if got := claims(e); got != "8 " {
		t.Error("an address that does not move was given up:", got)
	}
	e = segmentEngine(t, vpn.NewJournal(), nil)
	e.Update(macPath(2, here, 0, func(p *vpn.Path) { p.Sticky = true }))
	if got := claims(e); got != "" {
		t.Error("an address that does not move was taken:", got)
	}
}

// A sequence number cannot wrap: the address then stays where it is.
func TestSequenceEnds(t *testing.T) {
	e := segmentEngine(t, vpn.NewJournal(), nil)
	e.Update(macPath(2, here, math.MaxUint32, nil))
	if got := claims(e); got != "" {
		t.Error(got)
	}
	if a := e.Attachments()[0]; !strings.Contains(a.Error, "elsewhere") {
		t.Error(a)
	}
}

// Such a claim takes no guest away if its path cannot be used: the guest would be announced nowhere.
func TestSequenceEndsAtAHostThatIsNotReached(t *testing.T) {
	e := segmentEngine(t, vpn.NewJournal(), nil)
	e.EndOfRib(reflector)
	e.Update(macPath(2, here, math.MaxUint32, func(p *vpn.Path) { p.Nexthop = netip.MustParseAddr("203.0.113.1") }))
	if got := claims(e); got != "0 " {
		t.Errorf("claims %q, want 0: nobody else can be sent to", got)
	}
	e.Update(macPath(3, here, 4, nil))
	if got := places(e.Desired()); got != "02:00:00:00:00:01 192.0.2.3/100; " {
		t.Error("a host that can be reached has a later claim:", got)
	}
	e.Withdraw(macPath(3, here, 4, nil).Key)
	if got := claims(e); got != "0 " {
		t.Error("that host has withdrawn it:", got)
	}
}

// An agent that starts keeps what the data plane has until its peers have sent all of theirs.
func TestSegmentsAreHeld(t *testing.T) {
	j := vpn.NewJournal()
	e := segmentEngine(t, j, nil)
	e.Update(macPath(2, foreign, 0, nil), floodPath(2), floodPath(3))
	have := e.Desired()
	e = segmentEngine(t, j, nil)
	e.Hold(have)
	if ops := state.Diff(e.Desired(), have); len(ops) != 0 {
		t.Error("a restart changed objects:", ops)
	}
	e.Update(macPath(2, foreign, 0, nil), floodPath(2))
	e.EndOfRib(reflector)
	if ops := state.Diff(e.Desired(), have); len(ops) != 0 {
		t.Error("objects changed before resend_seconds:", ops)
	}
	e.Tick(time.Unix(1e9+10, 0))
	if s := e.Desired(); len(s.Bridges[0].Flood) != 1 || len(s.Nexthops) != 1 ||
		places(s) != "02:00:00:00:00:01 vm1; 02:00:00:00:00:09 192.0.2.2/100; " {
		t.Error(places(s), s.Bridges, s.Nexthops)
	}
}
