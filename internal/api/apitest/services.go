// SPDX-License-Identifier: Apache-2.0
package apitest

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

func (s *Server) register(srv *ttrpc.Server) {
	apiv1.RegisterPortsService(srv, ports{s})
	apiv1.RegisterWorkersService(srv, workers{s})
	registerPolicy(srv, s)
	apiv1.RegisterVrfsService(srv, vrfs{s})
	apiv1.RegisterRoutesService(srv, routes{s})
	apiv1.RegisterNexthopsService(srv, nexthops{s})
	apiv1.RegisterLabelsService(srv, labels{s})
	apiv1.RegisterVnisService(srv, vnis{s})
	apiv1.RegisterMetersService(srv, meters{s})
	apiv1.RegisterMirrorsService(srv, mirrors{s})
	apiv1.RegisterNatService(srv, nat{s})
	apiv1.RegisterServicesService(srv, services{s})
	apiv1.RegisterEndpointsService(srv, endpoints{s})
	apiv1.RegisterBridgesService(srv, bridges{s})
	apiv1.RegisterMacsService(srv, macs{s})
	apiv1.RegisterNeighborsService(srv, neighbors{s})
	apiv1.RegisterHostSteersService(srv, steers{s})
	apiv1.RegisterStatsService(srv, stats{s})
	apiv1.RegisterThreadsService(srv, threads{s})
	apiv1.RegisterDebugService(srv, debug{s})
	apiv1.RegisterEventsService(srv, events{s})
	apiv1.RegisterCaptureService(srv, captures{s})
	apiv1.RegisterSystemService(srv, system{s})
	agentv1.RegisterFleetService(srv, fleet{Server: s})
}

// begin records a call, and returns the error of Refuse.
func (s *Server) begin(method string, req proto.Message) error {
	text, err := api.JSON(req, false)
	if err != nil {
		return err
	}
	s.Calls = append(s.Calls, method+" "+string(text))
	if s.Refuse != nil {
		return s.Refuse(method, req)
	}
	return nil
}

func add[K comparable, V proto.Message](s *Server, t *Table[K, V], method, field string, req proto.Message, k K, v V,
	replace bool) (V, error) {
	s.Lock()
	defer s.Unlock()
	var none V
	if err := s.begin(method, req); err != nil {
		return none, err
	}
	if _, ok := t.Get(k); ok && !replace {
		return none, exists(field, k)
	}
	t.Put(k, v)
	return proto.Clone(v).(V), nil
}

// addAll adds objects that do not exist.
func addAll[K comparable, V proto.Message](s *Server, t *Table[K, V], method, field string, req proto.Message, list []V,
	key func(V) K) (uint32, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin(method, req); err != nil {
		return 0, err
	}
	for _, v := range list {
		if _, ok := t.Get(key(v)); ok {
			return 0, exists(field, key(v))
		}
	}
	for _, v := range list {
		t.Put(key(v), v)
	}
	return uint32(len(list)), nil
}

// set merges the named fields of v into the object of key k.
func set[K comparable, V proto.Message](s *Server, t *Table[K, V], method, field string, req proto.Message, k K, v V,
	fields []string) (V, error) {
	s.Lock()
	defer s.Unlock()
	var none V
	if err := s.begin(method, req); err != nil {
		return none, err
	}
	old, ok := t.Get(k)
	if !ok {
		return none, missing(field, k)
	}
	copyFields(old, v, fields)
	return proto.Clone(old).(V), nil
}

func copyFields(dst, src proto.Message, fields []string) {
	d, s := dst.ProtoReflect(), src.ProtoReflect()
	for _, name := range fields {
		f := d.Descriptor().Fields().ByName(protoreflect.Name(name))
		switch {
		case f == nil: // a oneof keeps its value
		case s.Has(f):
			d.Set(f, s.Get(f))
		default:
			d.Clear(f)
		}
	}
}

