// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/vpn"
)

// there is the address of the other host. Unless it is constrained, it does not know of RT constraint, and a speaker
// that has not heard so would lose its first session with it, in the midst of the test (see ended).
var there = netip.MustParseAddr("127.0.0.1")

// other is a host with GoBGP that waits for our session. set changes its side of the session, which has EVPN alone.
func other(t *testing.T, set ...func(*api.Peer)) (*server.BgpServer, uint32, <-chan *apiutil.Path) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s := server.NewBgpServer(server.LoggerOption(slog.New(slog.NewTextHandler(io.Discard, nil)), &slog.LevelVar{}))
	go s.Serve()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { s.Stop(); cancel() })
	if err := s.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: 65000, RouterId: "192.0.2.9",
		ListenPort: int32(port), ListenAddresses: []string{"127.0.0.1"}}}); err != nil {
		t.Fatal(err)
	}
	peer := &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: "127.0.0.1", PeerAsn: 65000},
		Transport: &api.Transport{PassiveMode: true},
		AfiSafis: []*api.AfiSafi{{Config: &api.AfiSafiConfig{Enabled: true,
			Family: &api.Family{Afi: api.Family_AFI_L2VPN, Safi: api.Family_SAFI_EVPN}}}}}
	for _, f := range set {
		f(peer)
	}
	if err := s.AddPeer(ctx, &api.AddPeerRequest{Peer: peer}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan *apiutil.Path, 100)
	each := func(paths []*apiutil.Path, _ time.Time) {
		for _, p := range paths {
			seen <- p
		}
	}
	if err := s.WatchEvent(ctx, server.WatchEventMessageCallbacks{OnPathUpdate: each},
		server.WatchUpdate(true, "", "")); err != nil {
		t.Fatal(err)
	}
	return s, uint32(port), seen
}

func within[T any](t *testing.T, what string, from <-chan T, match func(T) bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case x := <-from:
			if match(x) {
				return
			}
		case <-late:
			t.Fatal("no " + what)
		}
	}
}

// GoBGP has an opinion of its own about sequence numbers of MAC mobility, from which this node's paths are kept: it
// would refuse a path, and even the withdrawal of one, whose number is below that of another host.
func TestOwnPathsBelowOthers(t *testing.T) {
	t.Parallel()
	far, port, seen := other(t)
	events := make(chan Event, 100)
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", RestartSeconds: 10,
		DeferralSeconds: 1}, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Unconstrained(there)
	mine, other := evpnSamples()[0], evpnSamples()[3]
	first := *mine.Attrs
	first.Sequence = 1
	mine.Attrs = &first
	if _, err := s.Announce([]vpn.Path{mine}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPeers(t.Context(), []*agentv1.Peer{{Address: "127.0.0.1", Port: port, HoldSeconds: 90,
		MaxPrefixes: 1000}}); err != nil {
		t.Fatal(err)
	}
	within(t, "path at the other host", seen, func(p *apiutil.Path) bool { return !p.Withdrawal })
	attrs := *other.Attrs
	attrs.Sequence = 5
	other.Attrs, other.RD.Value[5], other.ESI = &attrs, 9, [10]byte{}
	other.Nexthop = netip.MustParseAddr("192.0.2.9")
	out, err := encode(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{out}}); err != nil {
		t.Fatal(err)
	}
	within(t, "later claim", events, func(e Event) bool { return len(e.Updates) == 1 && e.Updates[0].Sequence == 5 })
	low, flood := mine, evpnSamples()[4]
	low.Mac[5]++
	if _, err := s.Announce([]vpn.Path{low, flood}); err != nil {
		t.Error("the withdrawal is refused:", err)
	}
	within(t, "withdrawal", seen, func(p *apiutil.Path) bool { return p.Withdrawal })
	if n, err := s.Announce([]vpn.Path{mine, low, flood}); err != nil || n != 1 {
		t.Errorf("%d changes, error %v", n, err)
	}
	within(t, "path with a lower number", seen, func(p *apiutil.Path) bool {
		key, _, _ := keyOf(p)
		return !p.Withdrawal && key.Kind == mine.Kind && key.Mac == mine.Mac
	})
}

