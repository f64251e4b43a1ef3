// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// model is a node that enforces corelaned's rules about which objects may exist together, and does nothing else.
type model struct {
	objects map[string]map[string]proto.Message
	routes  map[string]Route // by VRF and prefix
	failAt  []int            // numbers of the calls to refuse
	failOn  string           // "del ports p0": this change is always refused
	late    int              // so many calls are refused because a worker is late
	old     bool             // it does not know batches of next hops that are deleted
	calls   int
	stop    func() // serve() no more
}

func newModel() *model {
	m := &model{objects: map[string]map[string]proto.Message{}, routes: map[string]Route{}}
	for _, s := range sections {
		m.objects[s] = map[string]proto.Message{}
	}
	m.objects["settings"][""] = DefaultSettings()
	m.objects["vrfs"][FabricVrf] = &apiv1.Vrf{Name: FabricVrf}
	return m
}

func refuse(field, format string, args ...any) error {
	return refuseAs(codes.InvalidArgument, field, format, args...)
}

func refuseAs(code codes.Code, field, format string, args ...any) error {
	st, err := status.New(code, "refused").WithDetails(&apiv1.Error{Field: field,
		Message: fmt.Sprintf(format, args...)})
	if err != nil {
		return err
	}
	return st.Err()
}

// refuseAt says which object of a request was refused.
func refuseAt(index int, err error) error {
	st := status.Convert(err)
	detail := st.Details()[0].(*apiv1.Error)
	detail.Index = uint32(index)
	st, err = status.New(st.Code(), st.Message()).WithDetails(detail)
	if err != nil {
		return err
	}
	return st.Err()
}

func (m *model) begin() error {
	m.calls++
	if slices.Contains(m.failAt, m.calls) {
		return refuse("", "told to refuse call %d", m.calls)
	}
	if m.late > 0 {
		m.late--
		return status.Error(codes.Unavailable, "a worker has not finished its packets for 200 ms")
	}
	return nil
}

// uses lists the objects to which an object refers, by section.
func uses(o proto.Message) (out [][2]string) {
	var walk func(r protoreflect.Message)
	walk = func(r protoreflect.Message) {
		r.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			section := ruleOf(fd).ref
			switch {
			case fd.IsList():
				for i := range v.List().Len() {
					if fd.Kind() == protoreflect.MessageKind {
						walk(v.List().Get(i).Message())
					} else if section != "" {
						out = append(out, [2]string{section, v.List().Get(i).String()})
					}
				}
			case fd.Kind() == protoreflect.MessageKind:
				walk(v.Message())
			case section != "":
				out = append(out, [2]string{section, v.String()})
			}
			return true
		})
	}
	walk(o.ProtoReflect())
	return out
}

// inUse returns an object that refers to another one, "" if there is none.
func (m *model) inUse(section, key string) string {
	for s, objects := range m.objects {
		for k, o := range objects {
			if slices.Contains(uses(o), [2]string{section, key}) {
				return s + " " + k
			}
		}
	}
	for _, r := range m.routes {
		if section == "vrfs" && r.Vrf == key || section == "nexthops" && fmt.Sprint(r.Nexthop) == key {
			return "route " + r.Prefix.String()
		}
	}
	return ""
}

// put adds or replaces an object if all objects exist to which it refers and it shares nothing that must be unique.
func (m *model) put(o proto.Message, replace bool) error {
	section := nounOfMessage(o).section
	key := keyOf(o)
	old := m.objects[section][key]
	if (old != nil) != replace {
		return refuse(section, "%s '%s': exists %v, replace %v", section, key, old != nil, replace)
	}
	for _, use := range uses(o) {
		if m.objects[use[0]][use[1]] == nil {
			return refuse(section, "%s '%s' names %s '%s', which is not there", section, key, use[0], use[1])
		}
	}
	if err := m.exclusive(section, key, o, old); err != nil {
		return err
	}
	if err := m.told("put", section, key); err != nil {
		return err
	}
	m.objects[section][key] = o
	return nil
}

// told returns the refusal of a change that is always refused.
func (m *model) told(verb, section, key string) error {
	if change := verb + " " + section + " " + key; change == m.failOn {
		return refuse(section, "told to refuse '%s'", change)
	}
	return nil
}

