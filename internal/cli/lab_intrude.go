// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/lab/intrude"
)

func newLabIntrude(a *app) *cobra.Command {
	cmd := noun("intrude", "Disturb a worker on purpose and see what becomes of it", newIntrudeRows(a), newIntrudeMatrix(a), newIntrudeVhost(a))
	cmd.Long = `Disturb a worker of a corelaned of its own, under traffic of corelane-gen: real threads, interrupts, kernel traffic and cgroups, which all
end with the command. It needs root and two CPUs, and nothing else that runs there: rates of a busy machine say little.`
	return cmd
}

// newIntruderCmd is what the lab starts itself as; nobody types it.
func newIntruderCmd() *cobra.Command {
	cmd := verb("intruder KIND [ARGUMENT...]", "A disturbance of the intruder lab", "  corelane lab intruder hog", nil)
	cmd.Hidden = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return intrude.Intruder(cmd.Context(), args[0], args[1:])
	}
	return cmd
}

// intrudeFlags are those that all have.
func intrudeFlags(cmd *cobra.Command, o *intrude.Options) {
	f := cmd.Flags()
	f.IntVar(&o.WorkerCPU, "cpu", o.WorkerCPU, "CPU of the worker")
	f.IntVar(&o.GeneratorCPU, "generator-cpu", o.GeneratorCPU, "CPU of the traffic generator")
}

// intrudeRun has the programs beside this one and ends with the terminal.
func (a *app) intrudeRun(ctx context.Context, o *intrude.Options, run func(context.Context) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Bin, o.Say = filepath.Dir(self), a.sayer()
	ctx, done := untilHangup(ctx)
	defer done()
	return run(ctx)
}

func newIntrudeRows(a *app) *cobra.Command {
	o := intrude.Default()
	cmd := verb("rows", "Measure no, partial and full partitioning under load", "  corelane lab intrude rows\n  corelane lab intrude rows --reps 5",
		func(ctx context.Context, _ []string) error {
			return a.intrudeRun(ctx, &o, func(ctx context.Context) error { return a.intrudeRows(ctx, o) })
		})
	cmd.Long = `Measure the highest rate of a worker with a loss of at most 0.01 %: on an idle machine, with an ordinary load on the host that may run anywhere,
with the same load on the worker's CPU (what was driven off isolated CPUs has to run somewhere), and with the same load kept off by the changes
that corelane cores apply makes. In turn, as often as asked for, and printed beside what a field report measured.

The load: ` + intrude.LoadText() + `.

The generator has real-time priority on its CPU, for it stands for the network, and rests after each poll: the load has the rest of that CPU.

Exit code 1 when full partitioning keeps less than 0.97 of the idle machine's rate, or the others do not lie below as they should.`
	intrudeFlags(cmd, &o)
	cmd.Flags().IntVar(&o.Repetitions, "reps", o.Repetitions, "repetitions, in turn")
	return cmd
}

func (a *app) intrudeRows(ctx context.Context, o intrude.Options) error {
	r, err := intrude.MeasureRows(ctx, o)
	if r == nil {
		return err
	}
	if a.json() {
		err = errors.Join(err, json.NewEncoder(a.stdout).Encode(r))
	} else {
		fmt.Fprint(a.stdout, r.Markdown())
	}
	if err != nil {
		return err
	}
	return r.Reproduced()
}
