// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var endpointListing = listing[*apiv1.Endpoint]{
	key: func(e *apiv1.Endpoint) string { return e.Service + " " + endpoint(e.Address, e.Port) },
	columns: []column[*apiv1.Endpoint]{
		text("service", (*apiv1.Endpoint).GetService),
		text("endpoint", func(e *apiv1.Endpoint) string { return endpoint(e.Address, e.Port) }),
		number("weight", (*apiv1.Endpoint).GetWeight),
		number("rows", func(e *apiv1.Endpoint) uint32 { return e.GetState().GetRows() }),
		counter("active", func(e *apiv1.Endpoint) uint64 { return e.GetState().GetTotals().GetActive() }),
		counter("flows", func(e *apiv1.Endpoint) uint64 { return e.GetState().GetTotals().GetFlows() }),
		counter("packets", func(e *apiv1.Endpoint) uint64 { return e.GetState().GetTotals().GetPackets() }),
		counter("bytes", func(e *apiv1.Endpoint) uint64 { return e.GetState().GetTotals().GetBytes() }),
		counter("replies", func(e *apiv1.Endpoint) uint64 { return e.GetState().GetTotals().GetReplyPackets() }),
		counter("reply bytes", func(e *apiv1.Endpoint) uint64 { return e.GetState().GetTotals().GetReplyBytes() }),
	},
}

var endpointFlags = []fieldFlag{
	{flag: "weight", help: "share of the new flows; 0: no new flows, existing ones go on"},
}

func newEndpointCmd(a *app) *cobra.Command {
	return noun("endpoint", "Endpoints of services", newEndpointList(a), newEndpointAdd(a), newEndpointSet(a),
		newEndpointDel(a))
}

func newEndpointList(a *app) *cobra.Command {
	req := &apiv1.EndpointListRequest{}
	cmd := newList(a, "List endpoints with what their flows count", "  corelane endpoint list --service web",
		endpointListing, listOf(a, apiv1.NewEndpointsClient, apiv1.EndpointsClient.List, req))
	a.bind(cmd, req, []fieldFlag{{flag: "service", help: "only those of this service", names: serviceNames}})
	return cmd
}

func newEndpointAdd(a *app) *cobra.Command {
	e := &apiv1.Endpoint{Weight: 1}
	cmd := verb("add SERVICE ADDRESS...", "Add endpoints; flows that exist keep theirs",
		`  corelane endpoint add web 10.1.0.5:8443 10.1.0.6:8443
  corelane endpoint add web [fd00::5]:8443 --weight 3`,
		func(ctx context.Context, args []string) error {
			return a.eachEndpoint(e, args, func() error {
				return a.done(call(ctx, a, apiv1.NewEndpointsClient, apiv1.EndpointsClient.Add,
					&apiv1.EndpointAddRequest{Endpoint: e}))
			})
		})
	cmd.Long = `Add endpoints with one weight. ADDRESS is ADDRESS[:PORT]; without a port, the port of the flow stays.`
	a.bind(cmd, e, endpointFlags)
	cmd.ValidArgsFunction = a.complete(serviceNames, fixed())
	return cmd
}

func newEndpointSet(a *app) *cobra.Command {
	e := &apiv1.Endpoint{}
	var cmd *cobra.Command
	cmd = verb("set SERVICE ADDRESS...", "Change endpoints; flows that exist keep theirs",
		"  corelane endpoint set web 10.1.0.5:8443 --weight 0",
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, endpointFlags)
			if err != nil {
				return err
			}
			return a.eachEndpoint(e, args, func() error {
				return a.done(call(ctx, a, apiv1.NewEndpointsClient, apiv1.EndpointsClient.Set,
					&apiv1.EndpointSetRequest{Endpoint: e, Fields: fields}))
			})
		})
	a.bind(cmd, e, endpointFlags)
	cmd.ValidArgsFunction = a.complete(serviceNames, endpointNames)
	return cmd
}

func newEndpointDel(a *app) *cobra.Command {
	e := &apiv1.Endpoint{}
	cmd := verb("del SERVICE ADDRESS...", "Remove endpoints; their flows go on until they end",
		"  corelane endpoint del web 10.1.0.5:8443",
		func(ctx context.Context, args []string) error {
			return a.eachEndpoint(e, args, func() error {
				return a.done(call(ctx, a, apiv1.NewEndpointsClient, apiv1.EndpointsClient.Del,
					&apiv1.EndpointDelRequest{Service: e.Service, Address: e.Address, Port: e.Port}))
			})
		})
	cmd.ValidArgsFunction = a.complete(serviceNames, endpointNames)
	return cmd
}

// eachEndpoint reads "SERVICE ADDRESS..." and calls send for each address, until the daemon refuses one. If an address
// is invalid, none is sent.
func (a *app) eachEndpoint(e *apiv1.Endpoint, args []string, send func() error) error {
	addresses, ports := make([]string, len(args)), make([]uint32, len(args))
	e.Service = args[0]
	for i, arg := range args[1:] {
		var err error
		if addresses[i], ports[i], err = parseEndpoint("address", arg); err != nil {
			return err
		}
	}
	for i := range args[1:] {
		e.Address, e.Port = addresses[i], ports[i]
		if err := send(); err != nil {
			return err
		}
	}
	return nil
}

var endpointNames = named(func(a *app) fetch[*apiv1.Endpoint] {
	return listOf(a, apiv1.NewEndpointsClient, apiv1.EndpointsClient.List, &apiv1.EndpointListRequest{})
}, func(e *apiv1.Endpoint) string { return endpoint(e.Address, e.Port) + "\t" + e.Service })