func (m *model) exclusive(section, key string, o, old proto.Message) error {
	switch o := o.(type) {
	case *apiv1.Port:
		if !o.Stateful && o.FlowLimit+o.FlowRate != 0 {
			return refuse("port.flow_limit", "port '%s' keeps no flows", key)
		}
		if !o.Stateful && o.EgressRules+o.IngressRules != "" {
			return refuse("port.stateful", "port '%s': stateful %v, rules %q", key, o.Stateful,
				o.EgressRules+o.IngressRules)
		}
		if !o.Stateful && o.EgressMeter+o.IngressMeter+o.Mirror != "" {
			return refuse("port.stateful", "port '%s' keeps no flows for its meters or mirror", key)
		}
		for k, other := range m.objects[section] {
			other := other.(*apiv1.Port)
			if k == key {
				continue
			}
			if o.Bridge != "" && o.Bridge == other.Bridge && o.Vrf != "" && other.Vrf != "" && o.Vrf != other.Vrf {
				return refuse("port.vrf", "port '%s': '%s' of its bridge is in VRF '%s'", key, k, other.Vrf)
			}
			if o.GetSubport().GetParent() == k && o.Mtu > other.Mtu || other.GetSubport().GetParent() == key &&
				o.Mtu < other.Mtu {
				return refuse("port.mtu", "port '%s': MTU %d, that of '%s' is %d", key, o.Mtu, k, other.Mtu)
			}
			if deviceOf(o) == deviceOf(other) {
				return refuse("port", "port '%s': device of '%s'", key, k)
			}
			for _, a := range addressKeys(o) {
				if slices.Contains(addressKeys(other), a) {
					return refuse("port", "port '%s': address %v of '%s'", key, a, k)
				}
			}
		}
		if was, ok := old.(*apiv1.Port); ok && was.Bridge != o.Bridge {
			for k, mac := range m.objects["macs"] {
				if mac.(*apiv1.Mac).GetPort() == key {
					return refuse("port", "port '%s' leaves the bridge of MAC %s", key, k)
				}
			}
		}
	case *apiv1.Bridge:
		for _, id := range o.Flood {
			if m.objects["nexthops"][fmt.Sprint(id)].(*apiv1.Nexthop).GetTunnel() == nil {
				return refuse("bridge.flood", "next hop %d is no tunnel", id)
			}
		}
	case *apiv1.Mac:
		if n := m.objects["nexthops"][fmt.Sprint(o.GetNexthop())]; n != nil && n.(*apiv1.Nexthop).GetTunnel() == nil {
			return refuse("mac.nexthop", "next hop %d is no tunnel", o.GetNexthop())
		}
		if p := m.objects["ports"][o.GetPort()]; p != nil && p.(*apiv1.Port).Bridge != o.Bridge {
			return refuse("mac.port", "port '%s' is not in bridge '%s'", o.GetPort(), o.Bridge)
		}
	case *apiv1.Nexthop:
		if old, ok := old.(*apiv1.Nexthop); ok && old.GetTunnel() != nil && o.GetTunnel() == nil {
			if user := m.inUse(section, key); strings.HasPrefix(user, "bridges") || strings.HasPrefix(user, "macs") {
				return refuse("nexthop", "next hop %s stops to be the tunnel that %s needs", key, user)
			}
		}
		if old, ok := old.(*apiv1.Nexthop); ok && isGroup(old) != isGroup(o) && m.inUse(section, key) != "" {
			return refuse("nexthop", "next hop %s changes between group and not while in use", key)
		}
		for _, member := range o.GetGroup().GetMembers() {
			if n := m.objects[section][fmt.Sprint(member.Nexthop)].(*apiv1.Nexthop); n.GetPort() == nil &&
				n.GetTunnel() == nil {
				return refuse("nexthop", "member %d of group %s is neither port nor tunnel", member.Nexthop, key)
			}
		}
	case *apiv1.Meter:
		if (o.BitRate == 0) == (o.PacketRate == 0) || o.BitRate != 0 && o.BurstPackets != 0 ||
			o.PacketRate != 0 && o.BurstBytes != 0 {
			return refuse("meter", "meter '%s' limits both bits and packets, or neither", key)
		}
	case *apiv1.NatRule:
		var others []*apiv1.NatRule
		for k, other := range m.objects[section] {
			if k != key {
				others = append(others, other.(*apiv1.NatRule))
			}
		}
		if other := newNatIndex(others).clash(o); other != nil {
			return refuse("rule", "rule %s has what rule %d has", key, other.Id)
		}
		var ports []*apiv1.Port
		for _, p := range m.objects["ports"] {
			ports = append(ports, p.(*apiv1.Port))
		}
		if port := natGuest(o, ports); port != "" {
			return refuse("rule", "rule %s has an address of port '%s'", key, port)
		}
	case *apiv1.Service:
		var rules []*apiv1.NatRule
		for _, r := range m.objects["nat"] {
			rules = append(rules, r.(*apiv1.NatRule))
		}
		if rule := serviceClash(o, rules); rule != nil {
			return refuse("service", "service '%s' has an address of rule %d", key, rule.Id)
		}
		for k, other := range m.objects[section] {
			if s := other.(*apiv1.Service); k != key && front(s) == front(o) {
				return refuse("service", "service '%s' has what '%s' has", key, k)
			}
		}
		if old != nil {
			settable := []string{"scheduler", "no_endpoints", "client_prefix"}
			for _, field := range changed(o, old) {
				if !slices.Contains(settable, field) {
					return refuse("service", "cannot change %s", field)
				}
			}
		}
	case *apiv1.Worker:
		return m.worker(o, old)
	}
	return nil
}

