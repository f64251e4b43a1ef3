// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

var macListing = listing[*apiv1.Mac]{
	key: func(m *apiv1.Mac) string { return m.Bridge + " " + m.Mac },
	columns: []column[*apiv1.Mac]{
		text("bridge", (*apiv1.Mac).GetBridge),
		text("mac", (*apiv1.Mac).GetMac),
		text("behind", macTarget),
		text("remote", (*apiv1.Mac).GetRemote),
		text("learnt", func(m *apiv1.Mac) string { return yesNo(m.Learnt) }),
		number("age s", (*apiv1.Mac).GetAgeSeconds),
	},
}

func newMacCmd(a *app) *cobra.Command {
	return noun("mac", "MAC addresses of bridge domains", newMacList(a), newMacShow(a), newMacAdd(a), newMacDel(a))
}

func newMacList(a *app) *cobra.Command {
	req := &apiv1.MacListRequest{}
	cmd := newList(a, "List MAC addresses", "  corelane mac list --bridge lan", macListing,
		listOf(a, apiv1.NewMacsClient, apiv1.MacsClient.List, req))
	a.bind(cmd, req, []fieldFlag{{flag: "bridge", help: "only those of this bridge domain", names: bridgeNames}})
	return cmd
}

func newMacShow(a *app) *cobra.Command {
	req := &apiv1.MacListRequest{}
	cmd := newShow(a, "MAC", "Show a MAC address", "  corelane mac show 02:00:00:00:00:01 --bridge lan", fixed(),
		func(arg string) (fetch[*apiv1.Mac], error) {
			return where(listOf(a, apiv1.NewMacsClient, apiv1.MacsClient.List, req),
				func(m *apiv1.Mac) bool { return strings.EqualFold(m.Mac, arg) }), nil
		})
	a.bind(cmd, req, []fieldFlag{{flag: "bridge", help: "in this bridge domain", names: bridgeNames}})
	return cmd
}

func newMacAdd(a *app) *cobra.Command {
	cmd := verb("add BRIDGE MAC TARGET NAME", "Add a MAC address by hand",
		"  corelane mac add lan 02:00:00:00:00:01 port vm1\n  corelane mac add lan 02:00:00:00:00:02 nexthop 100",
		func(ctx context.Context, args []string) error {
			m := &apiv1.Mac{Bridge: args[0], Mac: args[1]}
			switch args[2] {
			case "port":
				m.Target = &apiv1.Mac_Port{Port: args[3]}
			case "nexthop":
				id, err := protoflag.ParseField("nexthop", args[3], &apiv1.Nexthop{}, "id")
				if err != nil {
					return err
				}
				m.Target = &apiv1.Mac_Nexthop{Nexthop: id}
			default:
				return input.Errorf("target", "port NAME, nexthop ID", "'%s' is unknown", args[2])
			}
			return a.done(call(ctx, a, apiv1.NewMacsClient, apiv1.MacsClient.Add, &apiv1.MacAddRequest{Mac: m}))
		})
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		last := portNames
		if len(args) > 2 && args[2] == "nexthop" {
			last = nexthopNames
		}
		return a.complete(bridgeNames, fixed(), fixed("port", "nexthop"), last)(c, args, prefix)
	}
	return cmd
}

func newMacDel(a *app) *cobra.Command {
	cmd := verb("del BRIDGE MAC", "Remove a MAC address", "  corelane mac del lan 02:00:00:00:00:01",
		func(ctx context.Context, args []string) error {
			return a.done(call(ctx, a, apiv1.NewMacsClient, apiv1.MacsClient.Del,
				&apiv1.MacDelRequest{Bridge: args[0], Mac: args[1]}))
		})
	cmd.ValidArgsFunction = a.complete(bridgeNames, named(func(a *app) fetch[*apiv1.Mac] {
		return listOf(a, apiv1.NewMacsClient, apiv1.MacsClient.List, &apiv1.MacListRequest{})
	}, (*apiv1.Mac).GetMac))
	return cmd
}

func macTarget(m *apiv1.Mac) string {
	if m.GetPort() != "" {
		return "port " + m.GetPort()
	}
	return targetText("", "", m.GetNexthop())
}
