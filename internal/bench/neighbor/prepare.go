// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"context"
	"fmt"
	"net"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/state"
)

// What attacks add to the router.
const (
	floodedBridge = "flooded"
	remoteEnds    = 249 // and the attacker's port
	firstEnd      = 5000
	absentGuests  = 200
	heldPackets   = 32 // that wait for one neighbour
	firstAbsent   = 6000
	deadNexthop   = 4000
	deadTunnel    = 4001
	wireNexthop   = 1 // as the scenario's adapter numbers it
	wireRoom      = 100
)

// bridgeOf250 makes the attacker's port a member of a bridge domain with many remote ends.
func bridgeOf250(ctx context.Context, c *api.Client) error {
	bridge := &apiv1.Bridge{Name: floodedBridge}
	if err := addRoute(ctx, c, state.FabricVrf, "198.18.0.0/24", wireNexthop); err != nil {
		return err
	}
	for i := range remoteEnds {
		id := uint32(firstEnd + i)
		bridge.Flood = append(bridge.Flood, id)
		if err := addNexthop(ctx, c, &apiv1.Nexthop{Id: id, Kind: &apiv1.Nexthop_Tunnel{Tunnel: &apiv1.TunnelNexthop{
			Encap: apiv1.Encap_ENCAP_VXLAN, Vni: 9000, Remote: fmt.Sprintf("198.18.0.%d", i+1)}}}); err != nil {
			return err
		}
	}
	if _, err := api.Call(ctx, c, apiv1.NewBridgesClient, apiv1.BridgesClient.Add,
		&apiv1.BridgeAddRequest{Bridge: bridge}); err != nil {
		return err
	}
	_, err := api.Call(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.Set, &apiv1.PortSetRequest{
		Port: &apiv1.Port{Name: attackPort, Bridge: floodedBridge}, Fields: []string{"bridge"}})
	return err
}

// bridgedHost is the MAC of a host behind one of the remote ends.
var bridgedHost = net.HardwareAddr{0x02, 0xc1, 0, 0, 0x20, 1}

// bridgeToHost also makes the host known.
func bridgeToHost(ctx context.Context, c *api.Client) error {
	if err := bridgeOf250(ctx, c); err != nil {
		return err
	}
	_, err := api.Call(ctx, c, apiv1.NewMacsClient, apiv1.MacsClient.Add, &apiv1.MacAddRequest{Mac: &apiv1.Mac{
		Bridge: floodedBridge, Mac: bridgedHost.String(), Target: &apiv1.Mac_Nexthop{Nexthop: firstEnd}}})
	return err
}

// unresolved sends to guests of the attacker's port that do not exist.
func (a *attacker) unresolved() error {
	copy(a.ip()[destinationAt:], []byte{198, 19, 0, 1})
	a.kept = heldPackets * absentGuests
	a.stream.Flows = &apiv1.GeneratorFlows{
		Count: 50 * absentGuests, SourcePorts: 50, DestinationAddresses: absentGuests,
	}
	a.prepare = func(ctx context.Context, c *api.Client) error {
		for i := range absentGuests {
			id, guest := uint32(firstAbsent+i), fmt.Sprintf("198.19.0.%d", i+1)
			if err := addNexthop(ctx, c, &apiv1.Nexthop{Id: id, Kind: &apiv1.Nexthop_Port{
				Port: &apiv1.PortNexthop{Port: attackPort, Address: guest}}}); err != nil {
				return err
			}
			if err := addRoute(ctx, c, attackPort, guest+"/32", id); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// deadHost sends to a tunnel whose next hop on the fabric nobody answers for.
func (a *attacker) deadHost() error {
	a.kept = heldPackets
	copy(a.ip()[destinationAt:], []byte{198, 19, 0, 1})
	a.prepare = func(ctx context.Context, c *api.Client) error {
		if err := addNexthop(ctx, c, &apiv1.Nexthop{Id: deadNexthop, Kind: &apiv1.Nexthop_Port{
			Port: &apiv1.PortNexthop{Port: a.wire.Name, Address: "192.0.2.99"}}}); err != nil {
			return err
		}
		if err := addRoute(ctx, c, state.FabricVrf, "198.18.1.1/32", deadNexthop); err != nil {
			return err
		}
		if err := addNexthop(ctx, c, &apiv1.Nexthop{Id: deadTunnel, Kind: &apiv1.Nexthop_Tunnel{
			Tunnel: &apiv1.TunnelNexthop{Encap: apiv1.Encap_ENCAP_MPLSOUDP, Label: 9000,
				Remote: "198.18.1.1"}}}); err != nil {
			return err
		}
		return addRoute(ctx, c, attackPort, "198.19.0.0/16", deadTunnel)
	}
	return nil
}

func addNexthop(ctx context.Context, c *api.Client, n *apiv1.Nexthop) error {
	_, err := api.Call(ctx, c, apiv1.NewNexthopsClient, apiv1.NexthopsClient.Add, &apiv1.NexthopAddRequest{Nexthop: n})
	return err
}

// addRoute adds a route. A tenant's VRF has the name of its port.
func addRoute(ctx context.Context, c *api.Client, vrf, prefix string, nexthop uint32) error {
	_, err := api.Call(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.Add, &apiv1.RouteAddRequest{
		Routes: []*apiv1.Route{{Vrf: vrf, Prefix: prefix, Nexthop: nexthop}}})
	return err
}
