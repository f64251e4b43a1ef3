// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench"
	results "github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

// Commit that this program was built from; the linker sets it.
var Commit string

// benchFlags are the flags of a run. Values that are not given come from the scenario or the effort.
type benchFlags struct {
	effort                       bench.Effort
	quick, noSearch, noLatency   bool
	flows, newFlows, rules       int
	routes, tenants              int
	workers, reps, windows, ring int
	generatorCPU                 int
	frame, cpus, out             string
	ipv6, underlay6, both        bool
	stateful, check              bool
	routers                      []string
	trialSeconds, resolution     float64
}

func (f *benchFlags) add(a *app, cmd *cobra.Command) {
	s := cmd.Flags()
	s.IntVar(&f.flows, "flows", 0, "flows of all tenants together; default: the scenario's")
	s.IntVar(&f.newFlows, "new-flows", 0, "flows that end each second, and are replaced by new ones")
	s.IntVar(&f.rules, "rules", 0,
		"security rules of each tenant port, the last of which allows everything; Corelane only")
	s.IntVar(&f.routes, "routes", 0, "routes that the flows are spread over; default: the scenario's")
	s.StringVar(&f.frame, "frame", "", "bytes of a frame with Ethernet header, without FCS: 64, 64,1500 or imix; "+
		"default: the scenario's")
	s.BoolVar(&f.ipv6, "ipv6", false, "tenants send IPv6")
	s.BoolVar(&f.underlay6, "underlay6", false, "tunnels over IPv6")
	s.IntVar(&f.tenants, "tenants", 0, "tenants, each with a port; default: the scenario's")
	s.IntVar(&f.workers, "workers", 0, "forwarding threads of each router; default: the scenario's")
	s.BoolVar(&f.stateful, "stateful", false, "track every flow, in routers that have connection tracking")
	s.BoolVar(&f.both, "both", false, "traffic in both directions at once")
	s.StringArrayVar(&f.routers, "router", f.routers, "router to measure, may be repeated: "+
		strings.Join(bench.RouterNames(), ", ")+"; default: "+defaultRouters(f))
	s.IntVar(&f.reps, "reps", 0, "repetitions of the saturated windows; routers take turns; default: 5")
	s.IntVar(&f.windows, "windows", 0, "windows of 0.2 s in a repetition; default: 10 (run), 8 (peers)")
	s.Float64Var(&f.trialSeconds, "trial-seconds", 0, "length of a trial of a search; default: 2 (run), 0.5 (peers)")
	s.Float64Var(&f.resolution, "resolution", 0,
		"resolution of searches, as a share of the rate; default: 0.01 (run), 0.02 (peers)")
	s.BoolVar(&f.noSearch, "no-search", false, "do not search for NDR, PDR and bursts")
	s.BoolVar(&f.noLatency, "no-latency", false, "do not measure latency")
	s.StringVar(&f.cpus, "cpu", "", "CPUs that the routers poll on, one per worker: 1 or 2-3; default: isolated "+
		"ones, else from 1")
	s.IntVar(&f.generatorCPU, "generator-cpu", -1, "CPU of the traffic generator; default: an isolated one, else 0")
	s.IntVar(&f.ring, "ring-size", 1024, "slots of each ring between generator and router, a power of two")
	s.StringVar(&f.out, "out", ".", "directory of the result")
	s.BoolVar(&f.quick, "quick", false, "short and coarse, to see whether it works at all")
	s.Lookup("generator-cpu").DefValue = "0" // not shown, because the text says it
	s.Lookup("router").DefValue = "[]"
	a.completeFlag(cmd, "router", fixed(bench.RouterNames()...))
	a.completeFlag(cmd, "frame", fixed("64", "128", "256", "512", "1024", "1280", "1518", "imix"))
	_ = cmd.MarkFlagDirname("out")
}

func defaultRouters(f *benchFlags) string {
	if len(f.routers) > 0 {
		return strings.Join(f.routers, ", ")
	}
	return "all that are installed"
}

