// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/wait"
)

// Ports of the scenario.
const (
	tenant = "tenant0"
	wire   = "wire"
)

const (
	ringSlots = 8192  // to the worker: 0.5 ms at 17 Mpps, as 1,024 descriptors at 2.3 Mpps
	wireSlots = 16384 // back: more than arrives while the generator does not run
	restUS    = 50
	settle    = 50 * time.Millisecond
)

// setting describes a victim.
type setting struct {
	both   bool // traffic in both directions
	second bool // another worker, beside the generator, and two queues for each port
	small  bool // no hugepages
	slots  int  // of the rings to the worker; 0: many
}

// victim is a corelaned with a worker on o.WorkerCPU, and a generator at the other ends of its ports.
type victim struct {
	*Options
	*testbed.Bed
	client    *api.Client
	generator *generator.Generator
	sender    int // thread
	profile   *apiv1.GeneratorProfile
	setup     *scenario.Setup
}

func (o *Options) open(ctx context.Context, s setting) (*victim, error) {
	l := &victim{Options: o}
	if err := l.start(ctx, s); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *victim) start(ctx context.Context, s setting) (err error) {
	if l.Bed, err = testbed.New("intrude"); err != nil {
		return err
	}
	sc, err := scenario.Find("vxlan-encap")
	if err != nil {
		return err
	}
	if sc.Both = s.both; s.second {
		sc.Workers = 2
	}
	if l.setup, err = scenario.Build(sc, l.Dir, cmp.Or(s.slots, ringSlots)); err != nil {
		return err
	}
	l.setup.Ports[len(l.setup.Ports)-1].RingSize = wireSlots
	if l.profile, err = l.setup.Profile(); err != nil {
		return err
	}
	if err := l.startRouter(ctx, s); err != nil {
		return err
	}
	l.generator, err = generator.Start(ctx, generator.Place{Bin: l.Bin, Dir: l.Dir, CPU: l.GeneratorCPU,
		ControlCPU: l.control(), RoundTripCPU: -1})
	if err != nil {
		return err
	}
	if l.sender, err = l.generator.Sender(); err != nil {
		return err
	}
	if err := l.Connect(ctx, l.generator, l.profile); err != nil {
		return err
	}
	return l.check(ctx)
}

func (l *victim) startRouter(ctx context.Context, s setting) (err error) {
	env := &router.Env{CPUs: []int{l.WorkerCPU}, ControlCPU: l.control(), Memory: l.memory, Bin: l.Bin,
		Options: []string{"--allow-debug", "--idle", "spin"}}
	if s.small {
		env.Memory = 0
	}
	if s.second {
		env.Options = append(env.Options, "--allow-overlap")
	}
	if err := l.StartRouter(ctx, new(router.Corelane), env, l.setup); err != nil {
		return err
	}
	l.client = l.Client()
	if !s.second {
		return nil
	}
	w := &apiv1.Worker{Id: 1, Cpu: uint32(l.control()), Idle: apiv1.IdlePolicy_IDLE_POLICY_SLEEP}
	_, err = api.Call(ctx, l.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Add,
		&apiv1.WorkerAddRequest{Worker: w})
	return err
}

// worker returns the state of a worker.
func (l *victim) worker(ctx context.Context, id uint32) (*apiv1.Worker, error) {
	list, err := l.Workers(ctx)
	for _, w := range list {
		if w.Id == id {
			return w, err
		}
	}
	return nil, errors.Join(err, fmt.Errorf("there is no worker %d", id))
}

// Trial makes a victim a measure.Trialer. The generator has real-time priority, because it stands for the network,
// which does not wait. It rests after each poll, so that other work gets the rest of its CPU.
func (l *victim) Trial(ctx context.Context, spec *apiv1.GeneratorTrial) (*measure.Outcome, error) {
	if err := wait.For(ctx, settle); err != nil {
		return nil, err
	}
	o := &measure.Outcome{}
	var err error
	if o.Before, err = l.Router.Counters(ctx); err != nil {
		return nil, err
	}
	o.Total, err = l.run(ctx, spec, func(w *apiv1.GeneratorWindow) { o.Windows = append(o.Windows, w) })
	if err != nil {
		return nil, err
	}
	o.After, err = l.Router.Counters(ctx)
	return o, err
}

func (l *victim) run(ctx context.Context, spec *apiv1.GeneratorTrial,
	each func(*apiv1.GeneratorWindow)) (*apiv1.GeneratorWindow, error) {
	spec.RealTime, spec.RestUs = []int32{int32(l.sender)}, restUS
	total, err := l.generator.Run(ctx, spec, each)
	if err == nil {
		err = testbed.CheckRealTime(spec, total)
	}
	return total, err
}

// saturated returns the received rate at more than the worker's capacity.
func (l *victim) saturated(ctx context.Context, d time.Duration) (float64, error) {
	o, err := l.Trial(ctx, &apiv1.GeneratorTrial{DurationMs: uint32(d.Milliseconds())})
	if err != nil {
		return 0, err
	}
	return float64(o.Total.Received) / o.Total.Seconds, nil
}

// check checks that the router does its work.
func (l *victim) check(ctx context.Context) error {
	return testbed.Check(ctx, func(ctx context.Context, spec *apiv1.GeneratorTrial) (*apiv1.GeneratorWindow, error) {
		o, err := l.Trial(ctx, spec)
		if err != nil {
			return nil, err
		}
		return o.Total, nil
	})
}
