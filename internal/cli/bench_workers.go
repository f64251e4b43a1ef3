// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench/report"
	"github.com/corelane/corelane/internal/bench/workerbench"
	"github.com/corelane/corelane/internal/bench/workerresult"
)

type benchWorkersFlags struct {
	workerbench.Options
	list, quick  bool
	trialSeconds float64
}

func newBenchWorkers(a *app) *cobra.Command {
	f := &benchWorkersFlags{Options: workerbench.Default()}
	cmd := verb("workers [NAME...]", "Measure the cost of each way to run workers on cores",
		"  corelane bench workers --list\n  corelane bench workers\n  corelane bench workers modes rings --reps 15",
		nil)
	cmd.Long = `Measure the ways to run workers on cores: run-to-completion against hybrid mode, sizes of the ring
between two workers, isolated receive, changes under traffic, and workers that share tables. Without arguments it
measures all of them; --list lists their names. Each takes less than two minutes and needs root and two CPUs. With two
CPUs the polling worker and the generator share one, in strict turns by real-time priority; where there is a third
CPU, give it to the polling worker with --poller-cpu.

The result is a JSON file and an HTML page. Ctrl-C keeps what has been measured.`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.list {
			return a.benchWorkersList()
		}
		f.Names, f.Trial = args, time.Duration(f.trialSeconds*float64(time.Second))
		if f.quick {
			f.Quick()
		}
		if cmd.Flags().Changed("generator-cpu") && !cmd.Flags().Changed("poller-cpu") {
			f.PollerCPU = f.Generator
		}
		return a.benchWorkers(cmd.Context(), f.Options)
	}
	s := cmd.Flags()
	s.BoolVar(&f.list, "list", false, "list what can be measured")
	s.BoolVar(&f.quick, "quick", false, "short and coarse, to see whether it works at all")
	s.IntVar(&f.Repetitions, "reps", f.Repetitions, "repetitions of everything")
	s.IntVar(&f.Changes, "changes", f.Changes, "changes of each kind")
	s.Float64Var(&f.trialSeconds, "trial-seconds", f.Trial.Seconds(), "length of a trial, up to 0.9")
	s.IntVar(&f.Frame, "frame", f.Frame, "bytes of a frame with Ethernet header, without FCS")
	s.IntVar(&f.Flows, "flows", f.Flows, "flows")
	s.IntVar(&f.WorkerCPU, "cpu", f.WorkerCPU, "CPU of the worker that finishes packets")
	s.IntVar(&f.PollerCPU, "poller-cpu", f.PollerCPU, "CPU of the polling worker; default: the generator's")
	s.IntVar(&f.Generator, "generator-cpu", f.Generator, "CPU of the traffic generator")
	s.StringVar(&f.Out, "out", f.Out, "directory of the result")
	_ = cmd.MarkFlagDirname("out")
	cmd.ValidArgsFunction = a.complete(func(context.Context, *app) ([]string, error) {
		return workerbench.Names(), nil
	})
	return cmd
}

func (a *app) benchWorkersList() error {
	if a.json() {
		return jsonLines(a.stdout, workerbench.List())
	}
	return a.rows([]string{"NAME", "WHAT"}, func(add func(...string) error) error {
		for _, m := range workerbench.List() {
			if err := add(m.Name, m.Summary); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) benchWorkers(ctx context.Context, o workerbench.Options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Bin, o.Command, o.Version, o.Commit = filepath.Dir(self), strings.Join(os.Args, " "), Version, Commit
	ctx, done := untilHangup(ctx)
	defer done()
	p := newBenchProgress(a.stderr)
	r, err := workerbench.Run(ctx, o, p)
	p.end()
	if r == nil {
		return err
	}
	base := filepath.Join(o.Out, "corelane-workers-"+r.Started.Format("20060102-150405"))
	page := func(w io.Writer) error { return report.WriteWorkers(w, r) }
	return errors.Join(err, saveBench(base, r, page), a.benchWorkersEnd(base, r))
}

func (a *app) benchWorkersEnd(base string, r *workerresult.Result) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	for _, t := range r.Tables() {
		fmt.Fprintln(a.stdout, t.Title)
		fmt.Fprintln(a.stdout)
		fmt.Fprint(a.stdout, t.Markdown())
		fmt.Fprintln(a.stdout)
	}
	_, err := fmt.Fprintf(a.stdout, "Written: %s.json and .html\n", base)
	return err
}
