// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

// routeListing shows where next hops lead; via has them by id.
func routeListing(via map[uint32]string) listing[*apiv1.Route] {
	return listing[*apiv1.Route]{
		key: func(r *apiv1.Route) string { return r.Vrf + " " + r.Prefix },
		columns: []column[*apiv1.Route]{
			text("vrf", (*apiv1.Route).GetVrf),
			text("prefix", (*apiv1.Route).GetPrefix),
			number("nexthop", (*apiv1.Route).GetNexthop),
			text("via", func(r *apiv1.Route) string { return via[r.Nexthop] }),
			text("origin", (*apiv1.Route).GetOrigin),
		},
	}
}

// readVia reads where the next hops that match lead.
func (a *app) readVia(ctx context.Context, via map[uint32]string, req *apiv1.NexthopListRequest) error {
	if a.json() {
		return nil
	}
	clear(via)
	return nexthops(a, req)(ctx, func(n *apiv1.Nexthop) error {
		via[n.Id] = strings.TrimSpace(nexthopKind(n) + " " + nexthopTarget(n))
		return nil
	})
}

// showRoute writes one route, and where its next hop leads.
func (a *app) showRoute(ctx context.Context, get func(context.Context) (*apiv1.Route, error)) error {
	var found *apiv1.Route
	err := details(ctx, a, func(ctx context.Context) (r *apiv1.Route, err error) {
		found, err = get(ctx)
		return found, err
	})
	if err != nil || a.json() || a.interval > 0 {
		return err
	}
	via := map[uint32]string{}
	err = a.readVia(ctx, via, &apiv1.NexthopListRequest{Id: found.Nexthop, All: true})
	if err == nil {
		_, err = fmt.Fprintf(a.stdout, "via: %s\n", via[found.Nexthop])
	}
	return err
}

func newRouteCmd(a *app) *cobra.Command {
	return noun("route", "Routes: longest-prefix matches of a VRF to a next hop",
		newRouteList(a), newRouteShow(a), newRouteLookup(a), newRouteAdd(a), newRouteDel(a))
}

func newRouteList(a *app) *cobra.Command {
	req, via := &apiv1.RouteListRequest{}, map[uint32]string{}
	routes := listOf(a, apiv1.NewRoutesClient, apiv1.RoutesClient.List, req)
	list := func(ctx context.Context, each func(*apiv1.Route) error) error {
		if err := a.readVia(ctx, via, &apiv1.NexthopListRequest{All: true}); err != nil {
			return err
		}
		return routes(ctx, each)
	}
	cmd := newList(a, "List routes", `  corelane route list --vrf red
  corelane route list --vrf red --under 10.1.0.0/16 --origin api
  corelane route list -o json | wc -l`, routeListing(via), list)
	a.bind(cmd, req, []fieldFlag{
		{flag: "vrf", help: "only those of this VRF", names: vrfNames},
		{flag: "family", help: "only this family"},
		{flag: "under", help: "only prefixes within this one"},
		{flag: "origin", help: "only routes of this origin: api, connected, local, guest",
			names: fixed("api", "connected", "local", "guest")},
	})
	return cmd
}

func newRouteShow(a *app) *cobra.Command {
	req := &apiv1.RouteListRequest{}
	cmd := a.watchable(verb("show PREFIX", "Show the route of exactly this prefix",
		"  corelane route show 10.0.0.0/8 --vrf red", func(ctx context.Context, args []string) error {
			p, err := parsePrefix("prefix", args[0])
			if err != nil {
				return err
			}
			req.Under = p
			routes := where(listOf(a, apiv1.NewRoutesClient, apiv1.RoutesClient.List, req),
				func(r *apiv1.Route) bool { return r.Prefix == p })
			return a.showRoute(ctx, func(ctx context.Context) (*apiv1.Route, error) {
				return one(ctx, routes, "route", args[0], "see 'corelane route list'")
			})
		}))
	a.bind(cmd, req, []fieldFlag{{flag: "vrf", help: "VRF of the route", names: vrfNames}})
	required(cmd, "vrf")
	return cmd
}

func newRouteLookup(a *app) *cobra.Command {
	req := &apiv1.RouteLookupRequest{}
	cmd := a.watchable(verb("lookup ADDRESS", "Show the route that a packet to this address takes",
		"  corelane route lookup 10.1.2.3 --vrf red", func(ctx context.Context, args []string) error {
			req.Address = args[0]
			return a.showRoute(ctx, func(ctx context.Context) (*apiv1.Route, error) {
				return call(ctx, a, apiv1.NewRoutesClient, apiv1.RoutesClient.Lookup, req)
			})
		}))
	a.bind(cmd, req, []fieldFlag{{flag: "vrf", help: "VRF to look in", names: vrfNames}})
	required(cmd, "vrf")
	return cmd
}

