// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Read asks a node for its state: what was given to it, not what it made by itself.
func Read(ctx context.Context, c *api.Client) (*State, error) {
	s := &State{Workers: []*apiv1.Worker{}}
	settings, err := api.Call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.GetSettings, &apiv1.Empty{})
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	Normalize(settings)
	s.add(settings)
	for _, read := range []func() error{
		func() error {
			return readList(ctx, c, s, "workers", apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "vrfs", apiv1.NewVrfsClient, apiv1.VrfsClient.List, &apiv1.VrfListRequest{},
				func(m *apiv1.Vrf) bool { return m.Name != FabricVrf })
		},
		func() error {
			return readList(ctx, c, s, "bridges", apiv1.NewBridgesClient, apiv1.BridgesClient.List, &apiv1.BridgeListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "meters", apiv1.NewMetersClient, apiv1.MetersClient.List, &apiv1.MeterListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "address_groups", apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.List,
				&apiv1.AddressGroupListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "rule_lists", apiv1.NewRuleListsClient, apiv1.RuleListsClient.List, &apiv1.RuleListListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "rules", apiv1.NewRulesClient, apiv1.RulesClient.List, &apiv1.RuleListRulesRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "ports", apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "mirrors", apiv1.NewMirrorsClient, apiv1.MirrorsClient.List, &apiv1.MirrorListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "nexthops", apiv1.NewNexthopsClient, apiv1.NexthopsClient.List, &apiv1.NexthopListRequest{},
				func(m *apiv1.Nexthop) bool { return m.GetState().GetOrigin() != "system" })
		},
		func() error {
			return readList(ctx, c, s, "labels", apiv1.NewLabelsClient, apiv1.LabelsClient.List, &apiv1.LabelListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "vnis", apiv1.NewVnisClient, apiv1.VnisClient.List, &apiv1.VniListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "nat", apiv1.NewNatClient, apiv1.NatClient.List, &apiv1.NatListRequest{}, nil)
		},
		func() error {
			return readList(ctx, c, s, "macs", apiv1.NewMacsClient, apiv1.MacsClient.List, &apiv1.MacListRequest{},
				func(m *apiv1.Mac) bool { return !m.Learnt })
		},
		func() error {
			return readList(ctx, c, s, "neighbors", apiv1.NewNeighborsClient, apiv1.NeighborsClient.List, &apiv1.NeighborListRequest{},
				func(m *apiv1.Neighbor) bool { // one without address is that of a next hop with a MAC
					return m.Status == apiv1.NeighborStatus_NEIGHBOR_PERMANENT && m.Address != ""
				})
		},
		func() error {
			return readList(ctx, c, s, "host_steers", apiv1.NewHostSteersClient, apiv1.HostSteersClient.List, &apiv1.HostSteerListRequest{}, nil)
		},
		func() error { return readRoutes(ctx, c, s) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	s.Sort()
	return s, nil
}

// readList streams one list; given tells what was given to the node from what it made.
func readList[S any, Req any, T proto.Message, R interface{ Recv() (T, error) }](ctx context.Context, c *api.Client, s *State,
	section string, service func(*ttrpc.Client) S, list func(S, context.Context, Req) (R, error), req Req, given func(T) bool) error {
	err := api.Stream(ctx, c, service, list, req, func(m T) error {
		if given == nil || given(m) {
			Normalize(m)
			s.add(m)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list of %s: %w", section, err)
	}
	return nil
}

func readRoutes(ctx context.Context, c *api.Client, s *State) error {
	names := map[string]string{} // one copy of each VRF's name
	err := api.Stream(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.List, &apiv1.RouteListRequest{Origin: "api"},
		func(m *apiv1.Route) error {
			prefix, err := netip.ParsePrefix(m.Prefix)
			if err != nil {
				return fmt.Errorf("the node says: route '%s' in VRF '%s': %w", m.Prefix, m.Vrf, err)
			}
			vrf, known := names[m.Vrf]
			if !known {
				vrf, names[m.Vrf] = m.Vrf, m.Vrf
			}
			s.Routes = append(s.Routes, Route{Vrf: vrf, Prefix: prefix, Nexthop: m.Nexthop})
			return nil
		})
	if err != nil {
		return fmt.Errorf("list of routes: %w", err)
	}
	return nil
}
