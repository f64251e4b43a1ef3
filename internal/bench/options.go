// SPDX-License-Identifier: Apache-2.0

// Package bench measures routers side by side: it starts them and their traffic generators, interleaves their
// measurements, and leaves a result behind at every step.
package bench

import (
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
)

// Options of one run of the benchmark.
type Options struct {
	Scenarios    []scenario.Scenario
	Routers      []string // names; empty: all that are installed
	Repetitions  int      // of the saturated windows, interleaved
	Measure      measure.Options
	Search       bool // NDR and PDR
	Latency      bool
	Burst        bool
	RouterCPUs   []int // empty: chosen
	GeneratorCPU int   // < 0: chosen
	RingSize     int
	Root         string // where /proc and /sys are
	Bin          string // folder of Corelane's programs
	Out          string // folder of the result
	Command      string // the command line, for the result
	Version      string // of Corelane
	Commit       string
	Decode       func(frame []byte) string // describes a frame in one line
}

// Limits of options. The generator's clock can measure latencies of up to 10 s.
const (
	maxRepetitions = 1000
	maxWindows     = 1000
	minTrial       = 50 * time.Millisecond
	maxTrial       = 60 * time.Second
	minResolution  = 0.001
	maxResolution  = 0.5
)

// validate checks the options that do not depend on the machine.
func (o *Options) validate() error {
	if len(o.Scenarios) == 0 {
		return input.Errorf("scenario", "see corelane bench list", "none given")
	}
	for _, check := range []struct {
		flag  string
		ok    bool
		value any
		valid string
	}{
		{"--reps", o.Repetitions >= 1 && o.Repetitions <= maxRepetitions, o.Repetitions,
			fmt.Sprintf("1 to %d", maxRepetitions)},
		{"--windows", o.Measure.Windows >= 1 && o.Measure.Windows <= maxWindows, o.Measure.Windows,
			fmt.Sprintf("1 to %d", maxWindows)},
		{"--trial-seconds", o.Measure.TrialTime >= minTrial && o.Measure.TrialTime <= maxTrial,
			o.Measure.TrialTime.Seconds(), fmt.Sprintf("%g to %g", minTrial.Seconds(), maxTrial.Seconds())},
		{"--resolution", o.Measure.Resolution >= minResolution && o.Measure.Resolution <= maxResolution,
			o.Measure.Resolution, fmt.Sprintf("%g to %g, a share of the rate", minResolution, maxResolution)},
	} {
		if !check.ok {
			return input.Errorf(check.flag, check.valid, "%v is out of range", check.value)
		}
	}
	for _, s := range o.Scenarios {
		if _, err := scenario.Build(s, "/", o.RingSize); err != nil {
			return &input.Error{Field: s.Name, Text: err.Error()}
		}
	}
	return nil
}

// workers is the most that any scenario needs.
func (o *Options) workers() int {
	most := 1
	for _, s := range o.Scenarios {
		most = max(most, s.Workers)
	}
	return most
}

// settings are the options that the figures depend on, for the manifest.
func (o *Options) settings() map[string]string {
	m := o.Measure
	return map[string]string{
		"repetitions":     fmt.Sprint(o.Repetitions),
		"windows":         fmt.Sprint(m.Windows),
		"window_seconds":  fmt.Sprint(m.Window.Seconds()),
		"trial_seconds":   fmt.Sprint(m.TrialTime.Seconds()),
		"resolution":      fmt.Sprint(m.Resolution),
		"loss_repeats":    fmt.Sprint(m.Repeats),
		"trials_at_most":  fmt.Sprint(m.Budget),
		"longest_burst":   fmt.Sprint(m.BurstLimit),
		"ring_size":       fmt.Sprint(o.RingSize),
		"lossless_search": fmt.Sprint(o.Search),
	}
}
