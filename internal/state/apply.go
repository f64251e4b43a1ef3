// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// ApplyError is an application that stopped half way. Nothing is rolled back.
type ApplyError struct {
	Done, Left Count
	Op         Op // that was refused
	Err        error
}

func (e *ApplyError) Error() string {
	return fmt.Sprintf("%s\n  refused: %v\n  done: %v; not done: %v, this one included", e.Op, e.Err, e.Done, e.Left)
}

func (e *ApplyError) Unwrap() error { return e.Err }

// Apply carries the operations out in order and stops at the first one that is refused (*ApplyError). after, when
// given, is called after each operation.
func Apply(ctx context.Context, c *api.Client, ops []Op, after func(Op)) (Count, error) {
	var done Count
	for i := 0; i < len(ops); {
		some := ops[i : i+together(ops[i:])]
		if err := do(ctx, c, some); err != nil {
			return done, &ApplyError{done, CountOps(ops[i:]), blame(some, err), err}
		}
		for _, op := range some {
			done.Put(op)
			if after != nil {
				after(op)
			}
		}
		i += len(some)
	}
	return done, nil
}

// together is the number of operations, from the first one on, that one request carries out.
func together(ops []Op) int {
	n := 1
	for n < len(ops) && n < RuleBatch && ops[0].Noun == "rule" && ops[n].Noun == "rule" && ops[n].Verb == ops[0].Verb {
		n++
	}
	return n
}

// blame narrows a batch, of which nothing was taken, to what was refused.
func blame(ops []Op, err error) Op {
	var refused *api.Error
	op := ops[0]
	if op.Noun == "rule" && errors.As(err, &refused) && int(refused.Index) < len(ops) {
		return ops[refused.Index]
	}
	if op.Noun == "route" && errors.As(err, &refused) && int(refused.Index) < len(op.Routes) {
		i := refused.Index
		op.Routes = op.Routes[i : i+1]
		if op.Was != nil {
			op.Was = op.Was[i : i+1]
		}
	}
	return op
}

func do(ctx context.Context, c *api.Client, ops []Op) error {
	op := ops[0]
	switch op.Noun {
	case "route":
		return op.doRoutes(ctx, c)
	case "rule":
		return doRules(ctx, c, ops)
	}
	switch op.Verb {
	case Add:
		return doAdd(ctx, c, op.New, false)
	case Set:
		return doSet(ctx, c, op.New, op.Fields)
	}
	return doDel(ctx, c, op.Old)
}

func (op Op) doRoutes(ctx context.Context, c *api.Client) error {
	list := make([]*apiv1.Route, len(op.Routes))
	for i, r := range op.Routes {
		list[i] = r.message()
	}
	if op.Verb == Del {
		return call(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.Del, &apiv1.RouteDelRequest{Routes: list})
	}
	return call(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.Add, &apiv1.RouteAddRequest{Routes: list})
}

func doAdd(ctx context.Context, c *api.Client, m proto.Message, replace bool) error {
	switch m := m.(type) {
	case *apiv1.Worker:
		return call(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.Add, &apiv1.WorkerAddRequest{Worker: m})
	case *apiv1.Vrf:
		return call(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.Add, &apiv1.VrfAddRequest{Vrf: m})
	case *apiv1.Bridge:
		return call(ctx, c, apiv1.NewBridgesClient, apiv1.BridgesClient.Add, &apiv1.BridgeAddRequest{Bridge: m})
	case *apiv1.Meter:
		return call(ctx, c, apiv1.NewMetersClient, apiv1.MetersClient.Add, &apiv1.MeterAddRequest{Meter: m})
	case *apiv1.Mirror:
		return call(ctx, c, apiv1.NewMirrorsClient, apiv1.MirrorsClient.Add, &apiv1.MirrorAddRequest{Mirror: m})
	case *apiv1.AddressGroup:
		return call(ctx, c, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.Add, &apiv1.AddressGroupAddRequest{Group: m})
	case *apiv1.RuleList:
		return call(ctx, c, apiv1.NewRuleListsClient, apiv1.RuleListsClient.Add, &apiv1.RuleListAddRequest{List: m})
	case *apiv1.Port:
		return call(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.Add, &apiv1.PortAddRequest{Port: m})
	case *apiv1.Nexthop:
		return call(ctx, c, apiv1.NewNexthopsClient, apiv1.NexthopsClient.Add, &apiv1.NexthopAddRequest{Nexthop: m, Replace: replace})
	case *apiv1.Label:
		return call(ctx, c, apiv1.NewLabelsClient, apiv1.LabelsClient.Add, &apiv1.LabelAddRequest{Label: m})
	case *apiv1.Vni:
		return call(ctx, c, apiv1.NewVnisClient, apiv1.VnisClient.Add, &apiv1.VniAddRequest{Vni: m})
	case *apiv1.NatRule:
		return call(ctx, c, apiv1.NewNatClient, apiv1.NatClient.Add, &apiv1.NatAddRequest{Rule: m})
	case *apiv1.Mac:
		return call(ctx, c, apiv1.NewMacsClient, apiv1.MacsClient.Add, &apiv1.MacAddRequest{Mac: m})
	case *apiv1.Neighbor:
		return call(ctx, c, apiv1.NewNeighborsClient, apiv1.NeighborsClient.Add, &apiv1.NeighborAddRequest{Neighbor: m})
	case *apiv1.HostSteer:
		return call(ctx, c, apiv1.NewHostSteersClient, apiv1.HostSteersClient.Add, &apiv1.HostSteerAddRequest{Steer: m})
	}
	return fmt.Errorf("%T cannot be added", m)
}

