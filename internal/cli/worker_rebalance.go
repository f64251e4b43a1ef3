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
	cmd = verb("rebalance", "Move queues and table entries to workers with less load",
		"  corelane worker rebalance --dry-run\n  corelane worker rebalance\n  corelane worker rebalance --auto 30",
		func(ctx context.Context, _ []string) error {
			if cmd.Flags().Changed("auto") {
				return a.done(call(ctx, a, apiv1.NewSystemClient, apiv1.SystemService.SetSettings,
					&apiv1.SettingsSetRequest{
						Settings: &apiv1.Settings{RebalanceSeconds: auto}, Fields: []string{"rebalance_seconds"}}))
			}
			req.Apply = !dry
			plan, err := call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Rebalance, req)
			if err != nil || a.json() {
				return a.done(plan, err)
			}
			return a.printPlan(plan, dry)
		})
	cmd.Long = `Compare the load of the workers of each NUMA node, and move queues and table entries away from the
most loaded one. The load is packets per second of the queues that a worker polls and of the table entries that it
owns on ports in hybrid mode. No packet is lost and no flow is reordered. Nothing moves for a gain of less than a
tenth. --auto repeats this at an interval in seconds (--auto 0 ends that).`
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would move and the gain")
	cmd.Flags().Uint32Var(&auto, "auto", 0, "repeat it at this interval in seconds, 0 = never")
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
	if _, err := fmt.Fprintf(a.stdout, what, packetRate(plan.MostBefore), packetRate(plan.MostAfter),
		packetRate(plan.Mean)); err != nil {
		return err
	}
	return a.rows([]string{"PORT", "WHAT", "FROM", "TO", "PACKETS/S"}, func(add func(...string) error) error {
		for _, m := range plan.Moves {
			if err := add(m.Port, movedPart(m), fmt.Sprint(m.From), fmt.Sprint(m.To),
				packetRate(m.Packets)); err != nil {
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
