// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/bench/report"
	results "github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
)

func newBenchCmd(a *app) *cobra.Command {
	return noun("bench", "Measure how fast routers are on this machine",
		newBenchList(a), newBenchRun(a), newBenchPeers(a), newBenchCompare(a), newBenchReport(a), newBenchFlowTable(a),
		newBenchNeighbor(a), newBenchWorkers(a), newBenchHostPath(a), newBenchExplain(a),
		newBenchTCP(a), newBenchRestart(a), newBenchFleet(a))
}

// scenarioNames completes the names of scenarios.
func scenarioNames(context.Context, *app) ([]string, error) {
	var names []string
	for _, s := range scenario.List() {
		names = append(names, s.Name)
	}
	return names, nil
}

// scenarioLine is a scenario in the list.
type scenarioLine struct {
	Scenario string `json:"scenario"`
	Flows    int    `json:"flows"`
	Routes   int    `json:"routes"`
	Sizes    []int  `json:"frame_sizes"`
	Summary  string `json:"summary"`
}

func newBenchList(a *app) *cobra.Command {
	return verb("list", "List the scenarios", "  corelane bench list", func(context.Context, []string) error {
		if a.json() {
			var lines []scenarioLine
			for _, s := range scenario.List() {
				lines = append(lines, scenarioLine{s.Name, s.Flows, s.Routes, s.Sizes, s.Summary})
			}
			return jsonLines(a.stdout, lines)
		}
		return a.rows([]string{"NAME", "FLOWS", "ROUTES", "BYTES", "WHAT"}, func(add func(...string) error) error {
			for _, s := range scenario.List() {
				if err := add(s.Name, strconv.Itoa(s.Flows), strconv.Itoa(s.Routes), results.Sizes(s.Sizes),
					s.Summary); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func newBenchRun(a *app) *cobra.Command {
	f := &benchFlags{routers: []string{"corelane"}, effort: bench.Thorough}
	cmd := verb("run SCENARIO", "Measure everything in one scenario",
		"  corelane bench run vxlan-encap\n  corelane bench run vxlan-decap --router corelane --router testpmd "+
			"--frame imix --flows 100000", nil)
	cmd.Long = `Measure a router in one scenario: Corelane, or those that --router names. First it is checked that
the router does what the scenario asks for. Then: the saturated rate in many short windows, throughput without loss
(NDR) and with a loss of 0.01 % (PDR), latency at 10, 50 and 90 % of NDR and at saturation, the longest burst that
passes, and what each node of the router's graph costs. It takes some minutes and needs root.

The result is a JSON file and an HTML page. Ctrl-C keeps what has been measured.

` + benchExit
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := findScenario(args[0])
		if err != nil {
			return err
		}
		return a.bench(cmd, f, []scenario.Scenario{s})
	}
	f.add(a, cmd)
	cmd.ValidArgsFunction = a.complete(scenarioNames)
	return cmd
}

const benchExit = "Exit code: 0 done, 1 a router failed during the run, 2 wrong input, or a named router does not " +
	"work, " +
	"130 interrupted."

func newBenchPeers(a *app) *cobra.Command {
	f := &benchFlags{effort: bench.Shared}
	cmd := verb("peers [SCENARIO...]", "Compare with other routers",
		"  corelane bench peers\n  corelane bench peers vxlan-encap routed --router corelane --router ovs", nil)
	cmd.Long = `Measure Corelane and all peers that are installed in the same scenarios, with the same generator on
the same CPUs. Without arguments these are the main scenarios. All routers of a scenario are up at once and take turns
window by window, because the speed of a machine drifts: only adjacent windows are compared. dpdk-testpmd, which only
forwards frames, is the ceiling of the machine.

A peer that is not installed or does not work is left out with a note, but a peer that --router names has to work.

With --check, a row of Corelane fails whose share of the ceiling is below the bar that is set for it, as do all rows if
a cache line takes more than 250 ns between the CPUs, because shares are not comparable then.

` + strings.Replace(benchExit, "1 a router", "1 a row is below its bar (--check), or a router", 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := bench.Main()
		if len(args) > 0 {
			list = nil
		}
		for _, name := range args {
			var s scenario.Scenario
			if s, err = findScenario(name); err != nil {
				break
			}
			list = append(list, s)
		}
		if err != nil {
			return err
		}
		return a.bench(cmd, f, list)
	}
	f.add(a, cmd)
	cmd.Flags().BoolVar(&f.check, "check", false, "exit with 1 if a row is below its bar")
	cmd.ValidArgsFunction = a.complete(scenarioNames)
	return cmd
}

func findScenario(name string) (scenario.Scenario, error) {
	s, err := scenario.Find(name)
	if err != nil {
		return s, &input.Error{Field: "scenario", Text: strings.TrimPrefix(err.Error(), "scenario ")}
	}
	return s, nil
}

func newBenchCompare(a *app) *cobra.Command {
	cmd := verb("compare A B", "Compare two results, and say what is noise",
		"  corelane bench compare before.json after.json", func(_ context.Context, args []string) error {
			var pair [2]*results.Result
			for i, path := range args {
				r, err := loadResult(path)
				if err != nil {
					return err
				}
				pair[i] = r
			}
			c, err := results.Compare(pair[0], pair[1])
			if err != nil {
				return &input.Error{Field: "results", Text: err.Error()}
			}
			if a.json() {
				return json.NewEncoder(a.stdout).Encode(c)
			}
			return c.Print(a.stdout)
		})
	cmd.Long = `Compare two results, B with A: for each scenario and router that both hold, the ratio of the
saturated rates with a confidence interval, and whether it is a difference or noise.`
	cmd.ValidArgsFunction = resultFiles
	return cmd
}

func resultFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

func loadResult(path string) (*results.Result, error) {
	r, err := results.Load(path)
	if err != nil {
		return nil, &input.Error{Field: "result", Text: err.Error()}
	}
	return r, nil
}

func newBenchReport(a *app) *cobra.Command {
	cmd := verb("report FILE", "Draw a result as an HTML page",
		"  corelane bench report corelane-bench-20260101-120000.json > report.html",
		func(_ context.Context, args []string) error {
			r, err := loadResult(args[0])
			if err != nil {
				return err
			}
			return report.Write(a.stdout, r)
		})
	cmd.Long = `Write a result as an HTML page to standard output. The page needs no other file and no network. A run
of the benchmark writes one beside its result; this command is for results of other machines.`
	cmd.ValidArgsFunction = resultFiles
	return cmd
}

// benchTable is the summary at the end of a run.
func (a *app) benchTable(r *results.Result) error {
	head := []string{"SCENARIO", "FLOWS", "ROUTES", "ROUTER", "MPPS", "QUIET", "OF CEILING", "(SPREAD)", "NDR", "PDR",
		"P50 US", "P99 US", "LIMITED BY"}
	err := a.rows(head, func(add func(...string) error) error {
		for i := range r.Runs {
			if err := add(benchRow(r, &r.Runs[i])...); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Fprintln(a.stdout, `
Mpps: median of the windows; quiet: their 90th percentile. NDR: without loss, PDR: with 0.01 %. Latency: at 50 % of
NDR.`)
	for i := range r.Runs {
		run := &r.Runs[i]
		switch {
		case run.Error != "":
			fmt.Fprintf(a.stdout, "%s: failed: %s\n", run.Key(), run.Error)
		case run.Bottleneck.Why != "":
			fmt.Fprintf(a.stdout, "%s: limited by the %s: %s\n", run.Key(), run.Bottleneck.Component,
				run.Bottleneck.Why)
		}
	}
	return err
}

func benchRow(r *results.Result, run *results.Run) []string {
	s := r.Summary(run)
	ratio, spread := "-", "-"
	if s.Ratio > 0 {
		ratio, spread = fmt.Sprintf("%.2f", s.Ratio), fmt.Sprintf("(%.2f to %.2f, %s)", s.Low, s.High, s.Windows)
	}
	p50, p99 := "-", "-"
	for _, l := range run.Latency {
		if strings.HasPrefix(l.Load, "50% ") {
			p50, p99 = results.Digits(l.P50), results.Digits(l.P99)
		}
	}
	limit := run.Bottleneck.Component
	if run.Error != "" {
		limit = "failed"
	}
	return []string{run.Scenario, strconv.Itoa(run.Flows), strconv.Itoa(run.Routes), run.Router,
		results.Digits(s.Median / 1e6), results.Digits(s.Quiet / 1e6), ratio, spread, searchRate(run.NDR),
		searchRate(run.PDR), p50, p99, limit}
}

// searchRate is the rate of a search, marked with * where the generator was the limit.
func searchRate(s *results.Search) string {
	switch {
	case s == nil, s.Rate == 0 && s.Limited != "":
		return "-"
	case s.Rate == 0:
		return "none"
	case s.Limited != "":
		return results.Digits(s.Rate/1e6) + "*"
	}
	return results.Digits(s.Rate / 1e6)
}
