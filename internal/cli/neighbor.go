// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var neighborListing = listing[*apiv1.Neighbor]{
	key: func(n *apiv1.Neighbor) string { return n.Port + " " + n.Address },
	columns: []column[*apiv1.Neighbor]{
		text("port", (*apiv1.Neighbor).GetPort),
		text("address", (*apiv1.Neighbor).GetAddress),
		text("mac", (*apiv1.Neighbor).GetMac),
		text("status", func(n *apiv1.Neighbor) string { return limits.EnumText(n.Status) }),
		number("age s", (*apiv1.Neighbor).GetAgeSeconds),
		number("waiting packets", (*apiv1.Neighbor).GetWaiting),
	},
}

func newNeighborCmd(a *app) *cobra.Command {
	return noun("neighbor", "Neighbours: link addresses, found with ARP and ND",
		newNeighborList(a), newNeighborShow(a), newNeighborAdd(a), newNeighborDel(a))
}

func newNeighborList(a *app) *cobra.Command {
	req := &apiv1.NeighborListRequest{}
	cmd := newList(a, "List neighbours", "  corelane neighbor list --port fab0", neighborListing, neighbors(a, req))
	a.bind(cmd, req, []fieldFlag{{flag: "port", help: "only those of this port", names: portNames}})
	return cmd
}

func newNeighborShow(a *app) *cobra.Command {
	req := &apiv1.NeighborListRequest{}
	cmd := newShow(a, "ADDRESS", "Show a neighbour", "  corelane neighbor show 192.0.2.2 --port fab0",
		neighborAddresses, func(arg string) (fetch[*apiv1.Neighbor], error) {
			return where(neighbors(a, req), func(n *apiv1.Neighbor) bool { return n.Address == arg }), nil
		})
	a.bind(cmd, req, []fieldFlag{{flag: "port", help: "on this port", names: portNames}})
	return cmd
}

func newNeighborAdd(a *app) *cobra.Command {
	cmd := verb("add PORT ADDRESS MAC", "Add a permanent neighbour",
		"  corelane neighbor add fab0 192.0.2.2 02:00:00:00:00:02", func(ctx context.Context, args []string) error {
			n := &apiv1.Neighbor{Port: args[0], Address: args[1], Mac: args[2]}
			return a.done(call(ctx, a, apiv1.NewNeighborsClient, apiv1.NeighborsClient.Add,
				&apiv1.NeighborAddRequest{Neighbor: n}))
		})
	cmd.ValidArgsFunction = a.complete(portNames, fixed(), fixed())
	return cmd
}

func newNeighborDel(a *app) *cobra.Command {
	cmd := verb("del PORT ADDRESS", "Forget a neighbour", "  corelane neighbor del fab0 192.0.2.2",
		func(ctx context.Context, args []string) error {
			return a.done(call(ctx, a, apiv1.NewNeighborsClient, apiv1.NeighborsClient.Del,
				&apiv1.NeighborDelRequest{Port: args[0], Address: args[1]}))
		})
	cmd.ValidArgsFunction = a.complete(portNames, neighborAddresses)
	return cmd
}

func neighbors(a *app, req *apiv1.NeighborListRequest) fetch[*apiv1.Neighbor] {
	return listOf(a, apiv1.NewNeighborsClient, apiv1.NeighborsClient.List, req)
}

var neighborAddresses = named(func(a *app) fetch[*apiv1.Neighbor] { return neighbors(a, &apiv1.NeighborListRequest{}) },
	func(n *apiv1.Neighbor) string { return n.Address + "\t" + n.Port + " " + n.Mac })
