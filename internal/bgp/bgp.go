// SPDX-License-Identifier: Apache-2.0

// Package bgp speaks BGP with route reflectors and gateways. It carries paths and nothing else: internal/vpn selects
// among them and decides. It is the only user of GoBGP, whose own choices are not used: it compares only paths with
// equal route distinguishers.
package bgp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/vpn"
	"github.com/corelane/corelane/internal/wait"
)

// Event is what a peer did: one of the fields is set.
type Event struct {
	Peer      netip.Addr
	Up, Down  bool   // the session
	State     string // the session's new state, "established"; empty: as it was
	Reason    string // why the session ended, with Down
	EndOfRib  bool   // of all families that both sides speak
	Updates   []vpn.Path
	Withdrawn []vpn.Key
	Faults    int // paths that could not be read

	Unconstrained bool // with Up: the peer does not know of RT constraint
}

// Speaker is this node's side of all sessions.
type Speaker struct {
	server *server.BgpServer
	cancel context.CancelFunc
	config *agentv1.Bgp
	peers  map[netip.Addr]*agentv1.Peer
	sent   map[vpn.Key]vpn.Path
	limits limits
	ended  ended
	wanted map[vpn.Target]bool                // route targets that peers are told
	waits  map[netip.Addr]map[bgp.Family]bool // families whose End-of-RIB is missing; for the goroutine of the events
}

var families = []bgp.Family{bgp.RF_IPv4_VPN, bgp.RF_IPv6_VPN, bgp.RF_EVPN}

const (
	batch       = 1000 // paths in one call: GoBGP answers nothing else meanwhile
	resetWithin = time.Second

	// After its start GoBGP sends nothing until each peer has sent everything, so that it can select first. Nothing is
	// selected here, and one peer that is away would keep this node's paths from all others. What is worth waiting for
	// is which route targets peers want: what GoBGP does not send before it says that it has sent all is forgotten. A
	// reflector may in turn wait for the targets of this node, and neither would begin.
	deferralSeconds = 2
)

// Start begins. each is called from one goroutine; what waits for it is memory, so it must not take long.
func Start(ctx context.Context, config *agentv1.Bgp, each func(Event)) (*Speaker, error) {
	level := &slog.LevelVar{}
	level.Set(slog.LevelError)
	ctx, cancel := context.WithCancel(ctx)
	s := &Speaker{cancel: cancel, config: config, peers: map[netip.Addr]*agentv1.Peer{}, sent: map[vpn.Key]vpn.Path{},
		ended:  newEnded(),
		limits: limits{peers: map[netip.Addr]*limit{}}, wanted: map[vpn.Target]bool{},
		waits: map[netip.Addr]map[bgp.Family]bool{}}
	s.server = server.NewBgpServer(server.LoggerOption(slog.New(slog.NewTextHandler(io.Discard, nil)), level))
	go s.server.Serve()
	err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: config.Asn, RouterId: config.RouterId,
		ListenPort: -1}})
	if err == nil {
		err = s.keepOwn(ctx)
	}
	if err == nil {
		err = s.server.WatchEvent(ctx, server.WatchEventMessageCallbacks{
			OnPathUpdate: func(paths []*apiutil.Path, _ time.Time) { s.updates(paths, each) },
			OnPathEor:    func(p *apiutil.Path, _ time.Time) { s.endOfRib(p, each) },
			OnPeerUpdate: func(p *apiutil.WatchEventMessage_PeerEvent, _ time.Time) { s.session(p, each) },
		}, server.WatchUpdate(true, "", ""), server.WatchEor(true), server.WatchPeer())
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("BGP does not start: %w", err)
	}
	return s, nil
}