func del[K comparable, V proto.Message](s *Server, t *Table[K, V], method, field string, req proto.Message,
	k K) (*apiv1.Empty, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin(method, req); err != nil {
		return nil, err
	}
	if _, ok := t.Get(k); !ok {
		return nil, missing(field, k)
	}
	t.Delete(k)
	return &apiv1.Empty{}, nil
}

// send answers a List call with the objects that match; match may be nil.
func send[V proto.Message](s *Server, method string, req proto.Message, all func() []V, match func(V) bool,
	out interface{ Send(V) error }) error {
	s.Lock()
	err := s.begin(method, req)
	list := all()
	s.Unlock()
	if err != nil {
		return err
	}
	for _, v := range list {
		if match == nil || match(v) {
			if err := out.Send(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// given reports whether have passes a filter of a request: the zero value of want passes everything.
func given[T comparable](want, have T) bool {
	var zero T
	return want == zero || want == have
}

func slice[V proto.Message](list []V) func() []V { return func() []V { return list } }

type ports struct{ *Server }

func (s ports) Add(_ context.Context, r *apiv1.PortAddRequest) (*apiv1.Port, error) {
	return add(s.Server, &s.Ports, "Ports.Add", "port.name", r, r.Port.Name, r.Port, false)
}
func (s ports) Set(_ context.Context, r *apiv1.PortSetRequest) (*apiv1.Port, error) {
	return set(s.Server, &s.Ports, "Ports.Set", "port.name", r, r.Port.Name, r.Port, r.Fields)
}
func (s ports) Del(_ context.Context, r *apiv1.PortDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Ports, "Ports.Del", "name", r, r.Name)
}
func (s ports) List(_ context.Context, r *apiv1.PortListRequest, out apiv1.Ports_ListServer) error {
	return send(s.Server, "Ports.List", r, s.Ports.All, func(p *apiv1.Port) bool {
		return given(r.Name, p.Name) && given(r.Role, p.Role)
	}, out)
}
func (s ports) Assign(_ context.Context, r *apiv1.PortAssignRequest) (*apiv1.Port, error) {
	return set(s.Server, &s.Ports, "Ports.Assign", "name", r, r.Name, &apiv1.Port{}, nil)
}

type workers struct{ *Server }

func (s workers) Add(_ context.Context, r *apiv1.WorkerAddRequest) (*apiv1.Worker, error) {
	s.Lock()
	for r.AutoId {
		if _, taken := s.Workers.Get(r.Worker.Id); !taken {
			break
		}
		r.Worker.Id++
	}
	s.Unlock()
	return add(s.Server, &s.Workers, "Workers.Add", "worker.id", r, r.Worker.Id, r.Worker, false)
}
func (s workers) Set(_ context.Context, r *apiv1.WorkerSetRequest) (*apiv1.Worker, error) {
	return set(s.Server, &s.Workers, "Workers.Set", "worker.id", r, r.Worker.Id, r.Worker, r.Fields)
}
func (s workers) Del(_ context.Context, r *apiv1.WorkerDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Workers, "Workers.Del", "id", r, r.Id)
}
func (s workers) List(_ context.Context, r *apiv1.WorkerListRequest, out apiv1.Workers_ListServer) error {
	return send(s.Server, "Workers.List", r, s.Workers.All, nil, out)
}
func (s workers) Latency(_ context.Context, r *apiv1.WorkerLatencyRequest, out apiv1.Workers_LatencyServer) error {
	return send(s.Server, "Workers.Latency", r, slice(s.Server.Latencies), func(l *apiv1.WorkerLatency) bool {
		return !r.OneWorker || r.Id == l.Worker
	}, out)
}
func (s workers) ResetLatency(_ context.Context, r *apiv1.WorkerLatencyRequest) (*apiv1.Empty, error) {
	s.Lock()
	defer s.Unlock()
	return &apiv1.Empty{}, s.begin("Workers.ResetLatency", r)
}
func (s workers) History(_ context.Context, r *apiv1.WorkerHistoryRequest, out apiv1.Workers_HistoryServer) error {
	return send(s.Server, "Workers.History", r, slice(s.Server.Histories), nil, out)
}
func (s workers) Ports(_ context.Context, r *apiv1.WorkerPortsRequest, out apiv1.Workers_PortsServer) error {
	return send(s.Server, "Workers.Ports", r, slice(s.Server.WorkerPorts), func(p *apiv1.WorkerPort) bool {
		return given(r.Port, p.Port)
	}, out)
}

func (s workers) Rebalance(_ context.Context, r *apiv1.RebalanceRequest) (*apiv1.RebalancePlan, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Workers.Rebalance", r); err != nil {
		return nil, err
	}
	plan := proto.Clone(s.Server.Plan).(*apiv1.RebalancePlan)
	plan.Applied = r.Apply && len(plan.Moves) > 0
	return plan, nil
}
func (s workers) Rings(_ context.Context, r *apiv1.WorkerRingListRequest, out apiv1.Workers_RingsServer) error {
	return send(s.Server, "Workers.Rings", r, slice(s.Server.Rings), nil, out)
}

type vrfs struct{ *Server }

func (s vrfs) Add(_ context.Context, r *apiv1.VrfAddRequest) (*apiv1.Vrf, error) {
	return add(s.Server, &s.Vrfs, "Vrfs.Add", "vrf.name", r, r.Vrf.Name, r.Vrf, false)
}
func (s vrfs) Del(_ context.Context, r *apiv1.VrfDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Vrfs, "Vrfs.Del", "name", r, r.Name)
}
func (s vrfs) List(_ context.Context, r *apiv1.VrfListRequest, out apiv1.Vrfs_ListServer) error {
	return send(s.Server, "Vrfs.List", r, s.Vrfs.All, func(v *apiv1.Vrf) bool { return given(r.Name, v.Name) }, out)
}

