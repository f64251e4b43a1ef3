// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/bench/explaincost"
	"github.com/corelane/corelane/internal/input"
)

func newBenchExplain(a *app) *cobra.Command {
	o := explaincost.Options{Worker: 1, Repetitions: 15, Trial: time.Second}
	cmd := verb("explain", "Measure what 'corelane explain' costs the router while it watches",
		"  corelane bench explain\n  corelane bench explain --reps 31 -o json",
		func(ctx context.Context, _ []string) error { return a.benchExplain(ctx, o) })
	cmd.Long = `Measure throughput at saturation, and the worker's cycles per packet, in pairs of trials: one
without and one while 'corelane explain' watches. The output is the median of the pairs and their middle half.
Without explain nothing is in the kernel, so there is no cost. Corelane only; it needs root and two CPUs.`
	s := cmd.Flags()
	s.IntVar(&o.Repetitions, "reps", o.Repetitions, "pairs of trials")
	s.DurationVar(&o.Trial, "trial", o.Trial, "length of a trial")
	s.IntVar(&o.Worker, "cpu", o.Worker, "CPU of the worker")
	s.IntVar(&o.Other, "generator-cpu", o.Other, "CPU of the traffic generator and of everything else")
	return cmd
}

func (a *app) benchExplain(ctx context.Context, o explaincost.Options) error {
	if o.Repetitions < 1 || o.Trial < 100*time.Millisecond || o.Worker == o.Other {
		return input.Errorf("--reps, --trial, --cpu", "1 or more; 100ms or more; another CPU than --generator-cpu",
			"%d pairs of %v on CPU %d cannot be measured", o.Repetitions, o.Trial, o.Worker)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	free, err := bench.FreeHugepages("/")
	if err != nil {
		return err
	}
	o.Bin, o.Memory = filepath.Dir(self), min(free, 512)
	ctx, done := untilHangup(ctx)
	defer done()
	r, err := explaincost.Run(ctx, o, func(text string) { fmt.Fprintln(a.stderr, text) })
	if err != nil {
		return err
	}
	return a.explainCostTable(r)
}

func (a *app) explainCostTable(r *explaincost.Result) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	if !r.Tracing {
		fmt.Fprintln(a.stderr, "the kernel's events could not be watched: this is the cost of explain without them")
	}
	return a.rows([]string{"FIGURE", "MEDIAN %", "LOW %", "HIGH %", "PAIRS"}, func(add func(...string) error) error {
		for _, f := range []struct {
			name string
			of   func(explaincost.Sample) float64
		}{{"throughput", func(s explaincost.Sample) float64 {
			return s.Rate
		}}, {"cycles per packet", func(s explaincost.Sample) float64 { return s.Cycles }}} {
			c := r.Of(f.of)
			if err := add(f.name, fmt.Sprintf("%+.2f", c.Median), fmt.Sprintf("%+.2f", c.Low),
				fmt.Sprintf("%+.2f", c.High), fmt.Sprint(len(r.Pairs))); err != nil {
				return err
			}
		}
		return nil
	})
}
