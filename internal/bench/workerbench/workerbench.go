// SPDX-License-Identifier: Apache-2.0

// Package workerbench measures what the ways to run on cores cost: modes, sizes of rings, isolated receive, changes
// under traffic, and workers that share tables. It needs no more than two CPUs.
package workerbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/bench/manifest"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/workerresult"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/procfs"
)

// Measure is one kind of measurement.
type Measure struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	run     func(context.Context, *workersRun) error
	steps   func(*Options) int
}

// List returns all measures.
func List() []Measure {
	return []Measure{
		{"modes", "latency and throughput: run-to-completion against hybrid with a ring between two workers",
			measureModes, func(o *Options) int { return o.Repetitions * len(workerresult.Modes) }},
		{"rings", "sizes of the ring between two workers: latency, throughput, and bursts that pass while a worker " +
			"is late", measureRings,
			func(o *Options) int { return (o.ringRepetitions() + 1) * len(o.Sizes) }},
		{"isolated", "bursts that overflow a device's ring while a worker is late, without and with an isolated-rx " +
			"worker", measureIsolated,
			func(o *Options) int { return o.Repetitions * len(o.Bursts) * 2 }},
		{"changes", "modes, queues and workers that change under traffic: packets lost and reordered", measureChanges,
			func(*Options) int { return len(changes) + 1 }},
		{"scaling", "cycles per packet of workers that share all tables", measureScaling, func(*Options) int {
			return 1
		}},
	}
}

// Names returns the names of all measures.
func Names() []string {
	var names []string
	for _, m := range List() {
		names = append(names, m.Name)
	}
	return names
}

// Options of one run.
type Options struct {
	Names                           []string // none: all
	Repetitions                     int
	Changes                         int           // of each kind
	Trial                           time.Duration // at saturation and at half load
	Sizes                           []int         // of the ring between workers
	Bursts                          []int         // frames, for isolated receive
	Frame, Flows                    int
	WorkerCPU, PollerCPU, Generator int // PollerCPU: may be the generator's
	Root, Bin, Out                  string
	Command, Version, Commit        string
}

// Default options: each measure takes less than two minutes.
func Default() Options {
	return Options{Repetitions: 9, Changes: 100, Trial: 500 * time.Millisecond,
		Sizes: []int{256, 512, 1024, 2048, 4096, 8192}, Bursts: []int{256, 512, 1024, 2048, 4096}, Frame: 64,
		Flows: 1000, WorkerCPU: 1, PollerCPU: 0, Generator: 0, Root: "/", Out: "."}
}

// Quick shortens everything, to show that it works.
func (o *Options) Quick() {
	o.Repetitions, o.Changes, o.Trial = 2, 4, 200*time.Millisecond
	o.Sizes, o.Bursts = []int{256, 1024}, []int{256, 1024}
}

func (o *Options) ringRepetitions() int { return max(1, o.Repetitions/3) }

// shares says whether the poller and the generator share a CPU.
func (o *Options) shares() bool { return o.PollerCPU == o.Generator }

// maxTrial is shorter than the time per second that the kernel leaves to real-time threads.
const maxTrial = 900 * time.Millisecond

// Validate checks the options.
func (o *Options) Validate() error {
	for _, c := range []struct {
		field string
		ok    bool
		value any
		valid string
	}{
		{"--reps", o.Repetitions >= 1 && o.Repetitions <= 100, o.Repetitions, "1 to 100"},
		{"--changes", o.Changes >= 1 && o.Changes <= 10000, o.Changes, "1 to 10000"},
		{"--trial-seconds", o.Trial >= 50*time.Millisecond && o.Trial <= maxTrial, o.Trial.Seconds(), "0.05 to 0.9"},
		{"--cpu", o.WorkerCPU != o.Generator, o.WorkerCPU, "another CPU than the generator's"},
		{"--poller-cpu", o.PollerCPU != o.WorkerCPU, o.PollerCPU, "another CPU than --cpu, such as the generator's"},
	} {
		if !c.ok {
			return &input.Error{Field: c.field, Text: fmt.Sprintf("%v is not possible", c.value), Valid: c.valid}
		}
	}
	for _, name := range o.Names {
		if !slices.Contains(Names(), name) {
			return &input.Error{Field: "name", Text: fmt.Sprintf("'%s' is unknown", name),
				Valid: strings.Join(Names(), ", ")}
		}
	}
	s := o.scenario(1)
	if _, err := scenario.Build(s, "/", deviceRing); err != nil {
		return &input.Error{Field: s.Name, Text: err.Error()}
	}
	return nil
}

