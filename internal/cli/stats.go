// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var statListing = listing[*apiv1.Stat]{
	key: func(s *apiv1.Stat) string { return s.Port + " " + s.Name },
	columns: []column[*apiv1.Stat]{
		text("port", (*apiv1.Stat).GetPort),
		text("name", (*apiv1.Stat).GetName),
		counter("value", (*apiv1.Stat).GetValue),
		text("unit", (*apiv1.Stat).GetUnit),
	},
}

func newStatsCmd(a *app) *cobra.Command {
	req := &apiv1.StatListRequest{}
	all := false
	cmd := verb("stats", "Counters of the devices, as their drivers name them, and of the process", `  corelane stats
  corelane stats --port fab0 --all
  corelane stats --watch`,
		func(ctx context.Context, _ []string) error {
			f := listOf(a, apiv1.NewStatsClient, apiv1.StatsClient.List, req)
			return statListing.rows(ctx, a, where(f, func(s *apiv1.Stat) bool { return all || s.Value != 0 }))
		})
	a.bind(cmd, req, []fieldFlag{{flag: "port", help: "only those of this port", names: portNames}})
	cmd.Flags().BoolVar(&all, "all", false, "also counters that are zero")
	return a.watchable(cmd)
}
