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
	cmd := noun("intrude", "Disturb a worker on purpose and measure the effect", newIntrudeRows(a),
		newIntrudeMatrix(a), newIntrudeTable(a), newIntrudeRandom(a), newIntrudeVhost(a))
	cmd.Long = `Disturb a worker of a corelaned that the command starts, under traffic of corelane-gen. The
disturbances are real threads, interrupts, kernel traffic and cgroups, which all end with the command. It needs root,
two CPUs and an otherwise idle machine, because rates of a busy machine say little.`
	return cmd
}

// newIntruderCmd is the command as which the lab starts itself; users do not type it.
func newIntruderCmd() *cobra.Command {
	cmd := verb("intruder KIND [ARGUMENT...]", "A disturbance of the intruder lab", "  corelane lab intruder hog", nil)
	cmd.Hidden = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return intrude.Intruder(cmd.Context(), args[0], args[1:])
	}
	return cmd
}

// intrudeFlags are the flags of all these commands.
func intrudeFlags(cmd *cobra.Command, o *intrude.Options) {
	f := cmd.Flags()
	f.IntVar(&o.WorkerCPU, "cpu", o.WorkerCPU, "CPU of the worker")
	f.IntVar(&o.GeneratorCPU, "generator-cpu", o.GeneratorCPU, "CPU of the traffic generator")
}

// intrudeRun uses the programs beside this one, and stops when the terminal hangs up.
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
	cmd := verb("rows", "Measure no, partial and full partitioning under load",
		"  corelane lab intrude rows\n  corelane lab intrude rows --reps 5",
		func(ctx context.Context, _ []string) error {
			return a.intrudeRun(ctx, &o, func(ctx context.Context) error { return a.intrudeRows(ctx, o) })
		})
	cmd.Long = `Measure the highest rate of a worker with a loss of at most 0.01 %: on an idle machine, with an
ordinary load of the host that may run anywhere, with the same load on the worker's CPU (threads that are driven off
isolated CPUs have to run somewhere), and with the same load kept off by the changes of corelane cores apply. The four
cases take turns, and are printed beside the figures of contrail-specs,
full_cpu_partitioning_support.md.

The load: ` + intrude.LoadText() + `.

The generator has real-time priority on its CPU, because it stands for the network, and sleeps after each poll, so
that the load has the rest of that CPU.

Exit code 1 when full partitioning keeps less than 0.97 of the idle machine's rate, or when the other cases are not
slower as expected.`
	intrudeFlags(cmd, &o)
	cmd.Flags().IntVar(&o.Repetitions, "reps", o.Repetitions, "repetitions, in turn")
	return cmd
}

func (a *app) intrudeRows(ctx context.Context, o intrude.Options) error {
	r, err := intrude.MeasurePartitioning(ctx, o)
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