// scenario is the one whose packets are used: from a tenant into VXLAN.
func (o *Options) scenario(queues int) scenario.Scenario {
	s, _ := scenario.Find("vxlan-encap")
	s.Sizes, s.Flows, s.Workers = []int{o.Frame}, o.Flows, queues
	return s
}

// workersRun is a run in progress.
type workersRun struct {
	Options
	bench.Progress
	control int // CPU of everything that does not poll
	memory  int // MB of hugepages
	result  workerresult.Result
}

const stepTime = 2 * time.Second // roughly

// Run takes the chosen measures. On an error it also returns what was measured before.
func Run(ctx context.Context, o Options, p bench.Progress) (*workerresult.Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, &input.Error{Field: "user", Text: "the benchmark needs CPUs, hugepages and real-time threads",
			Valid: "root; try sudo"}
	}
	s := &workersRun{Options: o, Progress: p}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	steps := 0
	for _, m := range s.chosen() {
		steps += m.steps(&s.Options)
	}
	s.Begin(time.Duration(steps) * stepTime)
	for _, m := range s.chosen() {
		if err := m.run(ctx, s); err != nil {
			return &s.result, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	s.result.Complete = true
	return &s.result, nil
}

func (o *Options) chosen() []Measure {
	return slices.DeleteFunc(List(), func(m Measure) bool {
		return len(o.Names) > 0 && !slices.Contains(o.Names, m.Name)
	})
}

func (s *workersRun) prepare() (err error) {
	for flag, cpu := range map[string]int{"--cpu": s.WorkerCPU, "--poller-cpu": s.PollerCPU,
		"--generator-cpu": s.Generator} {
		if _, err := os.Stat(filepath.Join(s.Root, fmt.Sprintf("sys/devices/system/cpu/cpu%d", cpu))); err != nil ||
			cpu < 0 {
			return &input.Error{Field: flag, Text: fmt.Sprintf("CPU %d does not exist", cpu)}
		}
	}
	if s.control, err = s.controlCPU(); err != nil {
		return err
	}
	free, err := bench.FreeHugepages(s.Root)
	if err != nil {
		return err
	}
	if s.memory = min(free*3/4, enoughMemory); s.memory < leastMemory {
		s.memory = 0
		s.note("no hugepages are free: the router runs without them and is slower. " +
			"To have some: tools/with-hugepages.sh 1024 -- corelane bench workers ...")
	}
	if s.shares() {
		s.note("the poller shares CPU %d with the generator: they take turns by real-time scheduling", s.Generator)
	}
	s.result.Started, s.result.Command = time.Now(), s.Command
	s.result.Manifest, err = manifest.Read(s.Root, result.Manifest{Commit: s.Commit, Corelane: s.Version,
		RouterCPUs: []int{s.WorkerCPU, s.PollerCPU}, GeneratorCPU: s.Generator, Settings: s.settings()})
	if err != nil {
		return err
	}
	return bench.KeepOn(s.control)
}

// Hugepages of the router in MB.
const (
	enoughMemory = 1024
	leastMemory  = 128
)

// controlCPU is a CPU without a poller, or else the finisher's: threads would have to wait beside a real-time thread.
func (s *workersRun) controlCPU() (int, error) {
	online, err := procfs.Root(s.Root).CPUs("online")
	for _, cpu := range online.IDs() {
		if cpu != s.WorkerCPU && cpu != s.PollerCPU && cpu != s.Generator {
			return cpu, err
		}
	}
	return s.WorkerCPU, err
}

func (s *workersRun) settings() map[string]string {
	return map[string]string{"repetitions": fmt.Sprint(s.Repetitions), "trial_seconds": fmt.Sprint(s.Trial.Seconds()),
		"frame": fmt.Sprint(s.Frame), "flows": fmt.Sprint(s.Flows),
		"delay_us": fmt.Sprint(workerresult.Late.Microseconds()), "device_ring": fmt.Sprint(deviceRing),
		"changes": fmt.Sprint(s.Changes)}
}

func (s *workersRun) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(s.result.Notes, text) {
		s.result.Notes = append(s.result.Notes, text)
		s.Note(text)
	}
}
