// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var groupListing = listing[*apiv1.AddressGroup]{
	key: (*apiv1.AddressGroup).GetName,
	columns: []column[*apiv1.AddressGroup]{
		text("name", (*apiv1.AddressGroup).GetName),
		number("rules", (*apiv1.AddressGroup).GetRules),
		number("labels, VNIs", (*apiv1.AddressGroup).GetTunnelIds),
		text("prefixes", func(g *apiv1.AddressGroup) string {
			const some = 8
			list := g.Prefixes[:min(len(g.Prefixes), some)]
			return strings.Join(list, " ") + map[bool]string{true: " ..."}[len(g.Prefixes) > some]
		}),
	},
}

func newAddressGroupCmd(a *app) *cobra.Command {
	return noun("address-group", "Address groups: sets of prefixes that rules, labels and VNIs name",
		newList(a, "List address groups", "  corelane address-group list", groupListing, groupsNamed(a, "")),
		newShow(a, "GROUP", "Show an address group", "  corelane address-group show offices", groupNames,
			func(name string) (fetch[*apiv1.AddressGroup], error) { return groupsNamed(a, name), nil }),
		newGroupAdd(a), newGroupSet(a),
		newDel(a, "GROUP", "Remove address groups", "  corelane address-group del offices", groupNames,
			func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.Del,
					&apiv1.AddressGroupDelRequest{Name: name}))
			}))
}

func newGroupAdd(a *app) *cobra.Command {
	return verb("add GROUP [PREFIX...]", "Add an address group",
		"  corelane address-group add offices 10.0.0.0/8 192.0.2.7 2001:db8::/32",
		func(ctx context.Context, args []string) error {
			g, err := parseAddressGroup(args)
			if err != nil {
				return err
			}
			return a.done(call(ctx, a, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.Add,
				&apiv1.AddressGroupAddRequest{Group: g}))
		})
}

func newGroupSet(a *app) *cobra.Command {
	cmd := verb("set GROUP [PREFIX...]", "Replace the prefixes of an address group",
		"  corelane address-group set offices 10.0.0.0/8 198.51.100.0/24",
		func(ctx context.Context, args []string) error {
			g, err := parseAddressGroup(args)
			if err != nil {
				return err
			}
			return a.done(call(ctx, a, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.Set,
				&apiv1.AddressGroupSetRequest{Group: g, Fields: []string{"prefixes"}}))
		})
	cmd.Long = "Give an address group exactly these prefixes. All rules, labels and VNIs that use it change at once; " +
		"without prefixes rules match nothing, and labels and VNIs accept nothing."
	cmd.ValidArgsFunction = a.complete(groupNames, fixed())
	return cmd
}

func parseAddressGroup(args []string) (*apiv1.AddressGroup, error) {
	g := &apiv1.AddressGroup{Name: args[0]}
	for _, arg := range args[1:] {
		p, err := parsePrefix("prefix", arg)
		if err != nil {
			return nil, err
		}
		g.Prefixes = append(g.Prefixes, p)
	}
	return g, nil
}

func groupsNamed(a *app, name string) fetch[*apiv1.AddressGroup] {
	return listOf(a, apiv1.NewAddressGroupsClient, apiv1.AddressGroupsClient.List,
		&apiv1.AddressGroupListRequest{Name: name})
}

var groupNames = named(func(a *app) fetch[*apiv1.AddressGroup] {
	return groupsNamed(a, "")
}, (*apiv1.AddressGroup).GetName)
