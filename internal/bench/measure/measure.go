// SPDX-License-Identifier: Apache-2.0

// Package measure decides which trials to run and what follows from them. Of generator and router it knows only the
// outcome of a trial.
package measure

import (
	"context"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/router"
)

// Trialer runs one trial through a router that is ready for it.
type Trialer interface {
	Trial(ctx context.Context, spec *apiv1.GeneratorTrial) (*Outcome, error)
}

// Outcome is what the generator and the router report of a trial.
type Outcome struct {
	Windows       []*apiv1.GeneratorWindow
	Total         *apiv1.GeneratorWindow
	Before, After router.Counters
	Waited        map[int]time.Duration // by CPU: how long other work kept its poller waiting
}

// Options of all measurements.
type Options struct {
	Window     time.Duration // at saturation
	Windows    int           // of a repetition
	Pause      time.Duration // between windows, for the probe of the round trip
	TrialTime  time.Duration // of a search, and of a latency
	Resolution float64       // of a search, relative to its rate
	Repeats    int           // of a lossy trial, before its loss counts
	Budget     int           // trials of one search
	BurstLimit uint64        // longest burst that is tried, frames
}

// Default returns options with which a run takes minutes.
func Default() Options {
	return Options{Window: 200 * time.Millisecond, Windows: 10, Pause: 5 * time.Millisecond, TrialTime: 2 * time.Second,
		Resolution: 0.01, Repeats: 2, Budget: 60, BurstLimit: 1 << 20}
}

// Meter measures one router.
type Meter struct {
	Trialer
	Options
}

func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }
