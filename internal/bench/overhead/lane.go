// SPDX-License-Identifier: Apache-2.0

// Package overhead measures what looking at a router costs it: throughput at saturation with and without `corelane explain`.
package overhead

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// Lane is a router with one worker and the generator that feeds it.
type Lane struct {
	Socket    string // of the router's API
	dir       string
	instance  router.Instance
	generator *generator.Generator
}

const (
	deviceRing = 1024
	upTimeout  = 20 * time.Second
)

// Open a lane: the worker has CPU worker, all else CPU other. Router and generator are in folder bin.
func Open(ctx context.Context, bin string, worker, other, memory int) (*Lane, error) {
	l := &Lane{}
	if err := l.start(ctx, bin, worker, other, memory); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lane) start(ctx context.Context, bin string, worker, other, memory int) (err error) {
	if l.dir, err = os.MkdirTemp("", "corelane-bench-"); err != nil {
		return err
	}
	l.Socket = filepath.Join(l.dir, "corelaned.sock")
	s, err := scenario.Find("vxlan-encap")
	if err != nil {
		return err
	}
	s.Sizes, s.Flows, s.Workers = []int{64}, 1000, 1
	setup, err := scenario.Build(s, l.dir, deviceRing)
	if err != nil {
		return err
	}
	profile, err := setup.Profile()
	if err != nil {
		return err
	}
	env := &router.Env{Dir: l.dir, CPUs: []int{worker}, ControlCPU: other, Memory: memory, Bin: bin, Options: []string{"--allow-debug"}}
	if l.instance, err = new(router.Corelane).Start(ctx, env, setup); err != nil {
		return err
	}
	l.generator, err = generator.Start(ctx, generator.Place{Bin: bin, Dir: l.dir, CPU: other, ControlCPU: other, RoundTripCPU: -1})
	if err != nil {
		return err
	}
	if err := l.generator.Configure(ctx, profile); err != nil {
		return err
	}
	return l.generator.WaitUp(ctx, upTimeout)
}

// Run traffic for a while: rate 0 is as much as the router takes. The end of ctx ends it, too.
func (l *Lane) Run(ctx context.Context, d time.Duration, rate float64) (*apiv1.GeneratorWindow, error) {
	return l.generator.Run(ctx, &apiv1.GeneratorTrial{DurationMs: uint32(d.Milliseconds()), PacketsPerSecond: rate}, nil)
}

// GeneratorPID of the traffic.
func (l *Lane) GeneratorPID() int { return l.generator.Pid() }

// Close stops both.
func (l *Lane) Close() error {
	var errs []error
	if l.generator != nil {
		errs = append(errs, l.generator.Close())
	}
	if l.instance != nil {
		errs = append(errs, l.instance.Stop())
	}
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	return errors.Join(errs...)
}
