// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/input"
)

// simulatedMachine runs simulated routers and generators, of which only one router may have the CPU at a time.
type simulatedMachine struct {
	t       *testing.T
	alive   map[string]bool
	awake   string
	turns   []string // the routers in the order in which they were resumed
	next    string   // router whose generator is started next
	onTrial func(router string)
}

func newSimulatedMachine(t *testing.T) *simulatedMachine {
	return &simulatedMachine{t: t, alive: map[string]bool{}}
}

// simulated is a router, its instance and its generator.
type simulated struct {
	*simulatedMachine
	name      string
	rate      float64 // that it forwards
	missing   error   // not installed
	unable    error
	failing   error // at start
	wrong     uint64
	dies      int // in its n-th trial
	trials    int
	unchanged bool
	away      uint32 // round trip of a cache line in ns; 0: 100
}

func (r *simulated) Name() string                            { return r.name }
func (r *simulated) Version(context.Context) (string, error) { return r.name + " 1.0", r.missing }
func (r *simulated) Supports(*scenario.Scenario) error       { return r.unable }
func (r *simulated) Unchanged() bool                         { return r.unchanged }

func (r *simulated) Start(_ context.Context, env *router.Env, b *scenario.Setup) (router.Instance, error) {
	if r.failing != nil {
		return nil, r.failing
	}
	if r.awake != "" {
		r.t.Errorf("%s starts while %s is awake", r.name, r.awake)
	}
	if len(env.CPUs) != b.Workers || env.Dir == "" {
		r.t.Errorf("%+v", env)
	}
	r.alive[r.name], r.awake, r.next = true, r.name, r.name
	return r, nil
}

func (r *simulated) Devices() []*apiv1.GeneratorPort { return nil }
func (r *simulated) Netns() string                   { return "" }

func (r *simulated) Pause() error {
	if r.awake == r.name {
		r.awake = ""
	}
	return nil
}

func (r *simulated) Resume() error {
	if r.awake != "" {
		r.t.Errorf("%s is resumed while %s is awake", r.name, r.awake)
	}
	r.awake = r.name
	r.turns = append(r.turns, r.name)
	return nil
}

func (r *simulated) Counters(context.Context) (router.Counters, error) { return router.Counters{}, nil }

func (r *simulated) Stop() error {
	delete(r.alive, r.name)
	return r.Pause()
}

// generatorOf a simulated router.
type generatorOf struct{ *simulated }

func (g generatorOf) Configure(_ context.Context, p *apiv1.GeneratorProfile) error {
	if len(p.Streams) == 0 || len(p.Ports) == 0 {
		return errors.New("empty profile")
	}
	g.alive[g.name+" generator"] = true
	return nil
}

func (g generatorOf) WaitUp(context.Context, time.Duration) error { return nil }

func (g generatorOf) Close() error {
	delete(g.alive, g.name+" generator")
	return nil
}