// One path that GoBGP refuses holds up no other.
func TestARefusedPath(t *testing.T) {
	all := make([]change, batch+3)
	for i := range all {
		all[i].path.Tag = uint32(i)
	}
	var taken []uint32
	n, err := inBatches(all, func(some []change) error {
		for _, c := range some {
			if c.path.Tag == 1 {
				return errors.New("refused")
			}
		}
		for _, c := range some {
			taken = append(taken, c.path.Tag)
		}
		return nil
	})
	if err == nil || n != batch+2 || len(taken) != n || slices.Contains(taken, 1) {
		t.Errorf("%d done, %d taken, error %v", n, len(taken), err)
	}
}

// constrained makes the other host a reflector that sends nothing before it has heard which route targets are wanted.
func constrained(p *api.Peer) {
	p.RouteReflector = &api.RouteReflector{RouteReflectorClient: true, RouteReflectorClusterId: "192.0.2.9"}
	p.GracefulRestart = &api.GracefulRestart{Enabled: true, RestartTime: 120, DeferralTime: 3600}
	p.AfiSafis = append(p.AfiSafis, &api.AfiSafi{Config: &api.AfiSafiConfig{Enabled: true,
		Family: &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_ROUTE_TARGET_CONSTRAINTS}},
		RouteTargetMembership: &api.RouteTargetMembership{
			Config: &api.RouteTargetMembershipConfig{DeferralTime: 3600}}})
	for _, f := range p.AfiSafis {
		f.MpGracefulRestart = &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}}
	}
}

// withTarget returns a path of EVPN that only its last byte and its only route target tell from others.
func withTarget(n byte) vpn.Path {
	p := evpnSamples()[0]
	attrs := *p.Attrs
	attrs.Targets = []vpn.Target{{Value: [6]byte{0, 1, 0, 0, 0, n}}}
	p.Attrs, p.Mac[5] = &attrs, n
	return p
}

