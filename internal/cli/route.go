// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

var routeListing = listing[*apiv1.Route]{
	key: func(r *apiv1.Route) string { return r.Vrf + " " + r.Prefix },
	columns: []column[*apiv1.Route]{
		text("vrf", (*apiv1.Route).GetVrf),
		text("prefix", (*apiv1.Route).GetPrefix),
		number("nexthop", (*apiv1.Route).GetNexthop),
		text("origin", (*apiv1.Route).GetOrigin),
	},
}

func newRouteCmd(a *app) *cobra.Command {
	return noun("route", "Routes: longest-prefix matches of a VRF to a next hop",
		newRouteList(a), newRouteShow(a), newRouteLookup(a), newRouteAdd(a), newRouteDel(a))
}

func newRouteList(a *app) *cobra.Command {
	req := &apiv1.RouteListRequest{}
	cmd := newList(a, "List routes", `  corelane route list --vrf red
  corelane route list --vrf red --under 10.1.0.0/16 --origin api
  corelane route list -o json | wc -l`, routeListing, listOf(a, apiv1.NewRoutesClient, apiv1.RoutesClient.List, req))
	a.bind(cmd, req, []fieldFlag{
		{flag: "vrf", help: "only those of this VRF", names: vrfNames},
		{flag: "family", help: "only this family"},
		{flag: "under", help: "only prefixes within this one"},
		{flag: "origin",
			help: "only routes of this origin: api, connected, local, guest", names: fixed("api", "connected", "local",
				"guest")},
	})
	return cmd
}

func newRouteShow(a *app) *cobra.Command {
	req := &apiv1.RouteListRequest{}
	cmd := newShow(a, "PREFIX", "Show the route of exactly this prefix", "  corelane route show 10.0.0.0/8 --vrf red",
		fixed(), func(prefix string) (fetch[*apiv1.Route], error) {
			p, err := parsePrefix("prefix", prefix)
			req.Under = p
			return where(listOf(a, apiv1.NewRoutesClient, apiv1.RoutesClient.List, req),
				func(r *apiv1.Route) bool { return r.Prefix == p }), err
		})
	a.bind(cmd, req, []fieldFlag{{flag: "vrf", help: "VRF of the route", names: vrfNames}})
	required(cmd, "vrf")
	return cmd
}

func newRouteLookup(a *app) *cobra.Command {
	req := &apiv1.RouteLookupRequest{}
	cmd := a.watchable(verb("lookup ADDRESS", "Show the route that a packet to this address takes",
		"  corelane route lookup 10.1.2.3 --vrf red", func(ctx context.Context, args []string) error {
			req.Address = args[0]
			return details(ctx, a, func(ctx context.Context) (*apiv1.Route, error) {
				return call(ctx, a, apiv1.NewRoutesClient, apiv1.RoutesClient.Lookup, req)
			})
		}))
	a.bind(cmd, req, []fieldFlag{{flag: "vrf", help: "VRF to look in", names: vrfNames}})
	required(cmd, "vrf")
	return cmd
}

func newRouteAdd(a *app) *cobra.Command {
	var vrf, file string
	var nexthop uint32
	var cmd *cobra.Command
	cmd = verb("add [PREFIX...]", "Add routes, or give existing ones another next hop",
		`  corelane route add 10.0.0.0/8 --vrf red --nexthop 5
  corelane route add --vrf red --file routes.txt
  zcat table.gz | corelane route add --vrf red --file -`,
		func(ctx context.Context, args []string) error {
			bulk := &bulk{app: a, vrf: vrf, send: func(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply,
				error) {
				return call(ctx, a, apiv1.NewRoutesClient, apiv1.RoutesClient.Add,
					&apiv1.RouteAddRequest{Routes: routes})
			}}
			nexthopID := protoflag.Field(&apiv1.Nexthop{}, "id")
			switch withID := cmd.Flags().Changed("nexthop"); {
			case file != "" && len(args) > 0:
				return input.Errorf("prefix", "PREFIX or --file", "'%s' and --file exclude each other", args[0])
			case file == "" && len(args) == 0:
				return input.Errorf("prefix", "PREFIX or --file", "missing")
			case file == "" && !withID:
				return input.Errorf("--nexthop", "id of the next hop", "missing")
			case withID && !limits.Number(nexthopID, uint64(nexthop)):
				return input.Errorf("--nexthop", limits.Numbers(nexthopID), "'%d' is out of range", nexthop)
			}
			if file != "" {
				return bulk.file(ctx, file, nexthop)
			}
			return bulk.prefixes(ctx, args, nexthop)
		})
	cmd.Long = `Add routes. A file has one route per line, "PREFIX NEXTHOP", or "PREFIX" with --nexthop; # starts a
comment. Routes are sent in batches; each batch is added as a whole or not at all.`
	cmd.Flags().Uint32Var(&nexthop, "nexthop", 0, "id of the next hop")
	a.completeFlag(cmd, "nexthop", nexthopNames)
	a.routeFlags(cmd, &vrf, &file)
	return cmd
}

func newRouteDel(a *app) *cobra.Command {
	var vrf, file string
	cmd := verb("del [PREFIX...]", "Remove routes",
		"  corelane route del 10.0.0.0/8 --vrf red\n  corelane route del --vrf red --file routes.txt",
		func(ctx context.Context, args []string) error {
			bulk := &bulk{app: a, vrf: vrf, optional: true,
				send: func(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error) {
					return call(ctx, a, apiv1.NewRoutesClient, apiv1.RoutesClient.Del,
						&apiv1.RouteDelRequest{Routes: routes})
				}}
			switch {
			case file != "" && len(args) > 0:
				return input.Errorf("prefix", "PREFIX or --file", "'%s' and --file exclude each other", args[0])
			case file == "" && len(args) == 0:
				return input.Errorf("prefix", "PREFIX or --file", "missing")
			case file != "":
				return bulk.file(ctx, file, 0)
			}
			return bulk.prefixes(ctx, args, 0)
		})
	cmd.Long = "Remove routes. A file has one prefix per line; the rest of a line is ignored, # starts a comment."
	a.routeFlags(cmd, &vrf, &file)
	return cmd
}

func (a *app) routeFlags(cmd *cobra.Command, vrf, file *string) {
	cmd.Flags().StringVar(vrf, "vrf", "", "VRF of the routes")
	cmd.Flags().StringVar(file, "file", "", "read the routes from this file, - is standard input")
	a.completeFlag(cmd, "vrf", vrfNames)
	required(cmd, "vrf")
}