// keepOwn keeps GoBGP from selecting among the paths of peers, which internal/vpn does: its table has those of this
// node alone, and which route targets peers want. So it passes on no path from one peer to another one, either.
func (s *Speaker) keepOwn(ctx context.Context) error {
	accept := func(name string, of *api.Conditions) *api.Statement {
		return &api.Statement{Name: name, Conditions: of,
			Actions: &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT}}
	}
	policy := &api.Policy{Name: "kept", Statements: []*api.Statement{
		accept("own", &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL}),
		accept("wanted", &api.Conditions{AfiSafiIn: []*api.Family{apiFamily(bgp.RF_RTC_UC)}}),
	}}
	if err := s.server.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return err
	}
	return s.server.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_POLICY_DIRECTION_IMPORT, Policies: []*api.Policy{policy},
		DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT}})
}

func apiFamily(f bgp.Family) *api.Family {
	return &api.Family{Afi: api.Family_Afi(f.Afi()), Safi: api.Family_Safi(f.Safi())}
}

// Stop closes the sessions so that peers keep this node's paths for the restart time.
func (s *Speaker) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = s.server.StopBgp(ctx, &api.StopBgpRequest{AllowGracefulRestart: true})
	s.cancel()
}

// Unconstrained tells that a peer does not know of RT constraint, before SetPeers begins a session with it.
func (s *Speaker) Unconstrained(a netip.Addr) { s.ended.learn(a, true) }

// SetPeers changes the sessions to those of the list. A session whose settings change begins anew, and so does one that
// has ended. The error is the first one; peers without a fault are set.
func (s *Speaker) SetPeers(ctx context.Context, list []*agentv1.Peer) error {
	var first error
	keep := map[netip.Addr]*agentv1.Peer{}
	for _, p := range list {
		keep[netip.MustParseAddr(p.Address)] = p
	}
	over := s.ended.take()
	for a, p := range s.peers {
		same := keep[a] != nil && keep[a].String() == p.String()
		if same && !over[a] {
			continue
		}
		if keep[a] != nil && !same {
			s.endSoftly(ctx, a)
		}
		if err := s.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: a.String()}); err != nil && first == nil {
			first = err
		}
		delete(s.peers, a)
	}
	for a, p := range keep {
		if s.peers[a] != nil {
			continue
		}
		s.limits.set(a, p.MaxPrefixes)
		if err := s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: s.peer(p)}); err != nil {
			if first == nil {
				first = fmt.Errorf("peer %v: %w", a, err)
			}
			continue
		}
		s.peers[a] = p
	}
	return first
}

// endSoftly ends a session that another one will follow. A peer that is deleted is told so, and forgets the paths of
// this node at once; after a reset it keeps them, if it has announced that it does so after a notification (RFC 8538).
func (s *Speaker) endSoftly(ctx context.Context, a netip.Addr) {
	if s.server.ResetPeer(ctx, &api.ResetPeerRequest{Address: a.String()}) != nil {
		return // there is no session
	}
	ctx, cancel := context.WithTimeout(ctx, resetWithin)
	defer cancel()
	_ = wait.Until(ctx, 10*time.Millisecond, func() (bool, error) { // whether it takes that long or not, it goes on
		up := false
		err := s.server.ListPeer(ctx, &api.ListPeerRequest{Address: a.String()}, func(p *api.Peer) {
			up = p.State.SessionState == api.PeerState_SESSION_STATE_ESTABLISHED
		})
		return !up, err
	})
}

func (s *Speaker) peer(p *agentv1.Peer) *api.Peer {
	asn := p.Asn
	if asn == 0 {
		asn = s.config.Asn
	}
	out := &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: p.Address, PeerAsn: asn, AuthPassword: p.Password},
		Transport: &api.Transport{LocalAddress: p.LocalAddress, RemotePort: p.Port},
		Timers: &api.Timers{Config: &api.TimersConfig{ConnectRetry: 1, HoldTime: uint64(p.HoldSeconds),
			KeepaliveInterval: uint64(p.HoldSeconds / 3), IdleHoldTimeAfterReset: 1}},
		GracefulRestart: &api.GracefulRestart{Enabled: true, RestartTime: s.config.RestartSeconds,
			DeferralTime: deferralSeconds, NotificationEnabled: true, LocalRestarting: true, LonglivedEnabled: true},
		EbgpMultihop: &api.EbgpMultihop{Enabled: asn != s.config.Asn, MultihopTtl: 64},
	}
	for _, f := range s.ended.families(netip.MustParseAddr(p.Address)) {
		out.AfiSafis = append(out.AfiSafis, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: apiFamily(f), Enabled: true},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
			LongLivedGracefulRestart: &api.LongLivedGracefulRestart{Config: &api.LongLivedGracefulRestartConfig{
				Enabled: true, RestartTime: s.config.StaleSeconds}},
		})
	}
	return out
}

