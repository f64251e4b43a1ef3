// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
)

var vniListing = listing[*apiv1.Vni]{
	key: vniName,
	columns: []column[*apiv1.Vni]{
		number("vni", (*apiv1.Vni).GetVni),
		text("target", func(v *apiv1.Vni) string { return targetText(v.GetVrf(), v.GetBridge(), v.GetNexthop()) }),
		text("mode", func(v *apiv1.Vni) string { return tunnelMode(v.Uniform) }),
		text("sources", func(v *apiv1.Vni) string { return sourcesText(v.Sources, v.TunnelEnds) }),
	},
}

func newVniCmd(a *app) *cobra.Command {
	added := &apiv1.Vni{}
	req := &apiv1.VniAddRequest{Vni: added}
	return noun("vni", "VNIs: the VRF, bridge or next hop of packets from VXLAN and Geneve tunnels",
		newList(a, "List VNIs", "  corelane vni list", vniListing, allVnis(a)),
		newShow(a, "VNI", "Show a VNI", "  corelane vni show 5001", vniNames,
			func(arg string) (fetch[*apiv1.Vni], error) {
				n, err := protoflag.ParseField("vni", arg, &apiv1.Vni{}, "vni")
				return where(allVnis(a), func(v *apiv1.Vni) bool { return v.Vni == n }), err
			}),
		newTargetAdd(a, "vni", "Add a VNI",
			"  corelane vni add 5001 bridge lan\n  corelane vni add 5002 vrf red --sources hosts",
			added, req, func(ctx context.Context) error {
				return a.done(call(ctx, a, apiv1.NewVnisClient, apiv1.VnisClient.Add, req))
			}),
		newDel(a, "VNI", "Remove VNIs", "  corelane vni del 5001", vniNames,
			byNumber("vni", &apiv1.Vni{}, "vni", func(ctx context.Context, n uint32) error {
				return a.done(call(ctx, a, apiv1.NewVnisClient, apiv1.VnisClient.Del, &apiv1.VniDelRequest{Vni: n}))
			})))
}

func allVnis(a *app) fetch[*apiv1.Vni] {
	return listOf(a, apiv1.NewVnisClient, apiv1.VnisClient.List, &apiv1.VniListRequest{})
}

func vniName(v *apiv1.Vni) string { return strconv.Itoa(int(v.Vni)) }

var vniNames = named(allVnis, vniName)
