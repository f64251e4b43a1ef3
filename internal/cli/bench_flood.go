// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/input"
)

type floodFlags struct {
	rate, floodRate, seconds float64
	limit, newRate, reps     int
	cpus                     string
	generatorCPU             int
}

func newBenchFlood(a *app) *cobra.Command {
	f := &floodFlags{}
	names, what := bench.FloodKinds()
	cmd := verb("flood [KIND...]", "Measure what one tenant's flood does to another tenant",
		"  corelane bench flood\n  corelane bench flood new syn --rate 1000000 --flood-rate 5000000", nil)
	cmd.Long = `Measure how much of its rate a tenant with known flows keeps while another tenant of the same worker
floods. Trials without and with the flood take turns. The flooding tenant's port has a limit of flows and of new flows
per second. Each refused packet must be counted with its reason; NOT COUNTED are those that are not. Corelane only,
MPLSoUDP, 64 bytes; it needs root.

Kinds (default: all of them):
`
	for i := range names {
		cmd.Long += fmt.Sprintf("  %-10s %s\n", names[i], what[i])
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = a.complete(fixed(names...))
	cmd.RunE = func(cmd *cobra.Command, kinds []string) error { return a.benchFlood(cmd, f, kinds) }
	s := cmd.Flags()
	s.Float64Var(&f.rate, "rate", 1_000_000,
		"frames per second of the measured tenant, fewer than the worker can handle")
	s.Float64Var(&f.floodRate, "flood-rate", 4_000_000, "frames per second of the flooding tenant")
	s.IntVar(&f.limit, "flow-limit", 100_000, "most flows of the flooding tenant, 0 = no limit")
	s.IntVar(&f.newRate, "flow-rate", 50_000,
		"most new flows per second of the flooding tenant, 0 = no limit; the kind quota has no limit")
	s.IntVar(&f.reps, "reps", 5, "trials without and with the flood")
	s.Float64Var(&f.seconds, "trial-seconds", 2, "length of a trial")
	s.StringVar(&f.cpus, "cpu", "", "CPU that the router polls on; default: an isolated one, else 1")
	s.IntVar(&f.generatorCPU, "generator-cpu", -1, "CPU of the traffic generator; default: an isolated one, else 0")
	s.Lookup("generator-cpu").DefValue = "0"
	return cmd
}

func (f *floodFlags) options(cmd *cobra.Command, kinds []string) (o bench.FloodOptions, err error) {
	o = bench.FloodOptions{Kinds: kinds, Rate: f.rate, FloodRate: f.floodRate, FlowLimit: f.limit, FlowRate: f.newRate}
	o.Options = bench.Options{GeneratorCPU: f.generatorCPU, RingSize: 1024, Root: "/", Version: Version, Commit: Commit,
		Decode: summary}
	o.Set(bench.Thorough)
	o.Repetitions, o.Measure.TrialTime = f.reps, time.Duration(f.seconds*float64(time.Second))
	if cmd.Flags().Changed("cpu") {
		if o.RouterCPUs, err = bench.ParseCPUs(f.cpus); err != nil {
			return o, &input.Error{Field: "--cpu", Text: err.Error()}
		}
	}
	self, err := os.Executable()
	o.Bin = filepath.Dir(self)
	return o, err
}

func (a *app) benchFlood(cmd *cobra.Command, f *floodFlags, kinds []string) error {
	o, err := f.options(cmd, kinds)
	if err != nil {
		return err
	}
	ctx, done := untilHangup(cmd.Context())
	defer done()
	p := newBenchProgress(a.stderr)
	list, err := bench.Flood(ctx, o, p)
	p.end()
	if err != nil {
		return err
	}
	return a.floodTable(ctx, list)
}

func (a *app) floodTable(_ context.Context, list []bench.FloodResult) error {
	if a.json() {
		enc := json.NewEncoder(a.stdout)
		for _, r := range list {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	mpps := func(v float64) string { return fmt.Sprintf("%.3f", v/1e6) }
	return a.rows([]string{"FLOOD", "BASELINE MPPS", "FLOODED", "RETAINED", "FLOOD MPPS", "PASSED", "NOT COUNTED",
		"CPU LOST", "REFUSED BY"}, func(add func(...string) error) error {
		for _, r := range list {
			var why []string
			for _, reason := range r.Reasons() {
				why = append(why, fmt.Sprintf("%s %d", reason, r.Drops[reason]))
			}
			if err := add(r.Kind, mpps(r.Baseline), mpps(r.Flooded), fmt.Sprintf("%.3f", r.Retained), mpps(r.Flood),
				mpps(r.Passed), fmt.Sprint(r.NotCounted), fmt.Sprintf("%.0f %%", 100*r.Waited),
				strings.Join(why, ", ")); err != nil {
				return err
			}
		}
		return nil
	})
}
