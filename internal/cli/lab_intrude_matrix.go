// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/lab/intrude"
)

func newIntrudeMatrix(a *app) *cobra.Command {
	o := intrude.Default()
	list := false
	cmd := verb("matrix", "Disturb a worker in every way and see whether explain finds it",
		"  corelane lab intrude matrix --list\n  corelane lab intrude matrix\n  corelane lab intrude matrix --case "+
			"hog --case softirq --runs 1",
		func(ctx context.Context, _ []string) error {
			if list {
				return a.intrudeCases()
			}
			return a.intrudeRun(ctx, &o, func(ctx context.Context) error { return a.intrudeMatrix(ctx, o) })
		})
	cmd.Long = `Disturb a worker in one way after the other, each time with a new corelaned under traffic, and run
explain. The cause that it ranks first has to be the true one, and has to name who did it. Where the router can know the
cost, the causes together have to differ from the cost that the generator measured by 25 % at most, and half of the
costs by 10 %. The command that explain gives is run, and 0.97 of the offered rate has to come back, unless the case
says what a fix would need. A case whose tool is missing (perf, gdb, strace) is skipped.

Exit code 1 when a run failed.`
	intrudeFlags(cmd, &o)
	f := cmd.Flags()
	f.StringArrayVar(&o.Cases, "case", nil, "run only this case; may be repeated")
	f.IntVar(&o.Repetitions, "runs", o.Repetitions, "runs of each case")
	f.DurationVar(&o.Window, "window", o.Window, "how long explain watches, up to 10s")
	f.BoolVar(&o.Ranks, "ranks", false, "check only what explain finds, not its costs and remedies")
	f.BoolVar(&list, "list", false, "list the cases")
	a.completeFlag(cmd, "case", fixed(intrude.CaseNames()...))
	return cmd
}

func (a *app) intrudeCases() error {
	return a.rows([]string{"CASE", "EXPECTED", "WHAT"}, func(add func(...string) error) error {
		for _, c := range intrude.Cases() {
			if err := add(c.Name, string(c.Kinds[0]), c.Summary); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) intrudeMatrix(ctx context.Context, o intrude.Options) error {
	var all []intrude.Outcome
	err := intrude.Matrix(ctx, o, a.intrudeOutcomes(&all))
	if !a.json() && len(all) > 0 {
		fmt.Fprint(a.stdout, intrude.Markdown(all))
		if half, n := intrude.HalfOff(all); n > 0 {
			fmt.Fprintf(a.stdout, "\nThe median of %d costs is off by %.0f %%.\n", n, 100*half)
		}
	}
	return errors.Join(err, intrude.Passed(all))
}

// intrudeOutcomes returns a function that prints each outcome and appends it to all.
func (a *app) intrudeOutcomes(all *[]intrude.Outcome) func(intrude.Outcome) {
	enc := json.NewEncoder(a.stdout)
	return func(r intrude.Outcome) {
		*all = append(*all, r)
		if a.json() {
			_ = enc.Encode(r)
		}
		a.intrudeOutcome(&r)
	}
}

// intrudeOutcome prints what happened in a run.
func (a *app) intrudeOutcome(r *intrude.Outcome) {
	if r.Skipped != "" {
		fmt.Fprintln(a.stderr, "    skipped: "+r.Skipped)
		return
	}
	fmt.Fprintf(a.stderr, "    %.3f Mpps before, %.3f during; %.3f lost, %.3f said\n", r.Before/1e6, r.During/1e6,
		r.Cost()/1e6, r.Said/1e6)
	for i, cause := range r.Causes {
		fmt.Fprintf(a.stderr, "    %d. %s\n", i+1, cause)
	}
	if r.Why != "" {
		fmt.Fprintln(a.stderr, "    failed: "+r.Why)
	}
}
