// SPDX-License-Identifier: Apache-2.0

// Package testbed starts and stops what every measurement of a router needs: a folder, a router in it, and the
// generator at the other ends of the router's ports.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// Bed is a folder with a router and a generator.
type Bed struct {
	Dir     string
	Router  router.Instance // nil: not started
	closers []func() error  // in the order in which they are called
}

// Generator is a generator.Generator, or a simulated one of a test.
type Generator interface {
	Configure(ctx context.Context, p *apiv1.GeneratorProfile) error
	WaitUp(ctx context.Context, timeout time.Duration) error
	Run(ctx context.Context, t *apiv1.GeneratorTrial, each func(*apiv1.GeneratorWindow)) (*apiv1.GeneratorWindow, error)
	Close() error
}

const upTimeout = 20 * time.Second // until the ports are connected

// New makes a folder whose name begins with "corelane-" and the purpose.
func New(purpose string) (*Bed, error) {
	dir, err := os.MkdirTemp("", "corelane-"+purpose+"-")
	if err != nil {
		return nil, err
	}
	return &Bed{Dir: dir, closers: []func() error{func() error { return os.RemoveAll(dir) }}}, nil
}

// StartRouter starts a router in the folder.
func (b *Bed) StartRouter(ctx context.Context, r router.Router, env *router.Env, setup *scenario.Setup) (err error) {
	env.Dir = b.Dir
	if b.Router, err = r.Start(ctx, env, setup); err != nil {
		return err
	}
	b.closers = slices.Insert(b.closers, 0, b.Router.Stop)
	return nil
}

// Connect configures a running generator and returns when all of its ports are connected to the router's. The bed
// closes the generator from then on, also if this fails. The router's devices, if it has some, replace the ports of
// the profile.
func (b *Bed) Connect(ctx context.Context, g Generator, profile *apiv1.GeneratorProfile) error {
	b.closers = slices.Insert(b.closers, len(b.closers)-1, g.Close)
	if devices := b.Router.Devices(); devices != nil {
		profile.Ports = devices
	}
	if err := g.Configure(ctx, profile); err != nil {
		return err
	}
	return g.WaitUp(ctx, upTimeout)
}

// Close stops the router, then the generators, and removes the folder. It is idempotent, and a nil Bed is valid. The
// router goes first because testpmd polls the rings of a memif peer while it unmaps them, and may die of that when the
// peer closes.
func (b *Bed) Close() error {
	if b == nil {
		return nil
	}
	var errs []error
	for _, stop := range b.closers {
		errs = append(errs, stop())
	}
	b.closers = nil
	return errors.Join(errs...)
}

// Socket is the path of corelaned's API.
func (b *Bed) Socket() string { return filepath.Join(b.Dir, "corelaned.sock") }

// Client returns the API client of the router, which must be corelaned.
func (b *Bed) Client() *api.Client { return b.Router.(interface{ Client() *api.Client }).Client() }

// PID returns the process id of the router, which must be corelaned.
func (b *Bed) PID() int { return b.Router.(interface{ Pid() int }).Pid() }

// Workers returns the workers of the router, which must be corelaned.
func (b *Bed) Workers(ctx context.Context) ([]*apiv1.Worker, error) {
	return api.Collect(ctx, b.Client(), apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{})
}

// Trial sends traffic through a router.
type Trial func(context.Context, *apiv1.GeneratorTrial) (*apiv1.GeneratorWindow, error)

// Check checks the headers of all frames of some trials.
func Check(ctx context.Context, run Trial) (err error) {
	for range 5 { // first frames may be lost while ports come up
		var t *apiv1.GeneratorWindow
		t, err = run(ctx, &apiv1.GeneratorTrial{Packets: 4000, PacketsPerSecond: 20000,
			Verify: apiv1.GeneratorVerify_GENERATOR_VERIFY_ALL})
		if err != nil {
			return err
		}
		if err = CheckFrames(t); err == nil {
			return nil
		}
	}
	return err
}

// CheckFrames is an error when frames are missing or not as the router should have made them.
func CheckFrames(t *apiv1.GeneratorWindow) error {
	if bad := t.WrongHeader + t.Misplaced + t.Corrupt + t.Foreign; bad > 0 || t.Received == 0 || t.Lost > t.Sent/100 {
		return fmt.Errorf("the router does not do its work: of %d frames %d came back, %d of them wrong",
			t.Sent, t.Received, bad)
	}
	return nil
}

// CheckRealTime is an error when a thread did not get the real-time priority that the trial asked for.
func CheckRealTime(spec *apiv1.GeneratorTrial, t *apiv1.GeneratorWindow) error {
	if t.RealTime != uint32(len(spec.RealTime)) {
		return errors.New("the kernel refuses real-time priority: " +
			"is there a limit of the control group (cpu.rt_runtime_us)?")
	}
	return nil
}
