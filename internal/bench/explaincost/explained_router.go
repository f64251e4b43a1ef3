// SPDX-License-Identifier: Apache-2.0

// Package explaincost measures what `corelane explain` costs a router: its throughput at saturation with and without
// it.
package explaincost

import (
	"context"
	"errors"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
)

// explainedRouter is a router with one worker and the generator that feeds it.
type explainedRouter struct {
	*testbed.Bed
	generator *generator.Generator
}

const deviceRing = 1024

// openRouter starts a router. Its worker runs on CPU o.Worker, everything else on CPU o.Other.
func openRouter(ctx context.Context, o Options) (*explainedRouter, error) {
	l := &explainedRouter{}
	if err := l.start(ctx, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *explainedRouter) start(ctx context.Context, o Options) (err error) {
	if l.Bed, err = testbed.New("bench"); err != nil {
		return err
	}
	s, err := scenario.Find("vxlan-encap")
	if err != nil {
		return err
	}
	s.Sizes, s.Flows, s.Workers = []int{64}, 1000, 1
	setup, err := scenario.Build(s, l.Dir, deviceRing)
	if err != nil {
		return err
	}
	profile, err := setup.Profile()
	if err != nil {
		return err
	}
	env := &router.Env{CPUs: []int{o.Worker}, ControlCPU: o.Other, Memory: o.Memory, Bin: o.Bin,
		Options: []string{"--allow-debug"}}
	if err := l.StartRouter(ctx, new(router.Corelane), env, setup); err != nil {
		return err
	}
	l.generator, err = generator.Start(ctx, generator.Place{Bin: o.Bin, Dir: l.Dir, CPU: o.Other, ControlCPU: o.Other,
		RoundTripCPU: -1})
	if err != nil {
		return err
	}
	return l.Connect(ctx, l.generator, profile)
}

// run sends as much traffic as the router takes, for a while.
func (l *explainedRouter) run(ctx context.Context, d time.Duration) (*apiv1.GeneratorWindow, error) {
	return l.generator.Run(ctx, &apiv1.GeneratorTrial{DurationMs: uint32(d.Milliseconds())}, nil)
}