// worker refuses what worker_check_cpu(), worker_set_role() and worker_set_target() of the daemon refuse.
func (m *model) worker(o *apiv1.Worker, old proto.Message) error {
	was, _ := old.(*apiv1.Worker)
	for _, other := range m.objects["workers"] {
		w := other.(*apiv1.Worker)
		kept := keepsCPU(w) || keepsCPU(o) || was != nil && keepsCPU(was)
		if w.Id != o.Id && w.Cpu == o.Cpu && (was == nil || was.Cpu != o.Cpu) && kept {
			return refuse("worker", "CPU %d is that of worker %d, and one of the two keeps it", o.Cpu, w.Id)
		}
	}
	if len(m.objects["workers"]) == 64 && was == nil {
		return refuse("worker", "there are 64 workers")
	}
	target, _ := m.objects["workers"][o.Target].(*apiv1.Worker)
	if o.Target != "" && (was == nil || was.Target != o.Target) && (target == nil || !forwards(target)) {
		return refuse("worker.target", "worker %s does not forward", o.Target)
	}
	if was != nil && forwards(was) && !forwards(o) && m.lastForwarding(was) {
		return refuse("worker.role", "worker %d is the last forwarding worker", o.Id)
	}
	return nil
}

func (m *model) lastForwarding(o *apiv1.Worker) bool {
	for _, other := range m.objects["workers"] {
		if w := other.(*apiv1.Worker); w.Id != o.Id && forwards(w) {
			return false
		}
	}
	return true
}

// number returns the next free id for an object without one.
func (m *model) number(section string, id uint32) (uint32, error) {
	taken := map[uint32]bool{0: true}
	for _, o := range m.objects[section] {
		taken[o.(numbered).GetId()] = true
	}
	if id != 0 && taken[id] {
		return 0, refuse(section, "id %d is taken", id)
	}
	for id == 0 || taken[id] {
		id++
	}
	return id, nil
}

func (m *model) del(section, key string) (*apiv1.Empty, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	if m.objects[section][key] == nil {
		return nil, refuseAs(codes.NotFound, section, "%s '%s' is not there", section, key)
	}
	if user := m.inUse(section, key); user != "" {
		return nil, refuse(section, "%s '%s' is in use by %s", section, key, user)
	}
	if err := m.told("del", section, key); err != nil {
		return nil, err
	}
	delete(m.objects[section], key)
	return &apiv1.Empty{}, nil
}

func modelAdd[T proto.Message](m *model, o T, replace bool) (T, error) {
	if err := m.begin(); err != nil {
		return o, err
	}
	Normalize(o)
	return o, m.put(o, replace)
}

// modelAddAll adds all of them or none.
func modelAddAll[T proto.Message](m *model, list []T) error {
	if err := m.begin(); err != nil {
		return err
	}
	for i, o := range list {
		Normalize(o)
		if err := m.put(o, false); err != nil {
			for _, o := range list[:i] {
				delete(m.objects[nounOfMessage(o).section], keyOf(o))
			}
			return refuseAt(i, err)
		}
	}
	return nil
}

// modelSet changes only the named fields, as the daemon does.
func modelSet[T proto.Message](m *model, o T, fields []string) (T, error) {
	if err := m.begin(); err != nil {
		return o, err
	}
	section := nounOfMessage(o).section
	old := m.objects[section][keyOf(o)]
	if old == nil {
		return o, refuse(section, "'%s' is not there", keyOf(o))
	}
	merged := proto.CloneOf(old.(T))
	r := merged.ProtoReflect()
	for _, name := range fields {
		fd := r.Descriptor().Fields().ByName(protoreflect.Name(name))
		if section == "ports" && !slices.Contains(portSettable, name) || fd == nil {
			return o, refuse(name, "cannot be set")
		}
		r.Clear(fd)
		if o.ProtoReflect().Has(fd) {
			r.Set(fd, o.ProtoReflect().Get(fd))
		}
	}
	return merged, m.put(merged, true)
}

func modelList[T proto.Message](m *model, section string, send func(T) error) error {
	for _, o := range m.objects[section] {
		if err := send(o.(T)); err != nil {
			return err
		}
	}
	return nil
}

type systemModel struct{ *model }
type workersModel struct{ *model }
type vrfsModel struct{ *model }
type bridgesModel struct{ *model }
type metersModel struct{ *model }
type mirrorsModel struct{ *model }
type portsModel struct{ *model }
type groupsModel struct{ *model }
type ruleListsModel struct{ *model }
type rulesModel struct{ *model }
type nexthopsModel struct{ *model }
type labelsModel struct{ *model }
type vnisModel struct{ *model }
type natModel struct{ *model }
type servicesModel struct{ *model }
type endpointsModel struct{ *model }
type macsModel struct{ *model }
type neighborsModel struct{ *model }
type steersModel struct{ *model }
type routesModel struct{ *model }