// A reflector with RT constraint (RFC 4684) sends what is wanted and no more. Neither side waits for the other,
// although both want to hear of route targets first.
func TestOnlyWantedPathsCome(t *testing.T) {
	t.Parallel()
	far, port, seen := other(t, constrained)
	events := make(chan Event, 100)
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", RestartSeconds: 10,
		DeferralSeconds: 3600}, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	send := func(n byte) {
		out, err := encode(withTarget(n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := far.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{out}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(numbers ...byte) {
		var targets []vpn.Target
		for _, n := range numbers {
			targets = append(targets, withTarget(n).Targets[0])
		}
		if err := s.Want(targets); err != nil {
			t.Fatal(err)
		}
	}
	comes := func(n byte, others ...byte) {
		within(t, "wanted path", events, func(e Event) bool {
			found := false
			for _, p := range e.Updates {
				if found = found || p.Mac[5] == n; p.Mac[5] != n && !slices.Contains(others, p.Mac[5]) {
					t.Errorf("path %d came, which nobody wants", p.Mac[5])
				}
			}
			return found
		})
	}
	for n := range byte(3) {
		send(n)
	}
	want(1)
	unwanted, mine := withTarget(8), withTarget(1)
	mine.RD.Value[5]++
	if _, err := s.Announce([]vpn.Path{unwanted, mine}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPeers(t.Context(), []*agentv1.Peer{{Address: "127.0.0.1", Port: port, HoldSeconds: 90,
		MaxPrefixes: 1000}}); err != nil {
		t.Fatal(err)
	}
	comes(1)
	within(t, "path that somebody wants", seen, func(p *apiutil.Path) bool {
		key, of, _ := keyOf(p)
		if of && key.Mac[5] == 8 {
			t.Error("a path was sent that nobody wants")
		}
		return of && key.Mac[5] == 1
	})
	want(1, 2)
	comes(2, 1)
	want(2)
	within(t, "withdrawal of what is not wanted any more", events, func(e Event) bool {
		return slices.ContainsFunc(e.Withdrawn, func(k vpn.Key) bool { return k.Mac[5] == 1 })
	})
}

// GoBGP keeps the paths of peers once: its table, in which it selects, has those of this node alone.
func TestTheTableHasOwnPathsOnly(t *testing.T) {
	t.Parallel()
	far, port, seen := other(t)
	events := make(chan Event, 100)
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", RestartSeconds: 10,
		DeferralSeconds: 1}, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Unconstrained(there)
	out, err := encode(withTarget(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{out}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Announce([]vpn.Path{withTarget(1)}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPeers(t.Context(), []*agentv1.Peer{{Address: "127.0.0.1", Port: port, HoldSeconds: 90,
		MaxPrefixes: 1000}}); err != nil {
		t.Fatal(err)
	}
	within(t, "path of the other host", events, func(e Event) bool { return len(e.Updates) == 1 })
	within(t, "path of this node", seen, func(p *apiutil.Path) bool { return !p.Withdrawal })
	var macs []byte
	if err := s.server.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL,
		Family: bgp.RF_EVPN}, func(_ bgp.NLRI, paths []*apiutil.Path) {
		for _, p := range paths {
			key, _, _ := keyOf(p)
			macs = append(macs, key.Mac[5])
		}
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(macs, []byte{1}) {
		t.Errorf("the table has the addresses %v", macs)
	}
}

// A peer that is away does not keep others from hearing of this node.
func TestAPeerThatIsAway(t *testing.T) {
	t.Parallel()
	_, port, seen := other(t, func(p *api.Peer) {
		p.GracefulRestart = &api.GracefulRestart{Enabled: true, RestartTime: 120}
		p.AfiSafis[0].MpGracefulRestart = &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}}
	})
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", RestartSeconds: 10,
		DeferralSeconds: 3600}, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Unconstrained(there)
	if _, err := s.Announce([]vpn.Path{withTarget(1)}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPeers(t.Context(), []*agentv1.Peer{
		{Address: "127.0.0.1", Port: port, HoldSeconds: 90, MaxPrefixes: 1000},
		{Address: "127.0.0.2", Port: 1, HoldSeconds: 90, MaxPrefixes: 1000},
	}); err != nil {
		t.Fatal(err)
	}
	within(t, "path at the peer that is there", seen, func(p *apiutil.Path) bool { return !p.Withdrawal })
}

func TestMaxPrefixes(t *testing.T) {
	t.Parallel()
	far, port, _ := other(t)
	const limit = 3
	send := func(n byte) {
		p := evpnSamples()[0]
		p.Mac[5] = n
		out, err := encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := far.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{out}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range byte(limit) {
		send(n)
	}
	events := make(chan Event, 100)
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", RestartSeconds: 10,
		DeferralSeconds: 1}, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Unconstrained(there)
	peers := []*agentv1.Peer{{Address: "127.0.0.1", Port: port, HoldSeconds: 90, MaxPrefixes: limit}}
	if err := s.SetPeers(t.Context(), peers); err != nil {
		t.Fatal(err)
	}
	seen := 0
	within(t, "as many paths as may come", events, func(e Event) bool {
		if seen += len(e.Updates); e.Down && seen > 0 {
			t.Errorf("the session has ended after %d paths: %s", seen, e.Reason)
		}
		return seen == limit
	})
	send(limit)
	within(t, "end of the session", events, func(e Event) bool {
		if len(e.Updates) > 0 {
			t.Errorf("a path too many is used: %+v", e)
		}
		return e.Down && strings.Contains(e.Reason, "max_prefixes")
	})
	peers[0] = &agentv1.Peer{Address: "127.0.0.1", Port: port, HoldSeconds: 90, MaxPrefixes: limit + 1}
	if err := s.SetPeers(t.Context(), peers); err != nil {
		t.Fatal(err)
	}
	seen = 0
	within(t, "all paths with a larger limit", events, func(e Event) bool {
		seen += len(e.Updates)
		return seen == limit+1
	})
}
