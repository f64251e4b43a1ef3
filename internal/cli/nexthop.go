// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var nexthopListing = listing[*apiv1.Nexthop]{
	key: func(n *apiv1.Nexthop) string { return strconv.Itoa(int(n.Id)) },
	columns: []column[*apiv1.Nexthop]{
		number("id", (*apiv1.Nexthop).GetId),
		text("kind", nexthopKind),
		text("to", nexthopTarget),
		text("resolved", func(n *apiv1.Nexthop) string { return yesNo(n.GetState().GetResolved()) }),
		number("references", func(n *apiv1.Nexthop) uint32 { return n.GetState().GetReferences() }),
		number("mtu", func(n *apiv1.Nexthop) uint32 { return n.GetState().GetMtu() }),
		text("origin", func(n *apiv1.Nexthop) string { return n.GetState().GetOrigin() }),
		text("paths", func(n *apiv1.Nexthop) string { return strings.Join(n.GetState().GetPaths(), "; ") }),
	},
}

func newNexthopCmd(a *app) *cobra.Command {
	return noun("nexthop", "Next hops: what happens to a packet once its route is known",
		newNexthopList(a),
		newShow(a, "ID", "Show a next hop", "  corelane nexthop show 100", nexthopNames,
			func(arg string) (fetch[*apiv1.Nexthop], error) {
				id, err := parseID("nexthop", arg, 1, 1<<32-1) // the daemon's own have higher ids
				return nexthops(a, &apiv1.NexthopListRequest{Id: id, All: true}), err
			}),
		newNexthopAdd(a),
		newNexthopLoad(a),
		newDel(a, "ID", "Remove next hops", "  corelane nexthop del 100", nexthopNames,
			byNumber("nexthop", &apiv1.Nexthop{}, "id", func(ctx context.Context, id uint32) error {
				return a.done(call(ctx, a, apiv1.NewNexthopsClient, apiv1.NexthopsClient.Del,
					&apiv1.NexthopDelRequest{Id: id}))
			})))
}

func newNexthopList(a *app) *cobra.Command {
	req := &apiv1.NexthopListRequest{}
	cmd := newList(a, "List next hops", "  corelane nexthop list --all", nexthopListing, nexthops(a, req))
	a.bind(cmd, req, []fieldFlag{{flag: "all", help: "also the next hops that the daemon makes"}})
	return cmd
}

func nexthopKind(n *apiv1.Nexthop) string {
	switch k := n.Kind.(type) {
	case *apiv1.Nexthop_Port:
		return "port"
	case *apiv1.Nexthop_Tunnel:
		return limits.EnumText(k.Tunnel.Encap)
	case *apiv1.Nexthop_Group:
		return "group"
	case *apiv1.Nexthop_Discard:
		return "discard"
	case *apiv1.Nexthop_Local:
		return "local"
	case *apiv1.Nexthop_Reject:
		return "reject"
	}
	return ""
}

func nexthopTarget(n *apiv1.Nexthop) string {
	switch k := n.Kind.(type) {
	case *apiv1.Nexthop_Port:
		return k.Port.Port + optional(" ", k.Port.Address) + optional(" ", k.Port.Mac)
	case *apiv1.Nexthop_Tunnel:
		if k.Tunnel.Vni != 0 {
			return fmt.Sprintf("%s vni %d%s", k.Tunnel.Remote, k.Tunnel.Vni, optional(" ", k.Tunnel.RouterMac))
		}
		return fmt.Sprintf("%s label %d", k.Tunnel.Remote, k.Tunnel.Label)
	case *apiv1.Nexthop_Group:
		var all []string
		for _, m := range k.Group.Members {
			all = append(all, fmt.Sprintf("%d:%d", m.Nexthop, max(m.Weight, 1)))
		}
		return strings.Join(all, " ")
	}
	return ""
}

func yesNo(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }

func nexthops(a *app, req *apiv1.NexthopListRequest) fetch[*apiv1.Nexthop] {
	return listOf(a, apiv1.NewNexthopsClient, apiv1.NexthopsClient.List, req)
}

var nexthopNames = named(func(a *app) fetch[*apiv1.Nexthop] { return nexthops(a, &apiv1.NexthopListRequest{}) },
	func(n *apiv1.Nexthop) string {
		return strings.TrimSpace(fmt.Sprintf("%d\t%s %s", n.Id, nexthopKind(n), nexthopTarget(n)))
	})
