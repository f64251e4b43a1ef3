// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var bridgeListing = listing[*apiv1.Bridge]{
	key: (*apiv1.Bridge).GetName,
	columns: []column[*apiv1.Bridge]{
		text("name", (*apiv1.Bridge).GetName),
		number("id", (*apiv1.Bridge).GetId),
		text("unknown unicast", func(b *apiv1.Bridge) string { return limits.EnumText(b.UnknownUnicast) }),
		text("learning", func(b *apiv1.Bridge) string { return yesNo(!b.NoLearning) }),
		text("snooping", func(b *apiv1.Bridge) string { return yesNo(b.MulticastSnooping) }),
		text("suppression", func(b *apiv1.Bridge) string { return yesNo(b.NeighborSuppression) }),
		number("macs", (*apiv1.Bridge).GetMacs),
		number("mac limit", (*apiv1.Bridge).GetMacLimit),
		counter("learn refused", (*apiv1.Bridge).GetLearnRefused),
		counter("moves", (*apiv1.Bridge).GetMoves),
		text("ports", func(b *apiv1.Bridge) string { return strings.Join(b.Ports, " ") }),
		text("flood to", func(b *apiv1.Bridge) string { return strings.Trim(fmt.Sprint(b.Flood), "[]") }),
	},
}

var membershipListing = listing[*apiv1.Membership]{
	key: func(m *apiv1.Membership) string { return m.Bridge + " " + m.Group + " " + m.Port },
	columns: []column[*apiv1.Membership]{
		text("bridge", (*apiv1.Membership).GetBridge),
		text("group", (*apiv1.Membership).GetGroup),
		text("port", (*apiv1.Membership).GetPort),
		number("age s", (*apiv1.Membership).GetAgeSeconds),
	},
}

var bridgeFlags = []fieldFlag{
	{flag: "unknown-unicast", help: "what happens to frames for a MAC that is not known: flood or drop"},
	{flag: "flood", help: "tunnel next hops that get broadcast, multicast and unknown unicast", names: nexthopNames},
	{flag: "no-learning", help: "do not learn source addresses"},
	{flag: "mac-limit", help: "most addresses that are learnt"},
	{flag: "neighbor-suppression",
		help: "answer ARP and neighbour solicitations for the addresses of given MACs instead of flooding them"},
	{flag: "multicast-snooping",
		help: "send multicast groups only to ports that joined them (IGMP, MLD), and to multicast routers"},
}

func newBridgeCmd(a *app) *cobra.Command {
	return noun("bridge", "Bridge domains",
		newList(a, "List bridge domains", "  corelane bridge list", bridgeListing, bridgesNamed(a, "")),
		newShow(a, "BRIDGE", "Show a bridge domain", "  corelane bridge show lan", bridgeNames,
			func(name string) (fetch[*apiv1.Bridge], error) { return bridgesNamed(a, name), nil }),
		newBridgeAdd(a), newBridgeSet(a), newBridgeGroups(a),
		newDel(a, "BRIDGE", "Remove bridge domains", "  corelane bridge del lan", bridgeNames,
			func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewBridgesClient, apiv1.BridgesClient.Del,
					&apiv1.BridgeDelRequest{Name: name}))
			}))
}

func newBridgeAdd(a *app) *cobra.Command {
	b := &apiv1.Bridge{}
	cmd := verb("add BRIDGE", "Add a bridge domain",
		"  corelane bridge add lan --flood 100,101\n  corelane bridge add lan2 --unknown-unicast drop",
		func(ctx context.Context, args []string) error {
			b.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewBridgesClient, apiv1.BridgesClient.Add,
				&apiv1.BridgeAddRequest{Bridge: b}))
		})
	a.bind(cmd, b, []fieldFlag{{flag: "id", help: "number (default: the next free one)"}})
	a.bind(cmd, b, bridgeFlags)
	return cmd
}

func newBridgeSet(a *app) *cobra.Command {
	b := &apiv1.Bridge{}
	var cmd *cobra.Command
	cmd = verb("set BRIDGE", "Change a bridge domain",
		"  corelane bridge set lan --flood 100,101,102\n  corelane bridge set lan --mac-limit 100\n"+
			"  corelane bridge set lan --multicast-snooping",
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, bridgeFlags)
			if err != nil {
				return err
			}
			b.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewBridgesClient, apiv1.BridgesClient.Set,
				&apiv1.BridgeSetRequest{Bridge: b, Fields: fields}))
		})
	a.bind(cmd, b, bridgeFlags)
	cmd.ValidArgsFunction = a.complete(bridgeNames)
	return cmd
}

func newBridgeGroups(a *app) *cobra.Command {
	req := &apiv1.MembershipListRequest{}
	cmd := a.watchable(verb("groups", "List the multicast groups that ports have joined",
		"  corelane bridge groups\n  corelane bridge groups --bridge lan",
		func(ctx context.Context, _ []string) error {
			return membershipListing.rows(ctx, a,
				listOf(a, apiv1.NewBridgesClient, apiv1.BridgesClient.Memberships, req))
		}))
	cmd.Long = `List the ports that are members of multicast groups, in bridge domains with --multicast-snooping. The
age is the time since the port's last report: a membership ends after 260 seconds without one, or when its hosts say
that they leave. "corelane bridge show" names the ports of multicast routers, which get all groups.`
	a.bind(cmd, req, []fieldFlag{{flag: "bridge", help: "only those of this bridge domain", names: bridgeNames}})
	return cmd
}

func bridgesNamed(a *app, name string) fetch[*apiv1.Bridge] {
	return listOf(a, apiv1.NewBridgesClient, apiv1.BridgesClient.List, &apiv1.BridgeListRequest{Name: name})
}

var bridgeNames = named(func(a *app) fetch[*apiv1.Bridge] { return bridgesNamed(a, "") }, (*apiv1.Bridge).GetName)
