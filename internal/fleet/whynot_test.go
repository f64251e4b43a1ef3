// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/vpn"
)

var (
	reflector = netip.MustParseAddr("192.0.2.254")
	target    = vpn.Target{Value: [6]byte{0xfd, 0xe8, 0, 0, 0, 1}} // 65000:1
	nearMac   = vpn.Mac{2, 0, 0, 0, 0, 1}                          // of the guest of this node
	farMac    = vpn.Mac{2, 0, 0, 0, 0, 9}
)

// segmentFleet is the agent of 192.0.2.5, whose session is established.
func segmentFleet(change func(*intent.Set)) *Fleet {
	s := &intent.Set{Bgp: &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.5", TunnelAddress: "192.0.2.5", LabelMin: 1000,
		LabelMax: 1050, NexthopMin: 5000, NexthopMax: 9000, StaleSeconds: 3600, DeferralSeconds: 30, MaxPaths: 1000},
		Peers: []*agentv1.Peer{{Address: reflector.String()}},
		Segments: []*agentv1.Segment{{Bridge: "lan", Vni: 100, RemoteLimit: 10, ImportTargets: []string{"65000:1"},
			ExportTargets: []string{"65000:1"}}},
		Attachments: []*agentv1.Attachment{{Port: &apiv1.Port{Name: "vm1", Bridge: "lan",
			GuestMac: "02:00:00:00:00:01"}}}}
	if change != nil {
		change(s)
	}
	f := &Fleet{engine: vpn.New(vpn.NewJournal()), intent: s, refused: map[string]string{},
		sessions: map[netip.Addr]*session{reflector: {state: established}}}
	f.engine.Tick(time.Unix(1e9, 0))
	f.engine.SetIntent(s)
	f.engine.SetReach([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	f.engine.SetPorts(map[string]bool{"vm1": true})
	f.engine.PeerUp(reflector)
	f.engine.EndOfRib(reflector)
	f.engine.Desired()
	return f
}

func (f *Fleet) receive(m vpn.Mac, sequence uint32, change func(*vpn.Path)) {
	p := vpn.Path{Key: vpn.Key{Peer: reflector, Kind: vpn.KindMac, Mac: m}, Nexthop: netip.MustParseAddr("192.0.2.2"),
		Label: 100, Attrs: &vpn.Attrs{Targets: []vpn.Target{target}, Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_VXLAN},
			LocalPref: 100, Originator: netip.MustParseAddr("192.0.2.2"), Sequence: sequence}}
	if change != nil {
		change(&p)
	}
	f.engine.Update(p)
	f.engine.Desired()
}

