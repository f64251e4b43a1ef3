// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/wait"
)

// contender is a router that does the work of a scenario, with its generator.
type contender struct {
	measure.Meter
	*testbed.Bed
	router    router.Router
	generator testbed.Generator
	profile   *apiv1.GeneratorProfile
	decode    func([]byte) string
	run       *result.Run
	saturated *measure.Saturated
	settle    time.Duration
	waiting   func() map[int]time.Duration // by CPU: how long its poller was ready but did not run
	tscHz     uint64
	broken    bool // it has failed and was stopped
}

// open starts a router and its generator and checks that it does the work. On failure all that was started is stopped.
func (s *comparison) open(ctx context.Context, r router.Router, sc scenario.Scenario, run *result.Run) (*contender,
	error) {
	l := &contender{router: r, run: run, decode: s.Decode, settle: s.settle,
		saturated: measure.NewSaturated(sc.Workers)}
	l.waiting = func() map[int]time.Duration { return s.place.waiting(s.Root, os.Getpid()) }
	l.Meter = measure.Meter{Trialer: l, Options: s.Measure}
	err := l.start(ctx, s, sc)
	if err == nil {
		err = l.check(ctx)
	}
	if err == nil {
		err = l.Router.Pause()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // other errors follow from it
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *contender) start(ctx context.Context, s *comparison, sc scenario.Scenario) (err error) {
	if l.Bed, err = testbed.New("bench"); err != nil {
		return err
	}
	setup, err := scenario.Build(sc, l.Dir, s.RingSize)
	if err != nil {
		return err
	}
	l.profile, err = profile(l.router, setup)
	if err != nil {
		return err
	}
	cpus := s.place.routers[:sc.Workers]
	env := &router.Env{CPUs: cpus, ControlCPU: s.place.control, Memory: s.memory, Bin: s.Bin}
	if err := l.StartRouter(ctx, l.router, env, setup); err != nil {
		return err
	}
	l.generator, err = s.startGenerator(ctx, generator.Place{Bin: s.Bin, Dir: l.Dir, CPU: s.place.generator,
		RoundTripCPU: cpus[0], ControlCPU: s.place.control, Netns: l.Router.Netns()})
	if err != nil {
		return err
	}
	return l.Connect(ctx, l.generator, l.profile)
}

func profile(r router.Router, setup *scenario.Setup) (*apiv1.GeneratorProfile, error) {
	if r.Unchanged() {
		return setup.Unchanged()
	}
	return setup.Profile()
}

// Trial runs a trial through the router, which must not be paused.
func (l *contender) Trial(ctx context.Context, spec *apiv1.GeneratorTrial) (o *measure.Outcome, err error) {
	o = &measure.Outcome{}
	waited := l.waiting()
	if o.Before, err = l.Router.Counters(ctx); err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	o.Total, err = l.generator.Run(ctx, spec, func(w *apiv1.GeneratorWindow) { o.Windows = append(o.Windows, w) })
	if err != nil {
		return nil, err
	}
	o.Waited = stat.GrownBy(l.waiting(), waited)
	if o.After, err = l.Router.Counters(ctx); err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	return o, nil
}

// awake resumes the router while f measures.
func (l *contender) awake(ctx context.Context, f func() error) error {
	if err := l.Router.Resume(); err != nil {
		return err
	}
	if err := wait.For(ctx, l.settle); err != nil {
		return err
	}
	return errors.Join(f(), l.Router.Pause())
}

// round measures one repetition of the saturated windows.
func (l *contender) round(ctx context.Context, repetition int, began time.Time) error {
	return l.awake(ctx, func() error {
		windows, o, err := l.Saturate(ctx, repetition, time.Since(began).Seconds())
		if err != nil {
			return err
		}
		if err := wrong(o.Total, l.profile, l.decode); err != nil {
			return fmt.Errorf("at saturation: %w", err)
		}
		l.run.Windows = append(l.run.Windows, windows...)
		l.saturated.Add(o)
		l.run.Bottleneck, l.run.Drops, l.run.Nodes = l.saturated.Bottleneck(), l.saturated.Drops(), l.saturated.Nodes()
		return nil
	})
}