// Announce changes what peers are told to these paths, and returns how many it changed. A path that GoBGP refuses holds
// up no other; the error is the first one.
func (s *Speaker) Announce(paths []vpn.Path) (int, error) {
	var add, del []change
	keep := map[vpn.Key]bool{}
	for _, p := range paths {
		keep[p.Key] = true
		if old, sent := s.sent[p.Key]; sent && equal(old, p) {
			continue
		}
		out, err := encode(p)
		if err != nil {
			return 0, fmt.Errorf("path %v: %w", p.Prefix, err)
		}
		add = append(add, change{out, p})
	}
	for k, p := range s.sent {
		if keep[k] {
			continue
		}
		out, err := encode(p)
		if err != nil {
			return 0, fmt.Errorf("path %v: %w", p.Prefix, err)
		}
		out.Withdrawal = true
		del = append(del, change{out, p})
	}
	// What the server did not take is sent again by the next call.
	added, err := inBatches(add, func(some []change) error {
		err := s.add(encoded(some)...)
		if err == nil {
			for _, c := range some {
				s.sent[c.path.Key] = c.path
			}
		}
		return err
	})
	deleted, delErr := inBatches(del, func(some []change) error {
		err := s.remove(encoded(some)...)
		if err == nil {
			for _, c := range some {
				delete(s.sent, c.path.Key)
			}
		}
		return err
	})
	if err == nil {
		err = delErr
	}
	return added + deleted, err
}

// Want changes the route targets whose paths peers shall send, where they know of RT constraint (RFC 4684). Others send
// all that they have.
func (s *Speaker) Want(targets []vpn.Target) error {
	keep := map[vpn.Target]bool{}
	for _, t := range targets {
		keep[t] = true
		if s.wanted[t] {
			continue
		}
		p, err := s.membership(t)
		if err == nil {
			err = s.add(p)
		}
		if err != nil {
			return fmt.Errorf("route target %v: %w", t, err)
		}
		s.wanted[t] = true
	}
	for t := range s.wanted {
		if keep[t] {
			continue
		}
		p, err := s.membership(t)
		if err == nil {
			p.Withdrawal = true
			err = s.remove(p)
		}
		if err != nil {
			return fmt.Errorf("route target %v: %w", t, err)
		}
		delete(s.wanted, t)
	}
	return nil
}

func (s *Speaker) membership(t vpn.Target) (*apiutil.Path, error) {
	nlri := bgp.NewRouteTargetMembershipNLRI(s.config.Asn, target(t))
	self, err := netip.ParseAddr(s.config.RouterId)
	if err != nil {
		return nil, err
	}
	reach, err := bgp.NewPathAttributeMpReachNLRI(bgp.RF_RTC_UC, []bgp.PathNLRI{{NLRI: nlri}}, self)
	if err != nil {
		return nil, err
	}
	return &apiutil.Path{Family: bgp.RF_RTC_UC, Nlri: nlri,
		Attrs: []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0), reach,
			bgp.NewPathAttributeLocalPref(100)}}, nil
}

func (s *Speaker) add(paths ...*apiutil.Path) error {
	_, err := s.server.AddPath(apiutil.AddPathRequest{Paths: paths})
	return err
}

func (s *Speaker) remove(paths ...*apiutil.Path) error {
	return s.server.DeletePath(apiutil.DeletePathRequest{Paths: paths})
}