func doSet(ctx context.Context, c *api.Client, m proto.Message, fields []string) error {
	switch m := m.(type) {
	case *apiv1.Settings:
		return call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.SetSettings, &apiv1.SettingsSetRequest{Settings: m, Fields: fields})
	case *apiv1.Worker:
		return call(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.Set, &apiv1.WorkerSetRequest{Worker: m, Fields: fields})
	case *apiv1.Bridge:
		return call(ctx, c, apiv1.NewBridgesClient, apiv1.BridgesClient.Set, &apiv1.BridgeSetRequest{Bridge: m, Fields: fields})
	case *apiv1.Meter:
		return call(ctx, c, apiv1.NewMetersClient, apiv1.MetersClient.Set, &apiv1.MeterSetRequest{Meter: m, Fields: fields})
	case *apiv1.Mirror:
		return call(ctx, c, apiv1.NewMirrorsClient, apiv1.MirrorsClient.Set, &apiv1.MirrorSetRequest{Mirror: m, Fields: fields})
	case *apiv1.AddressGroup:
		return call(ctx, c, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.Set, &apiv1.AddressGroupSetRequest{Group: m, Fields: fields})
	case *apiv1.RuleList:
		return call(ctx, c, apiv1.NewRuleListsClient, apiv1.RuleListsClient.Set, &apiv1.RuleListSetRequest{List: m, Fields: fields})
	case *apiv1.Port:
		return call(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.Set, &apiv1.PortSetRequest{Port: m, Fields: fields})
	case *apiv1.Nexthop:
		return doAdd(ctx, c, m, true)
	case *apiv1.Neighbor:
		return doAdd(ctx, c, m, true)
	case *apiv1.NatRule:
		return call(ctx, c, apiv1.NewNatClient, apiv1.NatClient.Set, &apiv1.NatSetRequest{Rule: m})
	}
	return fmt.Errorf("%T cannot be changed", m)
}

func doDel(ctx context.Context, c *api.Client, m proto.Message) error {
	switch m := m.(type) {
	case *apiv1.Worker:
		return call(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.Del, &apiv1.WorkerDelRequest{Id: m.Id})
	case *apiv1.Vrf:
		return call(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.Del, &apiv1.VrfDelRequest{Name: m.Name})
	case *apiv1.Bridge:
		return call(ctx, c, apiv1.NewBridgesClient, apiv1.BridgesClient.Del, &apiv1.BridgeDelRequest{Name: m.Name})
	case *apiv1.Meter:
		return call(ctx, c, apiv1.NewMetersClient, apiv1.MetersClient.Del, &apiv1.MeterDelRequest{Name: m.Name})
	case *apiv1.Mirror:
		return call(ctx, c, apiv1.NewMirrorsClient, apiv1.MirrorsClient.Del, &apiv1.MirrorDelRequest{Name: m.Name})
	case *apiv1.AddressGroup:
		return call(ctx, c, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.Del, &apiv1.AddressGroupDelRequest{Name: m.Name})
	case *apiv1.RuleList:
		return call(ctx, c, apiv1.NewRuleListsClient, apiv1.RuleListsClient.Del, &apiv1.RuleListDelRequest{Name: m.Name})
	case *apiv1.Port:
		return call(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.Del, &apiv1.PortDelRequest{Name: m.Name})
	case *apiv1.Nexthop:
		return call(ctx, c, apiv1.NewNexthopsClient, apiv1.NexthopsClient.Del, &apiv1.NexthopDelRequest{Id: m.Id})
	case *apiv1.Label:
		return call(ctx, c, apiv1.NewLabelsClient, apiv1.LabelsClient.Del, &apiv1.LabelDelRequest{Label: m.Label})
	case *apiv1.Vni:
		return call(ctx, c, apiv1.NewVnisClient, apiv1.VnisClient.Del, &apiv1.VniDelRequest{Vni: m.Vni})
	case *apiv1.NatRule:
		return call(ctx, c, apiv1.NewNatClient, apiv1.NatClient.Del, &apiv1.NatDelRequest{Id: m.Id})
	case *apiv1.Mac:
		return call(ctx, c, apiv1.NewMacsClient, apiv1.MacsClient.Del, &apiv1.MacDelRequest{Bridge: m.Bridge, Mac: m.Mac})
	case *apiv1.Neighbor:
		return call(ctx, c, apiv1.NewNeighborsClient, apiv1.NeighborsClient.Del, &apiv1.NeighborDelRequest{Port: m.Port, Address: m.Address})
	case *apiv1.HostSteer:
		return call(ctx, c, apiv1.NewHostSteersClient, apiv1.HostSteersClient.Del, &apiv1.HostSteerDelRequest{Address: m.Address, Port: m.Port})
	}
	return fmt.Errorf("%T cannot be deleted", m)
}

// call is api.Call for those who only want to know whether it went well.
func call[S, Req, Resp any](ctx context.Context, c *api.Client, service func(*ttrpc.Client) S,
	method func(S, context.Context, Req) (Resp, error), req Req) error {
	_, err := api.Call(ctx, c, service, method, req)
	return err
}