func (m systemModel) Hello(_ context.Context, r *apiv1.HelloRequest) (*apiv1.HelloReply, error) {
	return &apiv1.HelloReply{Major: r.Major, Minor: r.Minor, Version: "model"}, nil
}
func (m systemModel) GetStatus(context.Context, *apiv1.Empty) (*apiv1.Status, error) {
	return nil, errors.New("the model has no status")
}
func (m systemModel) GetSettings(context.Context, *apiv1.Empty) (*apiv1.Settings, error) {
	return m.objects["settings"][""].(*apiv1.Settings), nil
}
func (m systemModel) SetSettings(_ context.Context, r *apiv1.SettingsSetRequest) (*apiv1.Settings, error) {
	return modelSet(m.model, r.Settings, r.Fields)
}

func (m workersModel) Add(_ context.Context, r *apiv1.WorkerAddRequest) (*apiv1.Worker, error) {
	return modelAdd(m.model, r.Worker, false)
}
func (m workersModel) Set(_ context.Context, r *apiv1.WorkerSetRequest) (*apiv1.Worker, error) {
	return modelSet(m.model, r.Worker, r.Fields)
}
func (m workersModel) Del(_ context.Context, r *apiv1.WorkerDelRequest) (*apiv1.Empty, error) {
	w, _ := m.objects["workers"][fmt.Sprint(r.Id)].(*apiv1.Worker)
	if w != nil && forwards(w) && m.lastForwarding(w) && len(m.objects["workers"]) > 1 {
		return nil, refuse("worker.id", "worker %d is the last forwarding worker", r.Id)
	}
	reply, err := m.del("workers", fmt.Sprint(r.Id))
	for _, other := range m.objects["workers"] {
		if w := other.(*apiv1.Worker); err == nil && w.Target == fmt.Sprint(r.Id) {
			w.Target = "" // the daemon finds another one
		}
	}
	return reply, err
}
func (m workersModel) List(_ context.Context, _ *apiv1.WorkerListRequest, s apiv1.Workers_ListServer) error {
	return modelList(m.model, "workers", s.Send)
}
func (m workersModel) Latency(context.Context, *apiv1.WorkerLatencyRequest, apiv1.Workers_LatencyServer) error {
	return errors.New("the model has no loops")
}
func (m workersModel) History(context.Context, *apiv1.WorkerHistoryRequest, apiv1.Workers_HistoryServer) error {
	return nil
}
func (m workersModel) ResetLatency(context.Context, *apiv1.WorkerLatencyRequest) (*apiv1.Empty, error) {
	return nil, errors.New("the model has no loops")
}
func (m workersModel) Ports(context.Context, *apiv1.WorkerPortsRequest, apiv1.Workers_PortsServer) error {
	return errors.New("the model has no counters")
}
func (m workersModel) Rebalance(context.Context, *apiv1.RebalanceRequest) (*apiv1.RebalancePlan, error) {
	return &apiv1.RebalancePlan{}, nil
}
func (m workersModel) Rings(context.Context, *apiv1.WorkerRingListRequest, apiv1.Workers_RingsServer) error {
	return nil
}

func (m vrfsModel) Add(_ context.Context, r *apiv1.VrfAddRequest) (_ *apiv1.Vrf, err error) {
	if r.Vrf.Id, err = m.number("vrfs", r.Vrf.Id); err != nil {
		return nil, err
	}
	return modelAdd(m.model, r.Vrf, false)
}
func (m vrfsModel) Del(_ context.Context, r *apiv1.VrfDelRequest) (*apiv1.Empty, error) {
	return m.del("vrfs", r.Name)
}
func (m vrfsModel) List(_ context.Context, _ *apiv1.VrfListRequest, s apiv1.Vrfs_ListServer) error {
	return modelList(m.model, "vrfs", s.Send)
}

func (m bridgesModel) Add(_ context.Context, r *apiv1.BridgeAddRequest) (_ *apiv1.Bridge, err error) {
	if r.Bridge.Id, err = m.number("bridges", r.Bridge.Id); err != nil {
		return nil, err
	}
	return modelAdd(m.model, r.Bridge, false)
}
func (m bridgesModel) Set(_ context.Context, r *apiv1.BridgeSetRequest) (*apiv1.Bridge, error) {
	return modelSet(m.model, r.Bridge, r.Fields)
}
func (m bridgesModel) Del(_ context.Context, r *apiv1.BridgeDelRequest) (*apiv1.Empty, error) {
	return m.del("bridges", r.Name)
}
func (m bridgesModel) List(_ context.Context, _ *apiv1.BridgeListRequest, s apiv1.Bridges_ListServer) error {
	return modelList(m.model, "bridges", s.Send)
}
func (m bridgesModel) Memberships(context.Context, *apiv1.MembershipListRequest,
	apiv1.Bridges_MembershipsServer) error {
	return nil // they are learnt
}