func newRouteAdd(a *app) *cobra.Command {
	route := &apiv1.Route{} // VRF and next hop of all prefixes
	var file string
	var cmd *cobra.Command
	cmd = verb("add [PREFIX...]", "Add routes, or give existing ones another next hop",
		`  corelane route add 10.0.0.0/8 --vrf red --nexthop 5
  corelane route add --vrf red --file routes.txt
  zcat table.gz | corelane route add --vrf red --file -`,
		func(ctx context.Context, args []string) error {
			if err := prefixesOrFile(args, file); err != nil {
				return err
			}
			if cmd.Flags().Changed("nexthop") {
				if err := protoflag.Check("--nexthop", route, "nexthop"); err != nil {
					return err
				}
			} else if file == "" {
				return input.Errorf("--nexthop", "id of the next hop", "missing")
			}
			if file != "" {
				return a.bulkRoutes(route, false, a.addRoutes).file(ctx, file)
			}
			routes, err := routesTo(route, args)
			if err != nil {
				return err
			}
			return a.done(a.addRoutes(ctx, routes))
		})
	cmd.Long = `Add routes. A file has one route per line, "PREFIX NEXTHOP", or "PREFIX" with --nexthop; # starts a
comment. Routes are sent in batches; each batch is added as a whole or not at all.`
	a.bind(cmd, route, []fieldFlag{{flag: "nexthop", help: "id of the next hop", names: nexthopNames}})
	a.routeFlags(cmd, route, &file)
	return cmd
}

func newRouteDel(a *app) *cobra.Command {
	route := &apiv1.Route{} // VRF of all prefixes
	var file string
	cmd := verb("del [PREFIX...]", "Remove routes",
		"  corelane route del 10.0.0.0/8 --vrf red\n  corelane route del --vrf red --file routes.txt",
		func(ctx context.Context, args []string) error {
			if err := prefixesOrFile(args, file); err != nil {
				return err
			}
			if file != "" {
				return a.bulkRoutes(route, true, a.delRoutes).file(ctx, file)
			}
			routes, err := routesTo(route, args)
			if err != nil {
				return err
			}
			return a.done(a.delRoutes(ctx, routes))
		})
	cmd.Long = "Remove routes. A file has one prefix per line; the rest of a line is ignored, # starts a comment."
	a.routeFlags(cmd, route, &file)
	return cmd
}

// routeFlags adds the flags that add and del share.
func (a *app) routeFlags(cmd *cobra.Command, route *apiv1.Route, file *string) {
	cmd.Flags().StringVar(&route.Vrf, "vrf", "", "VRF of the routes")
	cmd.Flags().StringVar(file, "file", "", "read the routes from this file, - is standard input")
	a.completeFlag(cmd, "vrf", vrfNames)
	required(cmd, "vrf")
}

// prefixesOrFile checks that the command line has either prefixes or a file with routes.
func prefixesOrFile(prefixes []string, file string) error {
	switch {
	case file != "" && len(prefixes) > 0:
		return input.Errorf("prefix", "PREFIX or --file", "'%s' and --file exclude each other", prefixes[0])
	case file == "" && len(prefixes) == 0:
		return input.Errorf("prefix", "PREFIX or --file", "missing")
	}
	return nil
}

// routesTo returns one route per prefix, each as like but for the prefix.
func routesTo(like *apiv1.Route, prefixes []string) ([]*apiv1.Route, error) {
	var routes []*apiv1.Route
	for _, text := range prefixes {
		route, err := routeTo(like, text)
		if err != nil {
			return nil, err
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// routeTo returns a route as like but for the prefix. Copies by name: a file has millions of routes.
func routeTo(like *apiv1.Route, text string) (*apiv1.Route, error) {
	prefix, err := parsePrefix("prefix", text)
	return &apiv1.Route{Vrf: like.Vrf, Prefix: prefix, Nexthop: like.Nexthop}, err
}

func (a *app) addRoutes(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error) {
	return call(ctx, a, apiv1.NewRoutesClient, apiv1.RoutesClient.Add, &apiv1.RouteAddRequest{Routes: routes})
}

func (a *app) delRoutes(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error) {
	return call(ctx, a, apiv1.NewRoutesClient, apiv1.RoutesClient.Del, &apiv1.RouteDelRequest{Routes: routes})
}

// parsePrefix returns the prefix as the daemon writes it. A lone address is a host route.
func parsePrefix(field, text string) (string, error) {
	const valid = "an IPv4 or IPv6 prefix, 10.0.0.0/8"
	p, err := netip.ParsePrefix(text)
	if addr, aerr := netip.ParseAddr(text); aerr == nil && addr.Zone() == "" {
		p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch {
	case err != nil:
		return "", input.Errorf(field, valid, "'%s' is not a prefix", text)
	case p.Addr().Is4In6():
		return "", input.Errorf(field, valid, "'%s' is an IPv4 address in IPv6's notation", text)
	case p != p.Masked():
		return "", input.Errorf(field, p.Masked().String(), "'%s' has host bits", text)
	}
	return p.String(), nil
}
