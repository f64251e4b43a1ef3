// SPDX-License-Identifier: Apache-2.0
package explaincost

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/wait"
)

// Options of one run.
type Options struct {
	Bin           string // folder of corelaned and corelane-gen
	Worker, Other int    // CPUs of the worker, and of everything else
	Memory        int    // MB of hugepages, 0: none
	Repetitions   int
	Trial         time.Duration
}

// Sample of one trial.
type Sample struct {
	Rate   float64 `json:"packets_per_s"`     // received from the router
	Cycles float64 `json:"cycles_per_packet"` // TSC cycles of the worker's busy loops
}

// Pair is two consecutive trials.
type Pair struct {
	Without Sample `json:"without"`
	With    Sample `json:"with"`
}

// Result of all pairs.
type Result struct {
	Pairs   []Pair `json:"pairs"`
	Tracing bool   `json:"tracing"` // the kernel's trace events were read; without them the figures mean little
}

// Cost is the difference that explain makes to a figure, in %: median and quartiles of the pairs.
type Cost struct{ Median, Low, High float64 }

// Of returns the cost for one figure.
func (r *Result) Of(figure func(Sample) float64) Cost {
	var changes []float64
	for _, p := range r.Pairs {
		if without := figure(p.Without); without > 0 {
			changes = append(changes, 100*(figure(p.With)/without-1))
		}
	}
	if len(changes) == 0 {
		return Cost{}
	}
	return Cost{stat.Median(changes), stat.Percentile(changes, 0.25), stat.Percentile(changes, 0.75)}
}

const settle = 100 * time.Millisecond

// Run takes pairs of trials at saturation, one of them within a window of explain, in alternating order.
func Run(ctx context.Context, o Options, note func(string)) (r *Result, err error) {
	l, err := openRouter(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := l.run(ctx, o.Trial); err != nil { // warm-up
		return nil, err
	}
	r = &Result{Tracing: true}
	for i := range o.Repetitions {
		note(fmt.Sprintf("pair %d of %d", i+1, o.Repetitions))
		var p Pair
		for k := range 2 {
			if (i+k)%2 == 0 {
				p.Without, err = l.sample(ctx, o.Trial)
			} else {
				p.With, err = l.explained(ctx, o.Trial, r)
			}
			if err != nil {
				return r, err
			}
		}
		r.Pairs = append(r.Pairs, p)
	}
	return r, nil
}

// explained runs a trial while explain watches.
func (l *explainedRouter) explained(ctx context.Context, trial time.Duration, r *Result) (Sample, error) {
	s, err := explain.Open(ctx, explain.Options{Socket: l.Socket(), Window: trial + 8*settle})
	if err != nil {
		return Sample{}, err
	}
	done := make(chan error, 1)
	go func() {
		report, err := s.Next(ctx)
		if err == nil && !report.Tracing {
			r.Tracing = false
		}
		done <- err
	}()
	_ = wait.For(ctx, 4*settle) // until explain has its first reading; the trial notices the end of ctx
	sample, err := l.sample(ctx, trial)
	return sample, errors.Join(err, <-done, s.Close())
}

func (l *explainedRouter) sample(ctx context.Context, trial time.Duration) (Sample, error) {
	before, err := l.worker(ctx)
	if err != nil {
		return Sample{}, err
	}
	t, err := l.run(ctx, trial)
	if err != nil {
		return Sample{}, err
	}
	after, err := l.worker(ctx)
	if err != nil {
		return Sample{}, err
	}
	packets := after.Packets - before.Packets
	if packets == 0 {
		return Sample{}, errors.New("the router moved no packets")
	}
	return Sample{float64(t.Received) / t.Seconds, float64(after.BusyCycles-before.BusyCycles) / float64(packets)}, nil
}

func (l *explainedRouter) worker(ctx context.Context) (*apiv1.WorkerState, error) {
	list, err := l.Workers(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("the router has %d workers, not one", len(list))
	}
	return list[0].State, nil
}