// inBatches carries changes out, those of a batch that was refused one by one. It returns how many were done, and the
// first error.
func inBatches(all []change, do func([]change) error) (done int, first error) {
	for some := range slices.Chunk(all, batch) {
		if do(some) == nil {
			done += len(some)
			continue
		}
		for i := range some {
			switch err := do(some[i : i+1]); {
			case err == nil:
				done++
			case first == nil:
				first = fmt.Errorf("path %v %v: %w", some[i].path.Mac, some[i].path.Prefix, err)
			}
		}
	}
	return done, first
}

// change is a path to announce or to withdraw, and what the server is given for it.
type change struct {
	encoded *apiutil.Path
	path    vpn.Path
}

func encoded(changes []change) []*apiutil.Path {
	out := make([]*apiutil.Path, len(changes))
	for i, c := range changes {
		out[i] = c.encoded
	}
	return out
}

func equal(a, b vpn.Path) bool {
	return a.Nexthop == b.Nexthop && a.Label == b.Label && slices.Equal(a.Targets, b.Targets) &&
		slices.Equal(a.Encaps, b.Encaps) && a.LocalPref == b.LocalPref && a.Sequence == b.Sequence &&
		a.Sticky == b.Sticky && a.ESI == b.ESI && a.RouterMac == b.RouterMac
}

// updates passes paths on. Those of one call are nearly always those of one message, and so of one peer.
func (s *Speaker) updates(paths []*apiutil.Path, each func(Event)) {
	passed := s.endOfTooMany(paths)
	var e Event
	var last known
	for _, p := range paths {
		if !p.PeerAddress.IsValid() || p.Family == bgp.Family(0) || passed[p.PeerAddress] && !p.Withdrawal {
			continue
		}
		if e.Peer != p.PeerAddress {
			if e.Peer.IsValid() {
				each(e)
			}
			e = Event{Peer: p.PeerAddress}
		}
		if e.Updates == nil && !p.Withdrawal {
			e.Updates = make([]vpn.Path, 0, len(paths))
		}
		decode(p, &last, &e)
	}
	if e.Peer.IsValid() {
		each(e)
	}
}

func (s *Speaker) session(p *apiutil.WatchEventMessage_PeerEvent, each func(Event)) {
	if p.Type != apiutil.PEER_EVENT_STATE && p.Type != apiutil.PEER_EVENT_INIT {
		return
	}
	st := p.Peer.State
	name := strings.ToLower(strings.TrimPrefix(st.SessionState.String(), "BGP_FSM_"))
	e := Event{Peer: st.NeighborAddress, State: name}
	s.ended.note(e.Peer, st.SessionState, s.limits.passed(e.Peer))
	if st.SessionState == bgp.BGP_FSM_ESTABLISHED {
		e.Up = true
		s.waits[e.Peer] = common(st.LocalCap, st.RemoteCap)
		e.Unconstrained = s.ended.learn(e.Peer, !named(st.RemoteCap)[bgp.RF_RTC_UC])
	} else {
		e.Down, e.Reason = true, st.DisconnectMessage
		if s.limits.passed(e.Peer) {
			e.Reason = "it sent more than max_prefixes; a larger one begins a new session"
		}
	}
	each(e)
}

// common lists the families that both sides have named.
func common(local, remote []bgp.ParameterCapabilityInterface) map[bgp.Family]bool {
	ours, theirs := named(local), named(remote)
	both := map[bgp.Family]bool{}
	for _, f := range families {
		if theirs[f] && (ours[f] || len(ours) == 0) {
			both[f] = true
		}
	}
	return both
}

// named lists the families of capabilities.
func named(list []bgp.ParameterCapabilityInterface) map[bgp.Family]bool {
	found := map[bgp.Family]bool{}
	for _, c := range list {
		if mp, ok := c.(*bgp.CapMultiProtocol); ok {
			found[mp.CapValue] = true
		}
	}
	return found
}

func (s *Speaker) endOfRib(p *apiutil.Path, each func(Event)) {
	waits := s.waits[p.PeerAddress]
	if len(waits) == 0 {
		return
	}
	delete(waits, p.Family)
	if len(waits) == 0 {
		each(Event{Peer: p.PeerAddress, EndOfRib: true})
	}
}