func (g generatorOf) Run(ctx context.Context, spec *apiv1.GeneratorTrial,
	each func(*apiv1.GeneratorWindow)) (*apiv1.GeneratorWindow, error) {
	if g.awake != g.name {
		g.t.Errorf("trial of %s while '%s' is awake", g.name, g.awake)
	}
	if g.onTrial != nil {
		g.onTrial(g.name)
	}
	if g.trials++; g.trials == g.dies {
		return nil, errors.New("generator: the port went down\n  last line")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	windows, total := g.trial(spec)
	for _, w := range windows {
		if each != nil {
			each(w)
		}
	}
	return total, nil
}

func (g generatorOf) trial(spec *apiv1.GeneratorTrial) (windows []*apiv1.GeneratorWindow,
	total *apiv1.GeneratorWindow) {
	const hz = 1e9
	seconds := float64(spec.DurationMs) / 1e3
	due := spec.PacketsPerSecond * seconds
	if spec.Packets > 0 {
		due, seconds = float64(spec.Packets), float64(spec.Packets)/spec.PacketsPerSecond
	} else if spec.PacketsPerSecond == 0 {
		due = g.rate * seconds
	}
	sent := min(due, g.rate*seconds)
	total = &apiv1.GeneratorWindow{Total: true, Seconds: seconds, Due: uint64(due), Sent: uint64(sent),
		NoRoom: uint64(due - sent), Received: uint64(sent), TscHz: hz, WrongHeader: g.wrong,
		Latency: []*apiv1.GeneratorLatency{{LowNs: 5000, Frames: 10}}}
	if spec.WindowMs > 0 {
		for i := range spec.DurationMs / spec.WindowMs {
			s := float64(spec.WindowMs) / 1e3
			windows = append(windows, &apiv1.GeneratorWindow{StartSeconds: float64(i) * s, Seconds: s,
				Sent: uint64(g.rate * s), Received: uint64(g.rate * s), Cycles: uint64(s * hz),
				BusyCycles: uint64(s * hz / 2), RoundTripCycles: cmp.Or(g.away, 100)})
		}
	}
	return windows, total
}

// noteTaker is a Progress that keeps the notes.
type noteTaker struct {
	notes    []string
	expected time.Duration
	steps    time.Duration
}

func (p *noteTaker) Begin(expected time.Duration)          { p.expected = expected }
func (p *noteTaker) Step(_ string, expected time.Duration) { p.steps += expected }
func (p *noteTaker) Note(text string)                      { p.notes = append(p.notes, text) }

// bench runs simulated routers.
func (h *simulatedMachine) bench(ctx context.Context, o Options, routers ...*simulated) (*comparison, *noteTaker,
	error) {
	h.t.Helper()
	byName := map[string]*simulated{}
	var all []router.Router
	for _, r := range routers {
		r.simulatedMachine = h
		byName[r.name] = r
		all = append(all, r)
	}
	o.Root, o.Out = small(h.t), filepath.Join(h.t.TempDir(), "out")
	p := &noteTaker{}
	s := &comparison{Options: o, Progress: p, startGenerator: func(context.Context, generator.Place) (testbed.Generator,
		error) {
		return generatorOf{byName[h.next]}, nil
	}}
	s.Decode = func([]byte) string { return "a frame" }
	err := s.prepare(ctx, all)
	if err == nil {
		_, err = s.measure(ctx)
	}
	if len(h.alive) > 0 {
		h.t.Errorf("left running: %v", h.alive)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "corelane-bench-*")); len(left) > 0 {
		h.t.Errorf("left behind: %v", left)
	}
	return s, p, err
}

func quick(t *testing.T, names ...string) Options {
	o := options(t, names...)
	o.Measure.Windows, o.Repetitions = 3, 3
	return o
}

// saved is the result in the file.
func saved(t *testing.T, s *comparison) *result.Result {
	t.Helper()
	r, err := result.Load(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimSuffix(s.path, ".json") + ".html"); err != nil {
		t.Error(err)
	}
	return r
}

