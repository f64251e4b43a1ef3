// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
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
		text("addresses", func(m *apiv1.Mac) string { return strings.Join(m.Addresses, " ") }),
	},
}

func newMacCmd(a *app) *cobra.Command {
	return noun("mac", "MAC addresses of bridge domains", newMacList(a), newMacShow(a), newMacAdd(a), newMacLoad(a),
		newMacDel(a), newMacWatch(a))
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

func newMacWatch(a *app) *cobra.Command {
	req := &apiv1.MacWatchRequest{}
	cmd := verb("watch", "Print how learnt MAC addresses change, until interrupted",
		"  corelane mac watch --bridge lan\n  corelane mac watch -o json",
		func(ctx context.Context, _ []string) error {
			err := listOf(a, apiv1.NewMacsClient, apiv1.MacsClient.Watch, req)(ctx, func(e *apiv1.MacEvent) error {
				if a.json() {
					return writeJSON(a.stdout, e)
				}
				_, err := fmt.Fprintln(a.stdout, macEventText(e))
				return err
			})
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
	cmd.Long = `Print a line when an address is learnt, moves, or goes, and when a port sends with an address that is
given behind a tunnel. "missed" stands for changes that are not printed; the first line says so of those before the
command.`
	a.bind(cmd, req, []fieldFlag{{flag: "bridge", help: "only those of this bridge domain", names: bridgeNames}})
	return cmd
}

func macEventText(e *apiv1.MacEvent) string {
	text := limits.EnumText(e.Change)
	if e.Mac != nil {
		text += " " + e.Mac.Bridge + " " + e.Mac.Mac + " " + macTarget(e.Mac) + optional(" ", e.Mac.Remote)
	}
	return text
}

func newMacAdd(a *app) *cobra.Command {
	given := &apiv1.Mac{}
	cmd := verb("add BRIDGE MAC TARGET NAME", "Add a MAC address by hand",
		"  corelane mac add lan 02:00:00:00:00:01 port vm1\n"+
			"  corelane mac add lan 02:00:00:00:00:02 nexthop 100 --addresses 10.2.0.12",
		func(ctx context.Context, args []string) error {
			m, err := parseMac(args[0], args[1:])
			if err != nil {
				return err
			}
			m.Addresses = given.Addresses
			return a.done(call(ctx, a, apiv1.NewMacsClient, apiv1.MacsClient.Add, &apiv1.MacAddRequest{Mac: m}))
		})
	a.bind(cmd, given, []fieldFlag{{flag: "addresses", help: "IP addresses of the station, for neighbor suppression"}})
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		last := portNames
		if len(args) > 2 && args[2] == "nexthop" {
			last = nexthopNames
		}
		return a.complete(bridgeNames, fixed(), fixed("port", "nexthop"), last)(c, args, prefix)
	}
	return cmd
}

// parseMac reads "MAC TARGET NAME".
func parseMac(bridge string, args []string) (*apiv1.Mac, error) {
	m := &apiv1.Mac{Bridge: bridge, Mac: args[0]}
	switch args[1] {
	case "port":
		m.Target = &apiv1.Mac_Port{Port: args[2]}
	case "nexthop":
		id, err := protoflag.ParseField("nexthop", args[2], &apiv1.Nexthop{}, "id")
		if err != nil {
			return nil, err
		}
		m.Target = &apiv1.Mac_Nexthop{Nexthop: id}
	default:
		return nil, input.Errorf("target", "port NAME, nexthop ID", "'%s' is unknown", args[1])
	}
	return m, nil
}

// macBatch is how many MAC addresses one request may hold.
const macBatch = 4096

func newMacLoad(a *app) *cobra.Command {
	cmd := verb("load BRIDGE FILE", "Add the MAC addresses of a file",
		"  corelane mac load lan macs.txt",
		func(ctx context.Context, args []string) error {
			b := &bulk[*apiv1.Mac]{app: a, what: "addresses", most: macBatch,
				parse: func(words []string) (*apiv1.Mac, error) {
					if len(words) != 3 {
						return nil, input.Errorf("line", "MAC port NAME, MAC nexthop ID", "it has %d words", len(words))
					}
					return parseMac(args[0], words)
				},
				send: func(ctx context.Context, list []*apiv1.Mac) (uint32, error) {
					reply, err := call(ctx, a, apiv1.NewMacsClient, apiv1.MacsClient.AddAll,
						&apiv1.MacAddAllRequest{Macs: list})
					return reply.GetAdded(), err
				},
				reply: func(n uint32) proto.Message { return &apiv1.MacAddAllReply{Added: n} }}
			return b.file(ctx, args[1])
		})
	cmd.Long = `Add the MAC addresses of a file, or of standard input with -. A line is what "corelane mac add BRIDGE"
takes:
  02:00:00:00:00:01 port vm1
# starts a comment. Addresses are sent in batches of 4096; each batch is added as a whole or not at all.`
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return a.offer(c.Context(), bridgeNames, prefix), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
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
