// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/vpn"
)

// serve answers on the agent's own socket. Only the agent's own user and root may use it.
func (f *Fleet) serve(ctx context.Context, socket string) (stop func(), err error) {
	srv, err := ttrpc.NewServer()
	if err != nil {
		return nil, err
	}
	srv.RegisterService("corelane.v1.System", &ttrpc.ServiceDesc{Methods: map[string]ttrpc.Method{
		"Hello": func(_ context.Context, unmarshal func(any) error) (any, error) {
			reply := &apiv1.HelloReply{Major: api.Major, Minor: api.Minor, Pid: int32(os.Getpid())}
			return reply, unmarshal(&apiv1.HelloRequest{})
		}}})
	agentv1.RegisterFleetService(srv, service{f})
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.Dial("unix", socket); err == nil {
		_ = c.Close()
		return nil, errors.New("another agent answers on " + socket)
	}
	_ = os.Remove(socket)
	before := unix.Umask(0o177) // nobody else may connect, not even before a Chmod
	l, err := net.Listen("unix", socket)
	unix.Umask(before)
	if err != nil {
		return nil, err
	}
	go func() { _ = srv.Serve(ctx, l) }()
	return func() { _ = srv.Close() }, nil
}

type service struct{ f *Fleet }

func (s service) GetBgp(context.Context, *apiv1.Empty) (*agentv1.BgpStatus, error) {
	f := s.f
	f.enter()
	defer f.mu.Unlock()
	st := f.engine.Status()
	out := &agentv1.BgpStatus{Config: f.intent.Bgp, Paths: st.Paths, PathsRefused: st.Refused + f.faults,
		Deferring: st.Holding, Sync: proto.Clone(&f.sync).(*agentv1.SyncStatus), Objects: f.intent.Objects}
	for _, p := range f.intent.Peers {
		a := netip.MustParseAddr(p.Address)
		shown := proto.Clone(p).(*agentv1.Peer)
		shown.Password = ""
		ps := &agentv1.PeerStatus{Config: shown, State: "idle"}
		ps.Received, ps.Stale = f.engine.PeerPaths(a)
		if x := f.sessions[a]; x != nil {
			ps.State, ps.EndOfRib, ps.SinceNs = x.state, x.eor, uint64(x.since.UnixNano())
			ps.Error = x.reason
		}
		out.Peers = append(out.Peers, ps)
	}
	return out, nil
}

func (s service) ListInstances(_ context.Context, _ *apiv1.Empty, out agentv1.Fleet_ListInstancesServer) error {
	s.f.enter()
	list := s.f.engine.Instances()
	s.f.mu.Unlock()
	return sendAll(list, out.Send)
}

func (s service) ListAttachments(_ context.Context, _ *apiv1.Empty, out agentv1.Fleet_ListAttachmentsServer) error {
	s.f.enter()
	list := s.f.engine.Attachments()
	for _, a := range list {
		if why := s.f.refused["port "+a.Config.Port.Name]; why != "" {
			a.Error = why
		}
	}
	s.f.mu.Unlock()
	return sendAll(list, out.Send)
}

func (s service) ListSegments(_ context.Context, _ *apiv1.Empty, out agentv1.Fleet_ListSegmentsServer) error {
	s.f.enter()
	list := s.f.engine.Segments()
	for _, g := range list {
		if why := s.f.refused["bridge "+g.Config.Bridge]; why != "" {
			g.Error = why
		}
	}
	s.f.mu.Unlock()
	return sendAll(list, out.Send)
}

func (s service) ListPaths(_ context.Context, in *agentv1.PathListRequest, out agentv1.Fleet_ListPathsServer) error {
	prefix, err := netip.ParsePrefix(in.Prefix)
	if in.Prefix != "" && err != nil {
		return err
	}
	var list []*agentv1.Path
	s.f.enter()
	bridges := s.f.engine.BridgesByRD()
	for _, p := range s.f.engine.Announcements() {
		m := message(p)
		m.Verdict, m.Bridge = "announced", bridges[p.RD]
		if (!prefix.IsValid() || p.Prefix == prefix) && (in.Bridge == "" || m.Bridge == in.Bridge) {
			list = append(list, m)
		}
	}
	add := func(j vpn.Judged) {
		m := message(j.Path)
		m.Stale, m.Vrf, m.Bridge, m.Verdict, m.Reason = j.Stale, j.Vrf, j.Bridge, string(j.Verdict), j.Reason
		list = append(list, m)
	}
	if in.Bridge == "" {
		s.f.engine.Judge(in.Vrf, prefix, add)
	}
	if in.Vrf == "" && !prefix.IsValid() {
		s.f.engine.JudgeSegments(in.Bridge, add)
	}
	s.f.mu.Unlock()
	return sendAll(list, out.Send)
}

func message(p vpn.Path) *agentv1.Path {
	m := &agentv1.Path{Kind: p.Kind.String(), Rd: p.RD.String(), Nexthop: p.Nexthop.String(), Encaps: p.Encaps,
		LocalPref: p.LocalPref, Sequence: p.Sequence, Sticky: p.Sticky}
	if p.Prefix.IsValid() {
		m.Prefix = p.Prefix.String()
	}
	switch p.Kind {
	case vpn.KindIP:
		m.Label = p.Label
	case vpn.KindMac:
		m.Mac, m.Vni = p.Mac.String(), p.Label
	default:
		m.Vni = p.Label
	}
	if p.Peer.IsValid() {
		m.Peer = p.Peer.String()
	}
	if p.RouterMac != (vpn.Mac{}) {
		m.RouterMac = p.RouterMac.String()
	}
	if p.Originator.IsValid() {
		m.Originator = p.Originator.String()
	}
	for _, t := range p.Targets {
		m.Targets = append(m.Targets, t.String())
	}
	return m
}

func sendAll[T any](list []T, send func(T) error) error {
	for _, m := range list {
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}