type routes struct{ *Server }

func (s routes) Add(_ context.Context, r *apiv1.RouteAddRequest) (*apiv1.RouteReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Routes.Add", r); err != nil {
		return nil, err
	}
	for _, route := range r.Routes {
		route.Origin = "api"
		s.Routes.Put(RouteKey{route.Vrf, route.Prefix}, route)
	}
	return &apiv1.RouteReply{Changed: uint32(len(r.Routes))}, nil
}
func (s routes) Del(_ context.Context, r *apiv1.RouteDelRequest) (*apiv1.RouteReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Routes.Del", r); err != nil {
		return nil, err
	}
	for _, route := range r.Routes {
		s.Routes.Delete(RouteKey{route.Vrf, route.Prefix})
	}
	return &apiv1.RouteReply{Changed: uint32(len(r.Routes))}, nil
}
func (s routes) List(_ context.Context, r *apiv1.RouteListRequest, out apiv1.Routes_ListServer) error {
	var under netip.Prefix
	if r.Under != "" {
		under = netip.MustParsePrefix(r.Under)
	}
	return send(s.Server, "Routes.List", r, s.Routes.All, func(route *apiv1.Route) bool {
		p := netip.MustParsePrefix(route.Prefix)
		return given(r.Vrf, route.Vrf) && given(r.Origin, route.Origin) &&
			(r.Family == 0 || (r.Family == apiv1.Family_FAMILY_IPV6) == p.Addr().Is6()) &&
			(r.Under == "" || under.Contains(p.Addr()) && p.Bits() >= under.Bits())
	}, out)
}
func (s routes) Lookup(_ context.Context, r *apiv1.RouteLookupRequest) (*apiv1.Route, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Routes.Lookup", r); err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddr(r.Address)
	if err != nil {
		return nil, missing("address", r.Address)
	}
	var best *apiv1.Route
	bits := -1
	for k, route := range s.Routes.m {
		p := netip.MustParsePrefix(k.Prefix)
		if k.Vrf == r.Vrf && p.Contains(addr) && p.Bits() > bits {
			best, bits = route, p.Bits()
		}
	}
	if best == nil {
		return nil, missing("address", r.Address)
	}
	return proto.Clone(best).(*apiv1.Route), nil
}

type nexthops struct{ *Server }

