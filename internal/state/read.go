// SPDX-License-Identifier: Apache-2.0
package state

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Read reads the state of a node: what clients of c's owner gave to it, without what it added by itself.
func Read(ctx context.Context, c *api.Client) (*State, error) {
	s := &State{Workers: []*apiv1.Worker{}}
	settings, err := api.Call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.GetSettings, &apiv1.Empty{})
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	Normalize(settings)
	s.add(settings)
	for _, n := range nouns {
		switch n.section {
		case "settings":
		case "routes":
			err = readRoutes(ctx, c, s)
		default:
			err = n.list(ctx, c, func(m proto.Message) error {
				if given(m) && ownerOf(m) == c.Owner() {
					Normalize(m)
					s.add(m)
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("list of %s: %w", n.section, err)
		}
	}
	s.Sort()
	return s, nil
}

// given says whether an object was given to the node; otherwise the node added it by itself.
func given(m proto.Message) bool {
	switch m := m.(type) {
	case *apiv1.Vrf:
		return m.Name != FabricVrf
	case *apiv1.Nexthop:
		return m.GetState().GetOrigin() != "system"
	case *apiv1.Mac:
		return !m.Learnt
	case *apiv1.Neighbor: // an entry without an address belongs to a next hop with a MAC
		return m.Status == apiv1.NeighborStatus_NEIGHBOR_PERMANENT && m.Address != ""
	}
	return true
}

// ownerOf returns the owner of an object that was given to the node. Sections without owners belong to the default one.
func ownerOf(m proto.Message) string {
	owner := ""
	switch m := m.(type) {
	case *apiv1.Nexthop:
		owner = m.GetState().GetOrigin()
	case interface{ GetOwner() string }:
		owner = m.GetOwner()
	}
	return cmp.Or(owner, api.DefaultOwner)
}

func readRoutes(ctx context.Context, c *api.Client, s *State) error {
	names := map[string]string{}
	intern := func(vrf string) string {
		if _, known := names[vrf]; !known {
			names[vrf] = vrf
		}
		return names[vrf]
	}
	return api.Stream(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.List,
		&apiv1.RouteListRequest{Origin: c.Owner()}, func(m *apiv1.Route) error {
			r, err := routeOf(m, intern)
			if err != nil {
				return fmt.Errorf("the node has a route '%s' in VRF '%s': %w", m.Prefix, m.Vrf, err)
			}
			s.Routes = append(s.Routes, r)
			return nil
		})
}