// Each fault ends the stages where it is, with what was seen and what mends it.
func TestWhyNotMac(t *testing.T) {
	far := func(change func(*vpn.Path)) func(*Fleet) {
		return func(f *Fleet) { f.receive(farMac, 0, change) }
	}
	for _, c := range []struct {
		name, bridge  string
		mac           vpn.Mac
		intent        func(*intent.Set)
		happens       func(*Fleet)
		stages        string // "+": it is passed
		evidence, fix string // of the last stage that is not passed, or of the last one
	}{
		{"no segment", "wan", farMac, nil, nil, "intent", "no segment of bridge 'wan'", "add a segment"},
		{"all well", "lan", farMac, nil, far(nil), "intent+ session+ received+ used+ programmed+",
			"'corelane mac show 02:00:00:00:00:09 --bridge lan'", ""},
		{"not announced", "lan", farMac, nil, nil, "intent+ session+ received", "0 paths to 02:00:00:00:00:09",
			"run this command on the host"},
		{"no session", "lan", farMac, nil, func(f *Fleet) { f.sessions[reflector].state = "idle" },
			"intent+ session received", "0 paths", "run this command"},
		{"another target", "lan", farMac, nil, far(func(p *vpn.Path) { p.Targets = nil }),
			"intent+ session+ received+ not imported", "it has no route target", "import_targets of the segment"},
		{"MPLS", "lan", farMac, nil, far(func(p *vpn.Path) { p.Encaps = nil }),
			"intent+ session+ received+ no encapsulation", "it does not offer VXLAN", "default_encap"},
		{"no route", "lan", farMac, nil, func(f *Fleet) { f.engine.SetReach(nil); f.receive(farMac, 0, nil) },
			"intent+ session+ received+ unreachable", "no route to 192.0.2.2", "corelane route add"},
		{"limit", "lan", farMac, func(s *intent.Set) { s.Segments[0].RemoteLimit = 0 }, far(nil),
			"intent+ session+ received+ remote limit", "remote_limit is reached", "raise remote_limit"},
		{"refused", "lan", farMac, nil, func(f *Fleet) {
			f.receive(farMac, 0, nil)
			f.refused["mac lan 02:00:00:00:00:09"] = "the table is full"
		}, "intent+ session+ received+ used+ programmed", "the table is full",
			"remove the object that the evidence names"},
		{"here", "lan", nearMac, nil, nil, "intent+ programmed+ exported+ session+", "1 of 1 sessions", ""},
		{"port refused", "lan", nearMac, nil, func(f *Fleet) {
			f.engine.SetPorts(nil)
			f.refused["port vm1"] = "no such device"
		}, "intent+ programmed", "no such device", "change the attachment"},
		{"incoming", "lan", nearMac, func(s *intent.Set) {
			s.Attachments[0].State = agentv1.AttachmentState_ATTACHMENT_INCOMING
		}, func(f *Fleet) { f.receive(nearMac, 1, nil) },
			"intent+ programmed+ exported session+ received+ used+ programmed+", "ATTACHMENT_INCOMING",
			"ATTACHMENT_ACTIVE"},
		{"no export", "lan", nearMac, func(s *intent.Set) { s.Segments[0].ExportTargets = nil }, nil,
			"intent+ programmed+ exported", "the segment exports []", "export_targets of the segment"},
		{"moved", "lan", nearMac, nil, func(f *Fleet) { f.receive(nearMac, 7, nil) },
			"intent+ programmed+ place session+ received+ used+ programmed+",
			"is elsewhere: 192.0.2.2 with sequence 7", "add it again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := segmentFleet(c.intent)
			if c.happens != nil {
				c.happens(f)
			}
			stages := f.whyNotMac(c.bridge, c.mac)
			var names []string
			last := stages[len(stages)-1]
			for _, s := range stages {
				names = append(names, s.Name+map[bool]string{true: "+"}[s.Ok])
				if !s.Ok {
					last = s
				}
				if s.Ok != (s.Fix == "") {
					t.Errorf("%s: passed %v, and what mends it is '%s'", s.Name, s.Ok, s.Fix)
				}
			}
			if got := strings.Join(names, " "); got != c.stages {
				t.Errorf("got  %s\nwant %s", got, c.stages)
			}
			if !strings.Contains(last.Evidence, c.evidence) || !strings.Contains(last.Fix, c.fix) {
				t.Errorf("got %q, %q; want %q, %q", last.Evidence, last.Fix, c.evidence, c.fix)
			}
		})
	}
}

func TestWhyNotRequest(t *testing.T) {
	s := service{segmentFleet(nil)}
	for _, c := range []struct {
		in   *agentv1.WhyNotRequest
		want string
	}{
		{&agentv1.WhyNotRequest{Bridge: "lan", Mac: "02:00:00:00:00:01"}, "<nil>"},
		{&agentv1.WhyNotRequest{Vrf: "red", Prefix: "10.0.0.1"}, "<nil>"},
		{&agentv1.WhyNotRequest{Bridge: "lan", Mac: "02:00:00:00:00:01:02:03"}, "is not a MAC address"},
		{&agentv1.WhyNotRequest{Vrf: "red", Prefix: "ten"}, "neither an address nor a prefix"},
		{&agentv1.WhyNotRequest{Mac: "02:00:00:00:00:01"}, "a MAC address with a bridge"},
		{&agentv1.WhyNotRequest{Prefix: "10.0.0.1", Bridge: "lan"}, "a prefix with a VRF"},
		{&agentv1.WhyNotRequest{Vrf: "red", Bridge: "lan"}, "either"},
	} {
		if _, err := s.WhyNot(t.Context(), c.in); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v: got %v, want %s", c.in, err, c.want)
		}
	}
}