func (m metersModel) Add(_ context.Context, r *apiv1.MeterAddRequest) (*apiv1.Meter, error) {
	return modelAdd(m.model, r.Meter, false)
}
func (m metersModel) Set(_ context.Context, r *apiv1.MeterSetRequest) (*apiv1.Meter, error) {
	return modelSet(m.model, r.Meter, r.Fields)
}
func (m metersModel) Del(_ context.Context, r *apiv1.MeterDelRequest) (*apiv1.Empty, error) {
	return m.del("meters", r.Name)
}
func (m metersModel) List(_ context.Context, _ *apiv1.MeterListRequest, s apiv1.Meters_ListServer) error {
	return modelList(m.model, "meters", s.Send)
}

func (m mirrorsModel) Add(_ context.Context, r *apiv1.MirrorAddRequest) (*apiv1.Mirror, error) {
	return modelAdd(m.model, r.Mirror, false)
}
func (m mirrorsModel) Set(_ context.Context, r *apiv1.MirrorSetRequest) (*apiv1.Mirror, error) {
	if slices.Contains(r.Fields, "target") { // a oneof, which modelSet cannot set
		if err := m.begin(); err != nil {
			return nil, err
		}
		return r.Mirror, m.put(r.Mirror, true)
	}
	return modelSet(m.model, r.Mirror, r.Fields)
}
func (m mirrorsModel) Del(_ context.Context, r *apiv1.MirrorDelRequest) (*apiv1.Empty, error) {
	return m.del("mirrors", r.Name)
}
func (m mirrorsModel) List(_ context.Context, _ *apiv1.MirrorListRequest, s apiv1.Mirrors_ListServer) error {
	return modelList(m.model, "mirrors", s.Send)
}

func (m portsModel) Add(_ context.Context, r *apiv1.PortAddRequest) (*apiv1.Port, error) {
	if r.Port.Queues == 0 {
		r.Port.Queues = 1
	}
	return modelAdd(m.model, r.Port, false)
}
func (m portsModel) Set(_ context.Context, r *apiv1.PortSetRequest) (*apiv1.Port, error) {
	return modelSet(m.model, r.Port, r.Fields)
}
func (m portsModel) Del(_ context.Context, r *apiv1.PortDelRequest) (*apiv1.Empty, error) {
	if p, ok := m.objects["ports"][r.Name].(*apiv1.Port); ok && p.Fabric != "" {
		for k, s := range m.objects["host_steers"] {
			if s.(*apiv1.HostSteer).Port == p.Fabric {
				return nil, refuse("port.name", "port '%s' has the steered address '%s'", r.Name, k)
			}
		}
	}
	return m.del("ports", r.Name)
}
func (m portsModel) List(_ context.Context, _ *apiv1.PortListRequest, s apiv1.Ports_ListServer) error {
	return modelList(m.model, "ports", s.Send)
}
func (m portsModel) Assign(context.Context, *apiv1.PortAssignRequest) (*apiv1.Port, error) {
	return nil, errors.New("the model assigns no queues")
}

func (m groupsModel) Add(_ context.Context, r *apiv1.AddressGroupAddRequest) (*apiv1.AddressGroup, error) {
	return modelAdd(m.model, r.Group, false)
}
func (m groupsModel) Set(_ context.Context, r *apiv1.AddressGroupSetRequest) (*apiv1.AddressGroup, error) {
	return modelSet(m.model, r.Group, r.Fields)
}
func (m groupsModel) Del(_ context.Context, r *apiv1.AddressGroupDelRequest) (*apiv1.Empty, error) {
	return m.del("address_groups", r.Name)
}
func (m groupsModel) List(_ context.Context, _ *apiv1.AddressGroupListRequest, s apiv1.AddressGroups_ListServer) error {
	return modelList(m.model, "address_groups", s.Send)
}

func (m ruleListsModel) Add(_ context.Context, r *apiv1.RuleListAddRequest) (*apiv1.RuleList, error) {
	return modelAdd(m.model, r.List, false)
}
func (m ruleListsModel) Set(_ context.Context, r *apiv1.RuleListSetRequest) (*apiv1.RuleList, error) {
	return modelSet(m.model, r.List, r.Fields)
}