// scenario returns s with the values of the flags that were given.
func (f *benchFlags) scenario(cmd *cobra.Command, s scenario.Scenario) (scenario.Scenario, error) {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	for _, n := range []struct {
		flag string
		from int
		to   *int
	}{{"flows", f.flows, &s.Flows}, {"new-flows", f.newFlows, &s.NewFlows}, {"rules", f.rules, &s.Rules},
		{"routes", f.routes, &s.Routes}, {"tenants", f.tenants, &s.Tenants}, {"workers", f.workers, &s.Workers}} {
		if given(n.flag) {
			*n.to = n.from
		}
	}
	s.IPv6, s.Underlay6, s.Both, s.Stateful = s.IPv6 || f.ipv6, s.Underlay6 || f.underlay6, s.Both ||
		f.both, s.Stateful || f.stateful
	if given("frame") {
		sizes, err := scenario.ParseSizes(f.frame)
		if err != nil {
			return s, &input.Error{Field: "--frame", Text: err.Error()}
		}
		s.Sizes = sizes
	}
	return s, nil
}

// options of the run.
func (f *benchFlags) options(cmd *cobra.Command, list []scenario.Scenario) (bench.Options, error) {
	o := bench.Options{Routers: f.routers, Search: !f.noSearch, Burst: !f.noSearch, Latency: !f.noLatency,
		GeneratorCPU: f.generatorCPU, RingSize: f.ring, Root: "/", Out: f.out, Version: Version, Commit: Commit,
		Decode: summary}
	if f.quick {
		f.effort = bench.Quick
	}
	o.Set(f.effort)
	for name, set := range map[string]func(){
		"reps":          func() { o.Repetitions = f.reps },
		"windows":       func() { o.Measure.Windows = f.windows },
		"trial-seconds": func() { o.Measure.TrialTime = time.Duration(f.trialSeconds * float64(time.Second)) },
		"resolution":    func() { o.Measure.Resolution = f.resolution },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
	if cmd.Flags().Changed("generator-cpu") && f.generatorCPU < 0 {
		return o, input.Errorf("--generator-cpu", "0 or more", "%d is not a CPU", f.generatorCPU)
	}
	var err error
	if cmd.Flags().Changed("cpu") {
		set, err := cpuset.Parse(f.cpus)
		if err != nil {
			return o, &input.Error{Field: "--cpu", Text: err.Error()}
		}
		if set.Empty() {
			return o, input.Errorf("--cpu", "a list, 0,5-7", "it is empty")
		}
		if cpuset.Repeats(f.cpus) {
			return o, input.Errorf("--cpu", "each CPU once", "'%s' repeats one", f.cpus)
		}
		o.RouterCPUs = set.IDs() // in ascending order
	}
	for _, s := range list {
		if s, err = f.scenario(cmd, s); err != nil {
			return o, err
		}
		o.Scenarios = append(o.Scenarios, s)
	}
	self, err := os.Executable()
	o.Bin = filepath.Dir(self)
	return o, err
}

// bench runs the benchmark and prints its result.
func (a *app) bench(cmd *cobra.Command, f *benchFlags, list []scenario.Scenario) error {
	o, err := f.options(cmd, list)
	if err != nil {
		return err
	}
	o.Command = strings.Join(os.Args, " ")
	decodeTunnels(&apiv1.Settings{ // to print a wrong frame
		MplsoudpPorts: []uint32{uint32(scenario.MPLSoUDP.UDPPort())},
		VxlanPorts:    []uint32{uint32(scenario.VXLAN.UDPPort())},
		GenevePorts:   []uint32{uint32(scenario.Geneve.UDPPort())},
	})
	ctx, done := untilHangup(cmd.Context())
	defer done()
	p := newBenchProgress(a.stderr)
	r, files, err := bench.Run(ctx, o, p)
	p.end()
	if r == nil {
		return err
	}
	err = errors.Join(err, a.benchEnd(r, files))
	if missed := bench.Missed(r); err == nil && f.check && len(missed) > 0 {
		return fmt.Errorf("below the bar:\n  %s", strings.Join(missed, "\n  "))
	}
	return err
}

// untilHangup returns a context that a hangup ends. A terminal or pipe that goes away must not kill the program before
// it has stopped everything that it started.
func untilHangup(ctx context.Context) (context.Context, func()) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(hangup, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-hangup:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(hangup)
		cancel(nil)
	}
}

func (a *app) benchEnd(r *results.Result, files bench.Files) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	var err error
	if len(r.Runs) > 0 {
		err = a.benchTable(r)
	}
	state := "Result"
	if !r.Complete {
		state = "Partial result"
	}
	_, e := fmt.Fprintf(a.stdout, "\n%s: %s\nReport: %s\n", state, files.JSON, files.HTML)
	return errors.Join(err, e)
}
