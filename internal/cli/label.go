// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
)

var labelListing = listing[*apiv1.Label]{
	key: labelName,
	columns: []column[*apiv1.Label]{
		number("label", (*apiv1.Label).GetLabel),
		text("target", func(l *apiv1.Label) string { return targetText(l.GetVrf(), l.GetBridge(), l.GetNexthop()) }),
		text("mode", func(l *apiv1.Label) string { return tunnelMode(l.Uniform) }),
		text("sources", func(l *apiv1.Label) string { return sourcesText(l.Sources, l.TunnelEnds) }),
	},
}

func newLabelCmd(a *app) *cobra.Command {
	added := &apiv1.Label{}
	req := &apiv1.LabelAddRequest{Label: added}
	return noun("label", "Labels: the VRF, bridge or next hop of packets from MPLS tunnels",
		newList(a, "List labels", "  corelane label list", labelListing, allLabels(a)),
		newShow(a, "LABEL", "Show a label", "  corelane label show 2001", labelNames,
			func(arg string) (fetch[*apiv1.Label], error) {
				n, err := protoflag.ParseField("label", arg, &apiv1.Label{}, "label")
				return where(allLabels(a), func(l *apiv1.Label) bool { return l.Label == n }), err
			}),
		newTargetAdd(a, "label", "Add a label",
			"  corelane label add 2001 vrf red --sources hosts\n  corelane label add 2002 nexthop 7", added, req,
			func(ctx context.Context) error {
				return a.done(call(ctx, a, apiv1.NewLabelsClient, apiv1.LabelsClient.Add, req))
			}),
		newDel(a, "LABEL", "Remove labels", "  corelane label del 2001", labelNames,
			byNumber("label", &apiv1.Label{}, "label", func(ctx context.Context, n uint32) error {
				return a.done(call(ctx, a, apiv1.NewLabelsClient, apiv1.LabelsClient.Del,
					&apiv1.LabelDelRequest{Label: n}))
			})))
}

func allLabels(a *app) fetch[*apiv1.Label] {
	return listOf(a, apiv1.NewLabelsClient, apiv1.LabelsClient.List, &apiv1.LabelListRequest{})
}

func labelName(l *apiv1.Label) string { return strconv.Itoa(int(l.Label)) }

var labelNames = named(allLabels, labelName)