func (s nexthops) Add(_ context.Context, r *apiv1.NexthopAddRequest) (*apiv1.Nexthop, error) {
	return add(s.Server, &s.Nexthops, "Nexthops.Add", "nexthop.id", r, r.Nexthop.Id, r.Nexthop, r.Replace)
}
func (s nexthops) AddAll(_ context.Context, r *apiv1.NexthopAddAllRequest) (*apiv1.NexthopAddAllReply, error) {
	n, err := addAll(s.Server, &s.Nexthops, "Nexthops.AddAll", "nexthop.id", r, r.Nexthops, (*apiv1.Nexthop).GetId)
	return &apiv1.NexthopAddAllReply{Added: n}, err
}
func (s nexthops) Del(_ context.Context, r *apiv1.NexthopDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Nexthops, "Nexthops.Del", "id", r, r.Id)
}
func (s nexthops) DelAll(_ context.Context, r *apiv1.NexthopDelAllRequest) (*apiv1.NexthopDelAllReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Nexthops.DelAll", r); err != nil {
		return nil, err
	}
	for _, id := range r.Ids {
		if _, ok := s.Nexthops.Get(id); !ok {
			return nil, missing("ids", id)
		}
	}
	for _, id := range r.Ids {
		s.Nexthops.Delete(id)
	}
	return &apiv1.NexthopDelAllReply{Deleted: uint32(len(r.Ids))}, nil
}
func (s nexthops) List(_ context.Context, r *apiv1.NexthopListRequest, out apiv1.Nexthops_ListServer) error {
	return send(s.Server, "Nexthops.List", r, s.Nexthops.All, func(n *apiv1.Nexthop) bool {
		return given(r.Id, n.Id) && (r.All || n.GetState().GetOrigin() != "system")
	}, out)
}

type meters struct{ *Server }

func (s meters) Add(_ context.Context, r *apiv1.MeterAddRequest) (*apiv1.Meter, error) {
	return add(s.Server, &s.Meters, "Meters.Add", "meter.name", r, r.Meter.Name, r.Meter, false)
}

func (s meters) Set(_ context.Context, r *apiv1.MeterSetRequest) (*apiv1.Meter, error) {
	return set(s.Server, &s.Meters, "Meters.Set", "meter.name", r, r.Meter.Name, r.Meter, r.Fields)
}

func (s meters) Del(_ context.Context, r *apiv1.MeterDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Meters, "Meters.Del", "name", r, r.Name)
}

func (s meters) List(_ context.Context, r *apiv1.MeterListRequest, out apiv1.Meters_ListServer) error {
	return send(s.Server, "Meters.List", r, s.Meters.All, func(m *apiv1.Meter) bool {
		return given(r.Name, m.Name)
	}, out)
}

type mirrors struct{ *Server }

func (s mirrors) Add(_ context.Context, r *apiv1.MirrorAddRequest) (*apiv1.Mirror, error) {
	return add(s.Server, &s.Mirrors, "Mirrors.Add", "mirror.name", r, r.Mirror.Name, r.Mirror, false)
}

func (s mirrors) Set(_ context.Context, r *apiv1.MirrorSetRequest) (*apiv1.Mirror, error) {
	return set(s.Server, &s.Mirrors, "Mirrors.Set", "mirror.name", r, r.Mirror.Name, r.Mirror, r.Fields)
}

func (s mirrors) Del(_ context.Context, r *apiv1.MirrorDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Mirrors, "Mirrors.Del", "name", r, r.Name)
}

func (s mirrors) List(_ context.Context, r *apiv1.MirrorListRequest, out apiv1.Mirrors_ListServer) error {
	return send(s.Server, "Mirrors.List", r, s.Mirrors.All, func(m *apiv1.Mirror) bool {
		return given(r.Name, m.Name)
	}, out)
}

type labels struct{ *Server }