func TestComparisonMeasuresEverything(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	h := newSimulatedMachine(t)
	s, p, err := h.bench(t.Context(), quick(t, "vxlan-encap", "routed"), &simulated{name: "corelane", rate: 10e6},
		&simulated{name: "testpmd", rate: 20e6, unchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	r := saved(t, s)
	if !r.Complete || len(r.Runs) != 4 || r.Manifest.TSCHz != 1e9 || r.Manifest.CPU != "Test" || p.steps != p.expected {
		t.Errorf("complete %v, %d runs, %+v, %v of %v", r.Complete, len(r.Runs), r.Manifest, p.steps, p.expected)
	}
	for _, run := range r.Runs {
		if run.Error != "" || len(run.Windows) != 9 || run.NDR == nil || run.PDR == nil || len(run.Latency) != 4 ||
			run.Burst == nil || run.Checked == 0 || run.Bottleneck.Component != "router" {
			t.Errorf("%+v", run)
		}
		if run.Router == "corelane" && (run.NDR.Rate < 9.9e6 || run.NDR.Rate > 10.1e6) {
			t.Errorf("NDR %.0f", run.NDR.Rate)
		}
	}
	rounds := strings.Join(h.turns[:6], " ")
	if rounds != "corelane testpmd testpmd corelane corelane testpmd" {
		t.Errorf("rounds: %s", rounds)
	}
}

// A result says how far the CPUs were from each other, and warns when that limits all routers.
func TestComparisonNotesTheRoundTrip(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for away, want := range map[uint32]string{
		250: "a cache line took 250 ns from the generator's CPU to the router's and back (median; 250 to 250)",
		251: "warning: a cache line took 251 ns",
	} {
		s, p, err := newSimulatedMachine(t).bench(t.Context(), quick(t, "routed"),
			&simulated{name: "corelane", rate: 1e6, away: away})
		if err != nil {
			t.Fatal(err)
		}
		has := func(text string) bool { return strings.HasPrefix(text, want) }
		if !slices.ContainsFunc(saved(t, s).Notes, has) || !slices.ContainsFunc(p.notes, has) {
			t.Errorf("%q is not in %q", want, p.notes)
		}
	}
}

// The default run has rows that are IPv6, bridged, stateful, and with many routes; no two of them are the same.
func TestMainScenarios(t *testing.T) {
	list, err := Main()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	kinds := map[string]int{}
	for _, s := range list {
		kinds["IPv6"] += bit(s.IPv6)
		kinds["bridged"] += bit(s.Bridged)
		kinds["stateful"] += bit(s.Stateful)
		kinds["many routes"] += bit(s.Routes >= 100000)
		key := fmt.Sprint(s.Label(), s.Flows, s.Routes)
		if seen[key] {
			t.Errorf("%s twice", key)
		}
		seen[key] = true
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"IPv6", "bridged", "stateful", "many routes"} {
		if kinds[kind] == 0 {
			t.Errorf("no row is %s", kind)
		}
	}
}

func bit(b bool) int { return map[bool]int{true: 1}[b] }

func TestComparisonGoesOnWithoutPeers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, p, err := newSimulatedMachine(t).bench(t.Context(), quick(t, "vxlan-encap"),
		&simulated{name: "corelane", rate: 10e6}, &simulated{name: "absent", missing: errors.New("not installed")},
		&simulated{name: "unable", unable: errors.New("unable: no VXLAN")},
		&simulated{name: "failing", failing: errors.New("no start\n  log")},
		&simulated{name: "liar", rate: 1e6, wrong: 3},
		&simulated{name: "mortal", rate: 1e6, dies: 3}, &simulated{name: "early", rate: 1e6, dies: 2})
	if !errors.Is(err, errBrokeDown) {
		t.Fatal(err)
	}
	r := saved(t, s)
	if r.Complete {
		t.Error("complete, although one broke down in the middle")
	}
	failed := map[string]string{}
	for _, run := range r.Runs {
		failed[run.Router] = fmt.Sprintf("%d windows, %s", len(run.Windows), run.Error)
	}
	for name, want := range map[string]string{
		"corelane": "9 windows, ", "failing": "0 windows, no start; log",
		"liar":   "0 windows, 3 frames have a wrong header, the first one in : a frame",
		"mortal": "3 windows, ", "early": "0 windows, generator: the port went down; last line",
	} {
		if failed[name] != want {
			t.Errorf("%s: %q, want %q", name, failed[name], want)
		}
	}
	notes := strings.Join(append(slices.Clone(r.Notes), p.notes...), "\n")
	for _, want := range []string{"absent left out: not installed", "unable left out of vxlan-encap: no VXLAN",
		"mortal broke down in vxlan-encap: generator", "failing fails in vxlan-encap: no start; log"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in %s", want, notes)
		}
	}
}

func TestComparisonNeedsNamedRouters(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for want, peer := range map[string]*simulated{
		"--router peer: not installed":                      {name: "peer", missing: errors.New("not installed")},
		"--router peer: vxlan-encap: no start":              {name: "peer", failing: errors.New("no start")},
		"--router peer: vxlan-encap: 3 frames have a":       {name: "peer", rate: 1e6, wrong: 3},
		"--router: none can do vxlan-encap: peer: no VXLAN": {name: "peer", unable: errors.New("no VXLAN")},
		"--router: 'peer' is unknown; valid: other":         {name: "other"},
	} {
		o := quick(t, "vxlan-encap")
		o.Routers = []string{"peer"}
		if _, _, err := newSimulatedMachine(t).bench(t.Context(), o, peer); !input.Is(err) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestInterruptLeavesAPartialResult(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	stop := errors.New("interrupted")
	for trial := 1; trial < 40; trial++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		h := newSimulatedMachine(t)
		n := 0
		h.onTrial = func(string) {
			if n++; n == trial {
				cancel(stop)
			}
		}
		s, _, err := h.bench(ctx, quick(t, "vxlan-encap"), &simulated{name: "corelane", rate: 10e6},
			&simulated{name: "testpmd", rate: 20e6})
		if !errors.Is(err, stop) {
			t.Fatalf("trial %d: %v", trial, err)
		}
		r := saved(t, s)
		if r.Complete || len(r.Runs) > 2 {
			t.Errorf("trial %d: complete %v, %d runs", trial, r.Complete, len(r.Runs))
		}
		for _, run := range r.Runs {
			if run.Error != "" {
				t.Errorf("trial %d: %s", trial, run.Error)
			}
		}
	}
}
