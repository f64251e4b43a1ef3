// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/bgp"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/vpn"
)

// What peers did waits for the engine in its order, and never longer than until somebody asks.
func TestInbox(t *testing.T) {
	f := segmentFleet(func(s *intent.Set) { s.Bgp.MaxPaths = 2 * mostWaiting })
	f.wake, f.journal = make(chan struct{}, 1), vpn.NewJournal()
	path := func(i int) vpn.Path {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		return vpn.Path{Key: vpn.Key{Peer: reflector, Prefix: netip.PrefixFrom(a, 32)},
			Nexthop: netip.MustParseAddr("192.0.2.2"), Label: 100, Attrs: &vpn.Attrs{}}
	}
	status := func() string {
		t.Helper()
		st, err := service{f}.GetBgp(context.Background(), &apiv1.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return peerText(st.Peers[0])
	}
	for _, c := range []struct {
		name, want string
		events     []bgp.Event
	}{
		{"a path that comes after its withdrawal stays", "established 1 paths 0 stale", []bgp.Event{
			{Updates: []vpn.Path{path(1)}}, {Withdrawn: []vpn.Key{path(1).Key}}, {Updates: []vpn.Path{path(1)}}}},
		{"paths of a session that ends are stale", "idle 2 paths 2 stale", []bgp.Event{
			{Updates: []vpn.Path{path(2)}}, {Down: true, State: "idle"}}},
		{"those of the next one are not", "established 3 paths 1 stale", []bgp.Event{
			{Up: true, State: "established"}, {Updates: []vpn.Path{path(2), path(3)}}}},
	} {
		for _, ev := range c.events {
			ev.Peer = reflector
			f.event(ev)
		}
		if got := status(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for i := range mostWaiting {
		f.event(bgp.Event{Peer: reflector, Updates: []vpn.Path{path(i)}})
	}
	if n := len(f.inbox.take()); n >= mostWaiting/2+1 {
		t.Errorf("%d events wait", n)
	}
}

func peerText(p *agentv1.PeerStatus) string {
	return fmt.Sprintf("%s %d paths %d stale", p.State, p.Received, p.Stale)
}