func (s labels) Add(_ context.Context, r *apiv1.LabelAddRequest) (*apiv1.Label, error) {
	return add(s.Server, &s.Labels, "Labels.Add", "label.label", r, r.Label.Label, r.Label, r.Replace)
}
func (s labels) Del(_ context.Context, r *apiv1.LabelDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Labels, "Labels.Del", "label", r, r.Label)
}
func (s labels) List(_ context.Context, r *apiv1.LabelListRequest, out apiv1.Labels_ListServer) error {
	return send(s.Server, "Labels.List", r, s.Labels.All, nil, out)
}

type nat struct{ *Server }

func (s nat) Add(_ context.Context, r *apiv1.NatAddRequest) (*apiv1.NatRule, error) {
	return add(s.Server, &s.Nat, "Nat.Add", "rule.id", r, r.Rule.Id, r.Rule, false)
}
func (s nat) Set(_ context.Context, r *apiv1.NatSetRequest) (*apiv1.NatRule, error) {
	return add(s.Server, &s.Nat, "Nat.Set", "rule.id", r, r.Rule.Id, r.Rule, true)
}
func (s nat) Del(_ context.Context, r *apiv1.NatDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Nat, "Nat.Del", "id", r, r.Id)
}
func (s nat) List(_ context.Context, r *apiv1.NatListRequest, out apiv1.Nat_ListServer) error {
	return send(s.Server, "Nat.List", r, s.Nat.All, func(m *apiv1.NatRule) bool { return given(r.Vrf, m.Vrf) }, out)
}

type services struct{ *Server }

func (s services) Add(_ context.Context, r *apiv1.ServiceAddRequest) (*apiv1.Service, error) {
	return add(s.Server, &s.Services, "Services.Add", "service.name", r, r.Service.Name, r.Service, false)
}
func (s services) Set(_ context.Context, r *apiv1.ServiceSetRequest) (*apiv1.Service, error) {
	return set(s.Server, &s.Services, "Services.Set", "service.name", r, r.Service.Name, r.Service, r.Fields)
}
func (s services) Del(_ context.Context, r *apiv1.ServiceDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Services, "Services.Del", "name", r, r.Name)
}
func (s services) List(_ context.Context, r *apiv1.ServiceListRequest, out apiv1.Services_ListServer) error {
	return send(s.Server, "Services.List", r, s.Services.All,
		func(m *apiv1.Service) bool { return given(r.Name, m.Name) }, out)
}

type endpoints struct{ *Server }

func endpointKey(service, address string, port uint32) string {
	return fmt.Sprint(service, " ", address, " ", port)
}

func (s endpoints) Add(_ context.Context, r *apiv1.EndpointAddRequest) (*apiv1.Endpoint, error) {
	e := r.Endpoint
	return add(s.Server, &s.Endpoints, "Endpoints.Add", "endpoint.address", r,
		endpointKey(e.Service, e.Address, e.Port), e, false)
}
func (s endpoints) Set(_ context.Context, r *apiv1.EndpointSetRequest) (*apiv1.Endpoint, error) {
	e := r.Endpoint
	return set(s.Server, &s.Endpoints, "Endpoints.Set", "endpoint.address", r,
		endpointKey(e.Service, e.Address, e.Port), e, r.Fields)
}
func (s endpoints) Del(_ context.Context, r *apiv1.EndpointDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Endpoints, "Endpoints.Del", "address", r, endpointKey(r.Service, r.Address, r.Port))
}
func (s endpoints) List(_ context.Context, r *apiv1.EndpointListRequest, out apiv1.Endpoints_ListServer) error {
	return send(s.Server, "Endpoints.List", r, s.Endpoints.All,
		func(m *apiv1.Endpoint) bool { return given(r.Service, m.Service) }, out)
}

type vnis struct{ *Server }

func (s vnis) Add(_ context.Context, r *apiv1.VniAddRequest) (*apiv1.Vni, error) {
	return add(s.Server, &s.Vnis, "Vnis.Add", "vni.vni", r, r.Vni.Vni, r.Vni, r.Replace)
}
func (s vnis) Del(_ context.Context, r *apiv1.VniDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Vnis, "Vnis.Del", "vni", r, r.Vni)
}
func (s vnis) List(_ context.Context, r *apiv1.VniListRequest, out apiv1.Vnis_ListServer) error {
	return send(s.Server, "Vnis.List", r, s.Vnis.All, nil, out)
}

