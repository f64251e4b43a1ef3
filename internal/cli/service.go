// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

var serviceListing = listing[*apiv1.Service]{
	key: (*apiv1.Service).GetName,
	columns: []column[*apiv1.Service]{
		text("name", (*apiv1.Service).GetName),
		text("vrf", (*apiv1.Service).GetVrf),
		text("address", func(s *apiv1.Service) string { return endpoint(s.Address, s.Port) }),
		text("protocol", func(s *apiv1.Service) string { return limits.EnumText(s.Protocol) }),
		text("scheduler", func(s *apiv1.Service) string { return limits.EnumText(s.Scheduler) }),
		text("serving", func(s *apiv1.Service) string {
			return fmt.Sprintf("%d/%d", s.GetState().GetServing(), s.GetState().GetEndpoints())
		}),
		counter("active", func(s *apiv1.Service) uint64 { return s.GetState().GetTotals().GetActive() }),
		counter("flows", func(s *apiv1.Service) uint64 { return s.GetState().GetTotals().GetFlows() }),
		counter("packets", func(s *apiv1.Service) uint64 { return s.GetState().GetTotals().GetPackets() }),
		counter("replies", func(s *apiv1.Service) uint64 { return s.GetState().GetTotals().GetReplyPackets() }),
		counter("refused", func(s *apiv1.Service) uint64 { return s.GetState().GetRefused() }),
	},
}

var serviceFlags = []fieldFlag{
	{flag: "vrf", help: "VRF of the endpoints", names: vrfNames},
	{flag: "external-vrf", help: "VRF of the service's address (default: that of --vrf)", names: vrfNames},
	{flag: "protocol", help: "only this protocol; a port needs one"},
	{flag: "scheduler", help: "maglev: each flow chooses by its addresses and ports; source: all flows of a client " +
		"go to one endpoint"},
	{flag: "client-prefix", help: "with --scheduler source, clients whose addresses have this many first bits in " +
		"common go to one endpoint; 0: the whole address"},
	{flag: "no-endpoints", help: "without an endpoint that serves, drop packets, or reject them: the sender gets a " +
		"TCP reset or an ICMP error"},
	{flag: "max-endpoints", help: "most endpoints that the service may have; its table grows with them"},
}

var serviceSetFlags = []fieldFlag{
	{flag: "scheduler", help: "maglev or source, for flows that begin from now on"},
	{flag: "client-prefix", help: "bits of the client's address that --scheduler source looks at; 0: all"},
	{flag: "no-endpoints", help: "drop or reject packets without an endpoint that serves"},
}

func newServiceCmd(a *app) *cobra.Command {
	return noun("service", "Services: one address in front of many endpoints",
		newList(a, "List services with what their flows count", "  corelane service list --watch", serviceListing,
			servicesNamed(a, "")),
		newShow(a, "SERVICE", "Show a service with its counters", "  corelane service show web --watch",
			serviceNames,
			func(name string) (fetch[*apiv1.Service], error) { return servicesNamed(a, name), nil }),
		newServiceAdd(a), newServiceSet(a),
		newDel(a, "SERVICE", "Remove services that have no endpoints; their flows end",
			"  corelane service del web", serviceNames, func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewServicesClient, apiv1.ServicesClient.Del,
					&apiv1.ServiceDelRequest{Name: name}))
			}))
}

func newServiceAdd(a *app) *cobra.Command {
	s := &apiv1.Service{}
	cmd := verb("add SERVICE ADDRESS", "Add a service; endpoints follow with 'corelane endpoint add'",
		`  corelane service add web 198.51.100.1:443 --vrf red --protocol tcp
  corelane service add dns [2001:db8::53]:53 --vrf red --protocol udp --scheduler source --no-endpoints reject`,
		func(ctx context.Context, args []string) (err error) {
			s.Name = args[0]
			if s.Address, s.Port, err = parseEndpoint("address", args[1]); err != nil {
				return err
			}
			if s.Vrf == "" {
				return input.Errorf("--vrf", "the VRF of the endpoints", "missing")
			}
			return a.done(call(ctx, a, apiv1.NewServicesClient, apiv1.ServicesClient.Add,
				&apiv1.ServiceAddRequest{Service: s}))
		})
	cmd.Long = `Add a service. Flows to ADDRESS[:PORT] go to one of its endpoints; without a port, those to all ports.
Until it has an endpoint with a weight above 0, its packets are dropped (service_no_endpoint); with
--no-endpoints reject, clients of TCP get a reset, and others the ICMP error "port unreachable".`
	a.bind(cmd, s, serviceFlags)
	cmd.ValidArgsFunction = a.complete(fixed(), fixed())
	return cmd
}

func newServiceSet(a *app) *cobra.Command {
	s := &apiv1.Service{}
	var cmd *cobra.Command
	cmd = verb("set SERVICE", "Change a service; flows that exist keep their endpoints",
		"  corelane service set web --scheduler source\n  corelane service set web --no-endpoints reject",
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, serviceSetFlags)
			if err != nil {
				return err
			}
			s.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewServicesClient, apiv1.ServicesClient.Set,
				&apiv1.ServiceSetRequest{Service: s, Fields: fields}))
		})
	a.bind(cmd, s, serviceSetFlags)
	cmd.ValidArgsFunction = a.complete(serviceNames)
	return cmd
}

func servicesNamed(a *app, name string) fetch[*apiv1.Service] {
	return listOf(a, apiv1.NewServicesClient, apiv1.ServicesClient.List, &apiv1.ServiceListRequest{Name: name})
}

var serviceNames = named(func(a *app) fetch[*apiv1.Service] { return servicesNamed(a, "") },
	(*apiv1.Service).GetName)
