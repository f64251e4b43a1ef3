// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func newDropsCmd(a *app) *cobra.Command {
	req := &apiv1.DropListRequest{}
	cmd := verb("drops [REASON]", "Dropped packets by reason, with an explanation of each reason", `  corelane drops
  corelane drops --by-port --watch
  corelane drops ip4_no_route
  corelane drops --all -o json`,
		func(ctx context.Context, args []string) error {
			f := listOf(a, apiv1.NewStatsClient, apiv1.StatsClient.Drops, req)
			if len(args) == 1 {
				req.Zero = true
				f = where(f, func(d *apiv1.Drop) bool { return d.Reason == args[0] })
				if err := known(ctx, f, args[0]); err != nil {
					return err
				}
			}
			if len(args) == 0 && !req.Zero && req.Port == "" && !a.json() {
				f = where(f, func(d *apiv1.Drop) bool { return !slices.Contains(ordinary, d.Reason) })
			}
			return dropListing(req).rows(ctx, a, f)
		})
	a.bind(cmd, req, []fieldFlag{
		{flag: "all", field: "zero", help: "also reasons without drops, and what a guest's system sends by itself"},
		{flag: "by-port", help: "a line for each port that packets came in by"},
		{flag: "by-worker", help: "a line for each worker"},
		{flag: "port", help: "only packets that came in by this port", names: portNames},
	})
	cmd.ValidArgsFunction = a.complete(dropReasons)
	return a.watchable(cmd)
}

func dropListing(req *apiv1.DropListRequest) listing[*apiv1.Drop] {
	l := listing[*apiv1.Drop]{
		key: func(d *apiv1.Drop) string { return fmt.Sprintf("%s %s %d", d.Reason, d.Port, d.Worker) },
		columns: []column[*apiv1.Drop]{
			text("reason", (*apiv1.Drop).GetReason),
			counter("packets", (*apiv1.Drop).GetPackets),
		},
	}
	if req.ByPort || req.Port != "" {
		l.columns = append(l.columns, text("port", (*apiv1.Drop).GetPort))
	}
	if req.ByWorker {
		l.columns = append(l.columns, number("worker", (*apiv1.Drop).GetWorker))
	}
	l.columns = append(l.columns, text("explanation", (*apiv1.Drop).GetExplanation))
	return l
}

// ordinary lists what a guest's system sends by itself on a healthy node. Such drops would hide the others.
var ordinary = []string{"eth_multicast_ignored", "nd_duplicate_check", "nd_router_solicit_ignored",
	"bridge_report_kept"}

// known refuses a reason that does not exist, which would otherwise look like one without drops.
func known(ctx context.Context, f fetch[*apiv1.Drop], reason string) error {
	found, err := all(ctx, f)
	if err == nil && len(found) == 0 {
		err = missing("reason", reason, "see 'corelane drops --all'")
	}
	return err
}

var dropReasons = named(func(a *app) fetch[*apiv1.Drop] {
	return listOf(a, apiv1.NewStatsClient, apiv1.StatsClient.Drops, &apiv1.DropListRequest{Zero: true})
}, func(d *apiv1.Drop) string { return d.Reason + "\t" + d.Explanation })