type bridges struct{ *Server }

func (s bridges) Add(_ context.Context, r *apiv1.BridgeAddRequest) (*apiv1.Bridge, error) {
	return add(s.Server, &s.Bridges, "Bridges.Add", "bridge.name", r, r.Bridge.Name, r.Bridge, false)
}
func (s bridges) Set(_ context.Context, r *apiv1.BridgeSetRequest) (*apiv1.Bridge, error) {
	return set(s.Server, &s.Bridges, "Bridges.Set", "bridge.name", r, r.Bridge.Name, r.Bridge, r.Fields)
}
func (s bridges) Del(_ context.Context, r *apiv1.BridgeDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Bridges, "Bridges.Del", "name", r, r.Name)
}
func (s bridges) List(_ context.Context, r *apiv1.BridgeListRequest, out apiv1.Bridges_ListServer) error {
	return send(s.Server, "Bridges.List", r, s.Bridges.All, func(b *apiv1.Bridge) bool {
		return given(r.Name, b.Name)
	}, out)
}
func (s bridges) Memberships(_ context.Context, r *apiv1.MembershipListRequest,
	out apiv1.Bridges_MembershipsServer) error {
	all := func() []*apiv1.Membership { return s.Server.Memberships }
	return send(s.Server, "Bridges.Memberships", r, all, func(m *apiv1.Membership) bool {
		return given(r.Bridge, m.Bridge)
	}, out)
}

type macs struct{ *Server }

func (s macs) Add(_ context.Context, r *apiv1.MacAddRequest) (*apiv1.Mac, error) {
	return add(s.Server, &s.Macs, "Macs.Add", "mac.mac", r, r.Mac.Bridge+" "+r.Mac.Mac, r.Mac, false)
}
func (s macs) AddAll(_ context.Context, r *apiv1.MacAddAllRequest) (*apiv1.MacAddAllReply, error) {
	n, err := addAll(s.Server, &s.Macs, "Macs.AddAll", "mac.mac", r, r.Macs,
		func(m *apiv1.Mac) string { return m.Bridge + " " + m.Mac })
	return &apiv1.MacAddAllReply{Added: n}, err
}
func (s macs) Del(_ context.Context, r *apiv1.MacDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Macs, "Macs.Del", "mac", r, r.Bridge+" "+r.Mac)
}
func (s macs) List(_ context.Context, r *apiv1.MacListRequest, out apiv1.Macs_ListServer) error {
	return send(s.Server, "Macs.List", r, s.Macs.All, func(m *apiv1.Mac) bool { return given(r.Bridge, m.Bridge) }, out)
}

// Watch says that changes were missed, that each address was learnt, and ends.
func (s macs) Watch(_ context.Context, r *apiv1.MacWatchRequest, out apiv1.Macs_WatchServer) error {
	changes := func() []*apiv1.MacEvent {
		list := []*apiv1.MacEvent{{}}
		for _, m := range s.Macs.All() {
			list = append(list, &apiv1.MacEvent{Change: apiv1.MacChange_MAC_CHANGE_LEARNT, Mac: m})
		}
		return list
	}
	return send(s.Server, "Macs.Watch", r, changes, func(e *apiv1.MacEvent) bool {
		return e.Mac == nil || given(r.Bridge, e.Mac.Bridge)
	}, out)
}

type neighbors struct{ *Server }