// Del deletes a list with its rules, unless a port refers to it.
func (m ruleListsModel) Del(_ context.Context, r *apiv1.RuleListDelRequest) (*apiv1.Empty, error) {
	for _, p := range m.objects["ports"] {
		if slices.Contains(uses(p), [2]string{"rule_lists", r.Name}) {
			return nil, refuse("rule_list.name", "'%s' is in use by a port", r.Name)
		}
	}
	if err := m.begin(); err != nil {
		return nil, err
	}
	maps.DeleteFunc(m.objects["rules"], func(_ string, o proto.Message) bool { return o.(*apiv1.Rule).List == r.Name })
	delete(m.objects["rule_lists"], r.Name)
	return &apiv1.Empty{}, nil
}
func (m ruleListsModel) List(_ context.Context, _ *apiv1.RuleListListRequest, s apiv1.RuleLists_ListServer) error {
	return modelList(m.model, "rule_lists", s.Send)
}

func (m rulesModel) Add(_ context.Context, r *apiv1.RuleAddRequest) (*apiv1.RuleReply, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	if len(r.Rules) > RuleBatch {
		return nil, refuse("rules", "%d rules in a request", len(r.Rules))
	}
	for _, rule := range r.Rules {
		Normalize(rule)
		if err := m.put(rule, r.Replace); err != nil {
			return nil, err
		}
	}
	return &apiv1.RuleReply{Changed: uint32(len(r.Rules))}, nil
}
func (m rulesModel) Del(_ context.Context, r *apiv1.RuleDelRequest) (*apiv1.RuleReply, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	for _, rule := range r.Rules {
		if m.objects["rules"][keyOf(rule)] == nil {
			return nil, refuse("rule.id", "no rule %s", keyOf(rule))
		}
		delete(m.objects["rules"], keyOf(rule))
	}
	return &apiv1.RuleReply{Changed: uint32(len(r.Rules))}, nil
}
func (m rulesModel) List(_ context.Context, _ *apiv1.RuleListRulesRequest, s apiv1.Rules_ListServer) error {
	return modelList(m.model, "rules", s.Send)
}
func (m rulesModel) Explain(context.Context, *apiv1.RuleExplainRequest) (*apiv1.RuleExplainReply, error) {
	return nil, errors.New("the model explains nothing")
}

func (m nexthopsModel) Add(_ context.Context, r *apiv1.NexthopAddRequest) (*apiv1.Nexthop, error) {
	return modelAdd(m.model, r.Nexthop, r.Replace)
}
func (m nexthopsModel) AddAll(_ context.Context, r *apiv1.NexthopAddAllRequest) (*apiv1.NexthopAddAllReply, error) {
	return &apiv1.NexthopAddAllReply{Added: uint32(len(r.Nexthops))}, modelAddAll(m.model, r.Nexthops)
}
func (m nexthopsModel) Del(_ context.Context, r *apiv1.NexthopDelRequest) (*apiv1.Empty, error) {
	return m.del("nexthops", fmt.Sprint(r.Id))
}
func (m nexthopsModel) DelAll(_ context.Context, r *apiv1.NexthopDelAllRequest) (*apiv1.NexthopDelAllReply, error) {
	if m.old {
		st, err := status.New(codes.Unimplemented, "old").WithDetails(&apiv1.Error{Field: "method", Value: "DelAll"})
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	}
	if err := m.begin(); err != nil {
		return nil, err
	}
	before := maps.Clone(m.objects["nexthops"])
	for i, id := range r.Ids {
		key := fmt.Sprint(id)
		user := m.inUse("nexthops", key)
		if m.objects["nexthops"][key] == nil || user != "" {
			m.objects["nexthops"] = before
			return nil, refuseAt(i, refuse("nexthop.id", "next hop %d is not there, or in use by '%s'", id, user))
		}
		delete(m.objects["nexthops"], key)
	}
	return &apiv1.NexthopDelAllReply{Deleted: uint32(len(r.Ids))}, nil
}
func (m nexthopsModel) List(_ context.Context, _ *apiv1.NexthopListRequest, s apiv1.Nexthops_ListServer) error {
	if err := s.Send(&apiv1.Nexthop{Id: 1 << 20, State: &apiv1.NexthopState{Origin: "system"}}); err != nil {
		return err
	}
	return modelList(m.model, "nexthops", s.Send)
}

func (m labelsModel) Add(_ context.Context, r *apiv1.LabelAddRequest) (*apiv1.Label, error) {
	return modelAdd(m.model, r.Label, r.Replace)
}
func (m labelsModel) Del(_ context.Context, r *apiv1.LabelDelRequest) (*apiv1.Empty, error) {
	return m.del("labels", fmt.Sprint(r.Label))
}
func (m labelsModel) List(_ context.Context, _ *apiv1.LabelListRequest, s apiv1.Labels_ListServer) error {
	return modelList(m.model, "labels", s.Send)
}

