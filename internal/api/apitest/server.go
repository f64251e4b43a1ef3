// SPDX-License-Identifier: Apache-2.0

// Package apitest replaces corelaned in tests: the same API with its state in memory, and no packets.
package apitest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/ttrpc"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// Server holds the state. Lock it to look at or change the tables while it serves.
type Server struct {
	sync.Mutex
	Socket string
	Hello  *apiv1.HelloReply

	Groups      Table[string, *apiv1.AddressGroup]
	RuleLists   Table[string, *apiv1.RuleList]
	Rules       Table[RuleKey, *apiv1.Rule]
	Ports       Table[string, *apiv1.Port]
	Workers     Table[uint32, *apiv1.Worker]
	Vrfs        Table[string, *apiv1.Vrf]
	Routes      Table[RouteKey, *apiv1.Route]
	Nexthops    Table[uint32, *apiv1.Nexthop]
	Labels      Table[uint32, *apiv1.Label]
	Vnis        Table[uint32, *apiv1.Vni]
	Nat         Table[uint32, *apiv1.NatRule]
	Services    Table[string, *apiv1.Service]
	Endpoints   Table[string, *apiv1.Endpoint]
	Bridges     Table[string, *apiv1.Bridge]
	Macs        Table[string, *apiv1.Mac]
	Meters      Table[string, *apiv1.Meter]
	Mirrors     Table[string, *apiv1.Mirror]
	Neighbors   Table[string, *apiv1.Neighbor]
	Steers      Table[string, *apiv1.HostSteer]
	Memberships []*apiv1.Membership
	Latencies   []*apiv1.WorkerLatency
	Histories   []*apiv1.WorkerHistory
	WorkerPorts []*apiv1.WorkerPort
	Drops       []*apiv1.Drop
	Threads     []*apiv1.Thread
	Events      []*apiv1.Event
	Kinds       []*apiv1.EventKind
	Nodes       []*apiv1.Node
	Rings       []*apiv1.WorkerRing
	Plan        *apiv1.RebalancePlan
	Stats       []*apiv1.Stat
	Status      *apiv1.Status
	Settings    *apiv1.Settings
	Packets     []*apiv1.CapturedPacket
	Steps       []*apiv1.TraceStep
	Stages      []*agentv1.Stage

	Calls []string // "Ports.Add {json of the request}", in order; streams too

	// Refuse, if set, is called first in every recorded call ("Ports.Add"). Its error is the answer.
	Refuse func(method string, req proto.Message) error

	stop func()
}

// RouteKey finds a route.
type RouteKey struct{ Vrf, Prefix string }

// RuleKey finds a rule.
type RuleKey struct {
	List string
	ID   uint32
}

// Table keeps objects by key; lists go in order of keys.
type Table[K comparable, V proto.Message] struct{ m map[K]V }

// Put adds or replaces.
func (t *Table[K, V]) Put(k K, v V) {
	if t.m == nil {
		t.m = map[K]V{}
	}
	t.m[k] = v
}

// Get returns the object, or false.
func (t *Table[K, V]) Get(k K) (V, bool) { v, ok := t.m[k]; return v, ok }

// Delete removes.
func (t *Table[K, V]) Delete(k K) { delete(t.m, k) }

// Len counts the objects.
func (t *Table[K, V]) Len() int { return len(t.m) }

// All returns copies, ordered by key.
func (t *Table[K, V]) All() []V {
	keys := make([]K, 0, len(t.m))
	text := make(map[K]string, len(t.m))
	for k := range t.m {
		keys = append(keys, k)
		text[k] = fmt.Sprint(k)
		if n, ok := any(k).(uint32); ok {
			text[k] = fmt.Sprintf("%10d", n)
		}
		if r, ok := any(k).(RuleKey); ok {
			text[k] = fmt.Sprintf("%s %10d", r.List, r.ID)
		}
	}
	slices.SortFunc(keys, func(a, b K) int { return strings.Compare(text[a], text[b]) })
	all := make([]V, len(keys))
	for i, k := range keys {
		all[i] = proto.Clone(t.m[k]).(V)
	}
	return all
}

// Start serves on a new socket until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		Socket:   filepath.Join(t.TempDir(), "s"),
		Hello:    &apiv1.HelloReply{Major: api.Major, Minor: api.Minor, Version: "0.1", Dpdk: "DPDK 22.11", Pid: 42},
		Status:   &apiv1.Status{Version: "0.1", Pid: 42},
		Settings: &apiv1.Settings{MplsoudpPorts: []uint32{6635}, VxlanPorts: []uint32{4789}, LabelStackDepth: 3},
	}
	s.Vrfs.Put("fabric", &apiv1.Vrf{Name: "fabric"})
	s.serve(t)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *Server) serve(t testing.TB) {
	t.Helper()
	l, err := net.Listen("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	s.register(srv)
	done := make(chan struct{})
	go func() {
		_ = srv.Serve(context.Background(), l)
		close(done)
	}()
	s.stop = func() {
		_ = srv.Close()
		<-done
	}
}

// Restart closes all connections and serves again, with the same state.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.stop()
	s.serve(t)
}

// Dial connects a client that is closed when the test ends.
func (s *Server) Dial(t testing.TB) *api.Client {
	t.Helper()
	c, err := api.Dial(context.Background(), s.Socket, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Refusal makes the error that corelaned answers with.
func Refusal(code codes.Code, e *apiv1.Error) error {
	detail, err := anypb.New(e)
	if err != nil {
		return err
	}
	return status.ErrorProto(&spb.Status{Code: int32(code), Message: e.Message, Details: []*anypb.Any{detail}})
}

func missing(field string, value any) error {
	v := fmt.Sprint(value)
	return Refusal(codes.NotFound,
		&apiv1.Error{Field: field, Value: v, Message: fmt.Sprintf("%s '%s': does not exist", field, v)})
}

func exists(field string, value any) error {
	v := fmt.Sprint(value)
	return Refusal(codes.AlreadyExists,
		&apiv1.Error{Field: field, Value: v, Message: fmt.Sprintf("%s '%s': exists already", field, v)})
}