func (s neighbors) Add(_ context.Context, r *apiv1.NeighborAddRequest) (*apiv1.Neighbor, error) {
	n := proto.Clone(r.Neighbor).(*apiv1.Neighbor)
	n.Status = apiv1.NeighborStatus_NEIGHBOR_PERMANENT
	return add(s.Server, &s.Neighbors, "Neighbors.Add", "neighbor.address", r, n.Port+" "+n.Address, n, true)
}
func (s neighbors) Del(_ context.Context, r *apiv1.NeighborDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Neighbors, "Neighbors.Del", "address", r, r.Port+" "+r.Address)
}
func (s neighbors) List(_ context.Context, r *apiv1.NeighborListRequest, out apiv1.Neighbors_ListServer) error {
	return send(s.Server, "Neighbors.List", r, s.Neighbors.All, func(n *apiv1.Neighbor) bool {
		return given(r.Port, n.Port)
	}, out)
}

type stats struct{ *Server }

func (s stats) Drops(_ context.Context, r *apiv1.DropListRequest, out apiv1.Stats_DropsServer) error {
	return send(s.Server, "Stats.Drops", r, slice(s.Server.Drops), func(d *apiv1.Drop) bool {
		return (r.Zero || d.Packets != 0) && given(r.Port, d.Port)
	}, out)
}
func (s stats) Graph(_ context.Context, r *apiv1.NodeListRequest, out apiv1.Stats_GraphServer) error {
	return send(s.Server, "Stats.Graph", r, slice(s.Server.Nodes), func(n *apiv1.Node) bool {
		return !r.OneWorker || r.Worker == n.Worker
	}, out)
}
func (s stats) List(_ context.Context, r *apiv1.StatListRequest, out apiv1.Stats_ListServer) error {
	return send(s.Server, "Stats.List", r, slice(s.Server.Stats), func(st *apiv1.Stat) bool {
		return given(r.Port, st.Port)
	}, out)
}

type captures struct{ *Server }

func (s captures) Packets(_ context.Context, r *apiv1.CaptureRequest, out apiv1.Capture_PacketsServer) error {
	n := uint64(0)
	return send(s.Server, "Capture.Packets", r, slice(s.Server.Packets), func(p *apiv1.CapturedPacket) bool {
		n++
		return given(r.Port, p.Port) && (r.Count == 0 || n <= r.Count)
	}, out)
}
func (s captures) Trace(_ context.Context, r *apiv1.TraceRequest, out apiv1.Capture_TraceServer) error {
	return send(s.Server, "Capture.Trace", r, slice(s.Server.Steps), nil, out)
}

type system struct{ *Server }

func (s system) Hello(_ context.Context, _ *apiv1.HelloRequest) (*apiv1.HelloReply, error) {
	return s.Server.Hello, nil
}
func (s system) GetStatus(context.Context, *apiv1.Empty) (*apiv1.Status, error) {
	s.Lock()
	defer s.Unlock()
	return proto.Clone(s.Status).(*apiv1.Status), nil
}
func (s system) GetSettings(context.Context, *apiv1.Empty) (*apiv1.Settings, error) {
	s.Lock()
	defer s.Unlock()
	return proto.Clone(s.Settings).(*apiv1.Settings), nil
}
func (s system) SetSettings(_ context.Context, r *apiv1.SettingsSetRequest) (*apiv1.Settings, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("System.SetSettings", r); err != nil {
		return nil, err
	}
	copyFields(s.Settings, r.Settings, r.Fields)
	return proto.Clone(s.Settings).(*apiv1.Settings), nil
}

type steers struct{ *Server }

func (s steers) Add(_ context.Context, r *apiv1.HostSteerAddRequest) (*apiv1.HostSteer, error) {
	n := proto.Clone(r.Steer).(*apiv1.HostSteer)
	return add(s.Server, &s.Steers, "HostSteers.Add", "steer.address", r, n.Port+" "+n.Address, n, false)
}
func (s steers) Del(_ context.Context, r *apiv1.HostSteerDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Steers, "HostSteers.Del", "address", r, r.Port+" "+r.Address)
}
func (s steers) List(_ context.Context, r *apiv1.HostSteerListRequest, out apiv1.HostSteers_ListServer) error {
	return send(s.Server, "HostSteers.List", r, s.Steers.All, func(n *apiv1.HostSteer) bool {
		return given(r.Port, n.Port)
	}, out)
}
