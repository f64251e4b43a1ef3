// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func newWorkerRebalance(a *app) *cobra.Command {
	req := &apiv1.RebalanceRequest{}
	var dry bool
	var auto uint32
	var cmd *cobra.Command
	cmd = verb("rebalance", "Give queues and table entries to workers that have less to do",
		"  corelane worker rebalance --dry-run\n  corelane worker rebalance\n  corelane worker rebalance --auto 30",
		func(ctx context.Context, _ []string) error {
			if cmd.Flags().Changed("auto") {
				return a.done(call(ctx, a, apiv1.NewSystemClient, apiv1.SystemService.SetSettings, &apiv1.SettingsSetRequest{
					Settings: &apiv1.Settings{RebalanceSeconds: auto}, Fields: []string{"rebalance_seconds"}}))
			}
			req.Apply = !dry
			plan, err := call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Rebalance, req)
			if err != nil || a.json() {
				return a.done(plan, err)
			}
			return a.printPlan(plan, dry)
		})
	cmd.Long = `Compare what the workers of each NUMA node have to do (packets per second of the queues that they poll and of the table entries of ports
in hybrid mode that are theirs), and move queues and entries so that the most loaded has less. Nothing is lost and no flow
reordered. When it would gain less than a tenth, nothing is moved. With --auto it is done every so many seconds (--auto 0 ends that).`
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be moved and what it would gain")
	cmd.Flags().Uint32Var(&auto, "auto", 0, "do it every so many seconds, 0 = only when asked to")
	a.bind(cmd, req, []fieldFlag{{flag: "cross-numa", help: "also between workers of different NUMA nodes"}})
	return cmd
}

func (a *app) printPlan(plan *apiv1.RebalancePlan, dry bool) error {
	if len(plan.Moves) == 0 {
		_, err := fmt.Fprintf(a.stdout, "Nothing to gain: the most loaded worker has %s packets/s, the mean is %s.\n",
			packetRate(plan.MostBefore), packetRate(plan.Mean))
		return err
	}
	what := "The most loaded worker had %s packets/s and has %s (the mean is %s):\n"
	if dry {
		what = "The most loaded worker has %s packets/s and would have %s (the mean is %s):\n"
	}
	if _, err := fmt.Fprintf(a.stdout, what, packetRate(plan.MostBefore), packetRate(plan.MostAfter), packetRate(plan.Mean)); err != nil {
		return err
	}
	return a.rows([]string{"PORT", "WHAT", "FROM", "TO", "PACKETS/S"}, func(add func(...string) error) error {
		for _, m := range plan.Moves {
			if err := add(m.Port, movedPart(m), fmt.Sprint(m.From), fmt.Sprint(m.To), packetRate(m.Packets)); err != nil {
				return err
			}
		}
		return nil
	})
}

func movedPart(m *apiv1.RebalanceMove) string {
	if m.Entries > 0 {
		return fmt.Sprintf("%d entries", m.Entries)
	}
	return fmt.Sprintf("queue %d", m.Queue)
}

func packetRate(packets float64) string { return fmt.Sprintf("%.0f", packets) }
