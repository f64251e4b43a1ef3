// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/wait"
)

// State of a host, as named in contrail-specs, full_cpu_partitioning_support.md.
type State string

// The states.
const (
	Idle    State = "idle"
	None    State = "none"    // the load may run on all CPUs
	Partial State = "partial" // the whole load is on the worker's CPU
	Full    State = "full"    // `corelane cores apply` keeps the load off the worker's CPU
)

// Reported has the figures of contrail-specs: Mpps per core at a loss of at most 0.01 %.
var Reported = map[State]float64{None: 2.256, Partial: 0.165, Full: 2.294}

// PartitionRow is one state with its repetitions.
type PartitionRow struct {
	State   State    `json:"state"`
	Samples []Sample `json:"samples"`
}

// Sample is one repetition.
type Sample struct {
	Rate      float64 `json:"rate"`              // highest with a loss of at most 0.01 %, packets/s
	Saturated float64 `json:"saturated"`         // packets/s received at more than the worker's capacity
	OfIdle    float64 `json:"of_idle,omitempty"` // Rate over that of the idle machine in the same repetition
	Limited   string  `json:"limited,omitempty"` // why the rate could be higher
}

// PartitionTable has a row for each state.
type PartitionTable struct {
	Load string         `json:"load"`
	Rows []PartitionRow `json:"rows"`
	Note []string       `json:"notes,omitempty"`
}

// meter searches with short trials, because the states take turns.
func meter(l *victim) *measure.Meter {
	o := measure.Default()
	o.TrialTime, o.Resolution, o.Budget = 700*time.Millisecond, 0.02, 40
	return &measure.Meter{Trialer: l, Options: o}
}

const (
	allowedLoss   = 1e-4
	saturatedTime = 500 * time.Millisecond
	loadSettles   = 500 * time.Millisecond
)

// MeasurePartitioning measures all states in turn, o.Repetitions times.
func MeasurePartitioning(ctx context.Context, o Options) (r *PartitionTable, err error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	l, err := o.open(ctx, setting{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r = &PartitionTable{Load: LoadText()}
	for _, s := range []State{Idle, None, Partial, Full} {
		r.Rows = append(r.Rows, PartitionRow{State: s})
	}
	for repetition := range o.Repetitions {
		for _, i := range stat.Turns(repetition, len(r.Rows)) {
			row := &r.Rows[i]
			o.say("round %d of %d: %s", repetition+1, o.Repetitions, row.State.Title())
			s, err := l.sample(ctx, row.State)
			if err != nil {
				return r, fmt.Errorf("%s: %w", row.State.Title(), err)
			}
			row.Samples = append(row.Samples, *s)
			o.say("  %.3f Mpps at 0.01 %% loss, %.3f saturated %s", s.Rate/1e6, s.Saturated/1e6, s.Limited)
		}
		r.relate(repetition)
	}
	return r, nil
}

// relate sets a repetition's rates relative to its idle one.
func (r *PartitionTable) relate(repetition int) {
	for i := range r.Rows {
		if idle := r.Rows[0].Samples[repetition].Rate; idle > 0 {
			r.Rows[i].Samples[repetition].OfIdle = r.Rows[i].Samples[repetition].Rate / idle
		}
	}
}

// sample measures one state, and leaves it.
func (l *victim) sample(ctx context.Context, state State) (s *Sample, err error) {
	undo, err := l.enter(ctx, state)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()
	s = &Sample{}
	if s.Saturated, err = l.saturated(ctx, saturatedTime); err != nil {
		return nil, err
	}
	found, err := meter(l).Search(ctx, allowedLoss, s.Saturated*0.9)
	if err != nil {
		return nil, err
	}
	s.Rate, s.Limited = found.Rate, found.Limited
	return s, nil
}

// enter brings the machine into a state. undo leaves it.
func (l *victim) enter(ctx context.Context, state State) (undo func() error, err error) {
	if state == Idle {
		return func() error { return nil }, nil
	}
	cpus := l.online.IDs()
	if state == Partial {
		cpus = []int{l.WorkerCPU}
	}
	i, err := l.intrude(l.Dir, "", cpus, "load")
	if err != nil {
		return nil, err
	}
	undo = i.Stop
	if state == Full {
		back, err := l.partition(ctx)
		if err != nil {
			return nil, errors.Join(err, i.Stop())
		}
		undo = func() error { return errors.Join(back(), i.Stop()) }
	}
	if err := wait.For(ctx, loadSettles); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// Title is the name of a state for people.
func (s State) Title() string {
	return map[State]string{Idle: "idle machine", None: "no partitioning", Partial: "partial partitioning",
		Full: "full partitioning"}[s]
}

// Median returns the median, the lowest and the highest value of a row.
func (r *PartitionRow) Median(of func(Sample) float64) (median, low, high float64) {
	s := stat.SpreadOf(r.Samples, of)
	return s.Median, s.Low, s.High
}

// Enough is the least share of the idle machine's rate that full partitioning has to keep.
const Enough = 0.97

// Reproduced is an error unless the rows are as in contrail-specs: full partitioning keeps the idle machine's rate,
// partial partitioning collapses, and no partitioning is in between.
func (r *PartitionTable) Reproduced() error {
	share := map[State]float64{}
	for i := range r.Rows {
		share[r.Rows[i].State], _, _ = r.Rows[i].Median(func(s Sample) float64 { return s.OfIdle })
	}
	switch {
	case share[Full] < Enough:
		return fmt.Errorf("full partitioning keeps %.3f of the idle machine's rate, not %.2f", share[Full], Enough)
	case share[Partial] > 0.5:
		return fmt.Errorf("partial partitioning keeps %.3f of the idle machine's rate, more than 0.5: no collapse",
			share[Partial])
	case share[None] < share[Partial] || share[None] > max(share[Full], 1):
		return fmt.Errorf("no partitioning keeps %.3f of the idle machine's rate, which is not between %.3f and %.3f",
			share[None], share[Partial], share[Full])
	}
	return nil
}