func (m vnisModel) Add(_ context.Context, r *apiv1.VniAddRequest) (*apiv1.Vni, error) {
	return modelAdd(m.model, r.Vni, r.Replace)
}
func (m vnisModel) Del(_ context.Context, r *apiv1.VniDelRequest) (*apiv1.Empty, error) {
	return m.del("vnis", fmt.Sprint(r.Vni))
}
func (m vnisModel) List(_ context.Context, _ *apiv1.VniListRequest, s apiv1.Vnis_ListServer) error {
	return modelList(m.model, "vnis", s.Send)
}

func (m natModel) Add(_ context.Context, r *apiv1.NatAddRequest) (*apiv1.NatRule, error) {
	return modelAdd(m.model, r.Rule, false)
}
func (m natModel) Set(_ context.Context, r *apiv1.NatSetRequest) (*apiv1.NatRule, error) {
	return modelAdd(m.model, r.Rule, true)
}
func (m natModel) Del(_ context.Context, r *apiv1.NatDelRequest) (*apiv1.Empty, error) {
	return m.del("nat", fmt.Sprint(r.Id))
}
func (m natModel) List(_ context.Context, _ *apiv1.NatListRequest, s apiv1.Nat_ListServer) error {
	return modelList(m.model, "nat", s.Send)
}

func (m servicesModel) Add(_ context.Context, r *apiv1.ServiceAddRequest) (*apiv1.Service, error) {
	return modelAdd(m.model, r.Service, false)
}
func (m servicesModel) Set(_ context.Context, r *apiv1.ServiceSetRequest) (*apiv1.Service, error) {
	return modelSet(m.model, r.Service, r.Fields)
}
func (m servicesModel) Del(_ context.Context, r *apiv1.ServiceDelRequest) (*apiv1.Empty, error) {
	return m.del("services", r.Name)
}
func (m servicesModel) List(_ context.Context, _ *apiv1.ServiceListRequest, s apiv1.Services_ListServer) error {
	return modelList(m.model, "services", s.Send)
}

func (m endpointsModel) Add(_ context.Context, r *apiv1.EndpointAddRequest) (*apiv1.Endpoint, error) {
	return modelAdd(m.model, r.Endpoint, false)
}
func (m endpointsModel) Set(_ context.Context, r *apiv1.EndpointSetRequest) (*apiv1.Endpoint, error) {
	return modelSet(m.model, r.Endpoint, r.Fields)
}
func (m endpointsModel) Del(_ context.Context, r *apiv1.EndpointDelRequest) (*apiv1.Empty, error) {
	return m.del("endpoints", fmt.Sprint(r.Service, " ", r.Address, " ", r.Port))
}
func (m endpointsModel) List(_ context.Context, _ *apiv1.EndpointListRequest, s apiv1.Endpoints_ListServer) error {
	return modelList(m.model, "endpoints", s.Send)
}

func (m macsModel) Add(_ context.Context, r *apiv1.MacAddRequest) (*apiv1.Mac, error) {
	return modelAdd(m.model, r.Mac, false)
}
func (m macsModel) AddAll(_ context.Context, r *apiv1.MacAddAllRequest) (*apiv1.MacAddAllReply, error) {
	return &apiv1.MacAddAllReply{Added: uint32(len(r.Macs))}, modelAddAll(m.model, r.Macs)
}
func (m macsModel) Del(_ context.Context, r *apiv1.MacDelRequest) (*apiv1.Empty, error) {
	return m.del("macs", r.Bridge+" "+r.Mac)
}
func (m macsModel) List(_ context.Context, _ *apiv1.MacListRequest, s apiv1.Macs_ListServer) error {
	if err := s.Send(&apiv1.Mac{Bridge: "b0", Mac: "02:00:00:00:ff:ff", Learnt: true}); err != nil {
		return err
	}
	return modelList(m.model, "macs", s.Send)
}
func (m macsModel) Watch(context.Context, *apiv1.MacWatchRequest, apiv1.Macs_WatchServer) error {
	return nil
}

func (m steersModel) Add(_ context.Context, r *apiv1.HostSteerAddRequest) (*apiv1.HostSteer, error) {
	if m.hostOf(r.Steer.Port) == "" {
		return nil, refuse("steer.port", "port '%s' has no host port", r.Steer.Port)
	}
	return modelAdd(m.model, r.Steer, false)
}
func (m steersModel) Del(_ context.Context, r *apiv1.HostSteerDelRequest) (*apiv1.Empty, error) {
	return m.del("host_steers", r.Address+" "+r.Port)
}
func (m steersModel) List(_ context.Context, _ *apiv1.HostSteerListRequest, s apiv1.HostSteers_ListServer) error {
	return modelList(m.model, "host_steers", s.Send)
}

// hostOf returns the host port of a fabric port.
func (m *model) hostOf(fabric string) string {
	for k, p := range m.objects["ports"] {
		if p.(*apiv1.Port).Fabric == fabric {
			return k
		}
	}
	return ""
}

func (m neighborsModel) Add(_ context.Context, r *apiv1.NeighborAddRequest) (*apiv1.Neighbor, error) {
	return modelAdd(m.model, r.Neighbor, m.objects["neighbors"][keyOf(r.Neighbor)] != nil)
}
func (m neighborsModel) Del(_ context.Context, r *apiv1.NeighborDelRequest) (*apiv1.Empty, error) {
	return m.del("neighbors", r.Port+" "+r.Address)
}
func (m neighborsModel) List(_ context.Context, _ *apiv1.NeighborListRequest, s apiv1.Neighbors_ListServer) error {
	if err := s.Send(&apiv1.Neighbor{Port: "p0", Address: "192.0.2.77",
		Status: apiv1.NeighborStatus_NEIGHBOR_STALE}); err != nil {
		return err
	}
	return modelList(m.model, "neighbors", func(o *apiv1.Neighbor) error {
		o = proto.CloneOf(o)
		o.Status = apiv1.NeighborStatus_NEIGHBOR_PERMANENT
		return s.Send(o)
	})
}

func (m routesModel) Add(_ context.Context, r *apiv1.RouteAddRequest) (*apiv1.RouteReply, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	if len(r.Routes) > RouteBatch {
		return nil, refuse("routes", "%d routes in a request", len(r.Routes))
	}
	for _, route := range r.Routes {
		if m.objects["vrfs"][route.Vrf] == nil || m.objects["nexthops"][fmt.Sprint(route.Nexthop)] == nil {
			return nil, refuse("route", "no VRF '%s' or no next hop %d", route.Vrf, route.Nexthop)
		}
		p, err := netip.ParsePrefix(route.Prefix)
		if err != nil {
			return nil, refuse("route.prefix", "%v", err)
		}
		m.routes[route.Vrf+" "+route.Prefix] = Route{Vrf: route.Vrf, Prefix: p, Nexthop: route.Nexthop}
	}
	return &apiv1.RouteReply{Changed: uint32(len(r.Routes))}, nil
}
func (m routesModel) Del(_ context.Context, r *apiv1.RouteDelRequest) (*apiv1.RouteReply, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	for _, route := range r.Routes {
		key := route.Vrf + " " + route.Prefix
		if _, found := m.routes[key]; !found {
			return nil, refuse("route", "no route %s", key)
		}
		delete(m.routes, key)
	}
	return &apiv1.RouteReply{Changed: uint32(len(r.Routes))}, nil
}
func (m routesModel) Lookup(context.Context, *apiv1.RouteLookupRequest) (*apiv1.Route, error) {
	return nil, errors.New("the model looks nothing up")
}
func (m routesModel) List(_ context.Context, req *apiv1.RouteListRequest, s apiv1.Routes_ListServer) error {
	for _, r := range m.routes {
		if err := s.Send(&apiv1.Route{Vrf: r.Vrf, Prefix: r.Prefix.String(), Nexthop: r.Nexthop,
			Origin: req.Origin}); err != nil {
			return err
		}
	}
	return nil
}

// serve runs the model behind a socket and returns a client of it.
func (m *model) serve(t testing.TB) *api.Client {
	t.Helper()
	server, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	apiv1.RegisterSystemService(server, systemModel{m})
	apiv1.RegisterWorkersService(server, workersModel{m})
	apiv1.RegisterVrfsService(server, vrfsModel{m})
	apiv1.RegisterBridgesService(server, bridgesModel{m})
	apiv1.RegisterMetersService(server, metersModel{m})
	apiv1.RegisterMirrorsService(server, mirrorsModel{m})
	apiv1.RegisterPortsService(server, portsModel{m})
	apiv1.RegisterAddressGroupsService(server, groupsModel{m})
	apiv1.RegisterRuleListsService(server, ruleListsModel{m})
	apiv1.RegisterRulesService(server, rulesModel{m})
	apiv1.RegisterNexthopsService(server, nexthopsModel{m})
	apiv1.RegisterLabelsService(server, labelsModel{m})
	apiv1.RegisterVnisService(server, vnisModel{m})
	apiv1.RegisterNatService(server, natModel{m})
	apiv1.RegisterServicesService(server, servicesModel{m})
	apiv1.RegisterEndpointsService(server, endpointsModel{m})
	apiv1.RegisterMacsService(server, macsModel{m})
	apiv1.RegisterNeighborsService(server, neighborsModel{m})
	apiv1.RegisterHostSteersService(server, steersModel{m})
	apiv1.RegisterRoutesService(server, routesModel{m})
	socket := filepath.Join(t.TempDir(), "model.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(context.Background(), listener) }()
	client, err := api.Dial(t.Context(), socket, "state test")
	if err != nil {
		t.Fatal(err)
	}
	m.stop = func() { _ = server.Close() }
	t.Cleanup(func() {
		_ = client.Close()
		m.stop()
	})
	return client
}
