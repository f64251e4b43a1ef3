// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var vrfListing = listing[*apiv1.Vrf]{
	key: (*apiv1.Vrf).GetName,
	columns: []column[*apiv1.Vrf]{
		text("name", (*apiv1.Vrf).GetName),
		number("id", (*apiv1.Vrf).GetId),
		number("ipv4 routes", (*apiv1.Vrf).GetRoutesIpv4),
		number("ipv6 routes", (*apiv1.Vrf).GetRoutesIpv6),
		text("router mac", (*apiv1.Vrf).GetRouterMac),
	},
}

func newVrfCmd(a *app) *cobra.Command {
	return noun("vrf", "VRFs: routing tables of tenants; \"fabric\" is the underlay's",
		newList(a, "List VRFs", "  corelane vrf list", vrfListing, vrfsNamed(a, "")),
		newShow(a, "VRF", "Show a VRF", "  corelane vrf show red", vrfNames,
			func(name string) (fetch[*apiv1.Vrf], error) { return vrfsNamed(a, name), nil }),
		newVrfAdd(a),
		newDel(a, "VRF", "Remove VRFs", "  corelane vrf del red", vrfNames,
			func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewVrfsClient, apiv1.VrfsClient.Del, &apiv1.VrfDelRequest{Name: name}))
			}))
}

func newVrfAdd(a *app) *cobra.Command {
	vrf := &apiv1.Vrf{}
	cmd := verb("add VRF", "Add a VRF", "  corelane vrf add red\n  corelane vrf add blue --id 7",
		func(ctx context.Context, args []string) error {
			vrf.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewVrfsClient, apiv1.VrfsClient.Add, &apiv1.VrfAddRequest{Vrf: vrf}))
		})
	a.bind(cmd, vrf, []fieldFlag{{flag: "id", help: "number (default: the next free one)"}})
	return cmd
}

func vrfsNamed(a *app, name string) fetch[*apiv1.Vrf] {
	return listOf(a, apiv1.NewVrfsClient, apiv1.VrfsClient.List, &apiv1.VrfListRequest{Name: name})
}

var vrfNames = named(func(a *app) fetch[*apiv1.Vrf] { return vrfsNamed(a, "") }, (*apiv1.Vrf).GetName)
