// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/lab/intrude"
)

func newIntrudeRandom(a *app) *cobra.Command {
	o := intrude.Default()
	seed, d := uint64(1), 10*time.Minute
	cmd := verb("random", "Disturb a worker at random and score what explain says",
		"  corelane lab intrude random --seed 7 --for 1h",
		func(ctx context.Context, _ []string) error {
			return a.intrudeRun(ctx, &o, func(ctx context.Context) error { return a.intrudeRandom(ctx, o, seed, d) })
		})
	cmd.Long = `Draw one to three disturbances, their strength, when they begin and the load of the worker, run explain,
and compare what it says with what was done; again and again, each time with a new corelaned. The end is a score: how
often a true cause came first, how often all causes that cost more than 2 % by themselves were found and in the order of
their costs, and how far the costs were off.`
	intrudeFlags(cmd, &o)
	f := cmd.Flags()
	f.Uint64Var(&seed, "seed", seed, "the same seed draws the same disturbances")
	f.DurationVar(&d, "for", d, "no new case begins after this time")
	f.DurationVar(&o.Window, "window", o.Window, "how long explain watches, up to 10s")
	return cmd
}

func (a *app) intrudeRandom(ctx context.Context, o intrude.Options, seed uint64, d time.Duration) error {
	var all []intrude.Outcome
	err := intrude.Random(ctx, o, seed, d, a.intrudeOutcomes(&all))
	if !a.json() && len(all) > 0 {
		fmt.Fprintln(a.stdout, intrude.Score(all)+".")
	}
	return err
}
