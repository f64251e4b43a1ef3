// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/wait"
)

// Workers of the router.
const (
	finisher = 0 // on a CPU of its own
	poller   = 1 // often beside the generator
	newcomer = 2
)

// Ports of the scenario.
const (
	guest = "tenant0"
	wire  = "wire"
)

const (
	deviceRing  = 256              // of guest and wire: virtio's usual
	defaultRing = 1024             // of the ring between workers
	endTimeout  = 20 * time.Second // for a deleted worker
	settle      = 50 * time.Millisecond
)

// twoWorkers is a router with two workers and a generator.
type twoWorkers struct {
	*workersRun
	*testbed.Bed
	client    *api.Client
	generator *generator.Generator
	workers   []int32 // threads
	realtime  bool    // pollers have real-time priority during a trial
	ring      uint32  // size of the ring to new workers
}

type place struct {
	ring, queues, control int
	wire                  int // ring of the wire, 0: as ring
	realtime              bool
	idle                  string // of the finisher
}

// open starts a router with two workers. On failure all that was started is stopped.
func (s *workersRun) open(ctx context.Context, at place) (*twoWorkers, error) {
	l := &twoWorkers{workersRun: s, realtime: at.realtime, ring: defaultRing}
	if err := l.start(ctx, at); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *twoWorkers) start(ctx context.Context, at place) (err error) {
	if l.Bed, err = testbed.New("bench"); err != nil {
		return err
	}
	setup, err := scenario.Build(l.scenario(at.queues), l.Dir, at.ring)
	if err != nil {
		return err
	}
	port := &setup.Ports[len(setup.Ports)-1]
	port.Queues = 1 // of the wire: frames on two transmit queues have no order
	port.RingSize = max(port.RingSize, at.wire)
	profile, err := setup.Profile()
	if err != nil {
		return err
	}
	if err := l.startRouter(ctx, at, setup); err != nil {
		return err
	}
	l.generator, err = generator.Start(ctx, generator.Place{Bin: l.Bin, Dir: l.Dir, CPU: l.Generator,
		ControlCPU: at.control, RoundTripCPU: -1})
	if err != nil {
		return err
	}
	if err := keepOff("/", l.generator.Pid(), at.control); err != nil {
		return err
	}
	if err := l.Connect(ctx, l.generator, profile); err != nil {
		return err
	}
	return l.check(ctx, at.queues > 1)
}

func (l *twoWorkers) startRouter(ctx context.Context, at place, setup *scenario.Setup) (err error) {
	env := &router.Env{CPUs: []int{l.WorkerCPU}, ControlCPU: at.control, Memory: l.memory, Bin: l.Bin,
		Options: []string{"--allow-debug", "--allow-overlap", "--idle", at.idle}}
	if err := l.StartRouter(ctx, new(router.Corelane), env, setup); err != nil {
		return err
	}
	l.client = l.Client()
	if _, err := l.addWorker(ctx, poller, l.PollerCPU); err != nil {
		return err
	}
	list, err := l.Workers(ctx)
	for _, w := range list {
		l.workers = append(l.workers, w.GetState().GetTid())
	}
	return err
}

// --- The router's configuration. ---

func (l *twoWorkers) addWorker(ctx context.Context, id, cpu int) (*apiv1.Worker, error) {
	w := &apiv1.Worker{Id: uint32(id), Cpu: uint32(cpu), Idle: apiv1.IdlePolicy_IDLE_POLICY_YIELD, RingSize: l.ring}
	return api.Call(ctx, l.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Add, &apiv1.WorkerAddRequest{Worker: w})
}

// deleteWorker deletes a worker and returns when it is gone; a late one takes a while.
func (l *twoWorkers) deleteWorker(ctx context.Context, id int) error {
	_, err := api.Call(ctx, l.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Del,
		&apiv1.WorkerDelRequest{Id: uint32(id)})
	if err == nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, endTimeout, err)
	defer cancel()
	return wait.Until(limited, time.Millisecond, func() (bool, error) {
		list, e := l.Workers(ctx)
		if e != nil {
			return false, errors.Join(err, e)
		}
		return !slices.ContainsFunc(list, func(w *apiv1.Worker) bool { return w.Id == uint32(id) }), nil
	})
}

func (l *twoWorkers) setWorker(ctx context.Context, w *apiv1.Worker, fields ...string) error {
	_, err := api.Call(ctx, l.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Set,
		&apiv1.WorkerSetRequest{Worker: w, Fields: fields})
	return err
}

func (l *twoWorkers) setRing(ctx context.Context, size int) error {
	return l.setWorker(ctx, &apiv1.Worker{Id: finisher, RingSize: uint32(size)}, "ring_size")
}

func (l *twoWorkers) setRole(ctx context.Context, role apiv1.WorkerRole) error {
	if err := l.setWorker(ctx, &apiv1.Worker{Id: poller, Role: role}, "role"); err != nil ||
		role == apiv1.WorkerRole_WORKER_ROLE_FORWARDING {
		return err
	}
	return l.setWorker(ctx, &apiv1.Worker{Id: poller, Target: strconv.Itoa(finisher)}, "target")
}

func (l *twoWorkers) setMode(ctx context.Context, mode apiv1.PortMode, workers ...string) error {
	_, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Set, &apiv1.PortSetRequest{
		Port: &apiv1.Port{Name: guest, Mode: mode, SpreadWorkers: workers}, Fields: []string{"mode", "spread_workers"}})
	return err
}

func (l *twoWorkers) assign(ctx context.Context, port string, queue, worker int) error {
	_, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Assign,
		&apiv1.PortAssignRequest{Name: port, Queue: uint32(queue), Worker: uint32(worker)})
	return err
}

func (l *twoWorkers) delay(ctx context.Context, d time.Duration) error {
	_, err := api.Call(ctx, l.client, apiv1.NewDebugClient, apiv1.DebugService.Delay,
		&apiv1.DebugDelayRequest{Worker: finisher, Us: uint32(d.Microseconds())})
	return err
}

// complete lets the finisher poll and finish.
func (l *twoWorkers) complete(ctx context.Context) error {
	return errors.Join(l.setRole(ctx, apiv1.WorkerRole_WORKER_ROLE_FORWARDING),
		l.setMode(ctx, apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION), l.assign(ctx, wire, 0, finisher),
		l.assign(ctx, guest, 0, finisher))
}

// hybrid lets the poller hand all packets to the finisher.
func (l *twoWorkers) hybrid(ctx context.Context, ring int) error {
	return errors.Join(l.setRing(ctx, ring), l.setRole(ctx, apiv1.WorkerRole_WORKER_ROLE_FORWARDING),
		l.assign(ctx, wire, 0, finisher), l.assign(ctx, guest, 0, poller),
		l.setMode(ctx, apiv1.PortMode_PORT_MODE_HYBRID, strconv.Itoa(finisher)))
}

// isolated does the same with an isolated-rx worker as the poller.
func (l *twoWorkers) isolated(ctx context.Context, ring int) error {
	return errors.Join(l.setRing(ctx, ring), l.setMode(ctx, apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION),
		l.assign(ctx, wire, 0, finisher), l.assign(ctx, guest, 0, poller),
		l.setRole(ctx, apiv1.WorkerRole_WORKER_ROLE_ISOLATED_RX))
}

// queued is the highest fill level of the ring between the workers.
func (l *twoWorkers) queued(ctx context.Context) (uint32, error) {
	rings, err := api.Collect(ctx, l.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Rings,
		&apiv1.WorkerRingListRequest{})
	for _, r := range rings {
		if r.From == poller && r.To == finisher {
			return r.High, err
		}
	}
	return 0, err
}

// --- Trials. ---

// trial runs a trial. polls says whether the poller takes part.
func (l *twoWorkers) trial(ctx context.Context, spec *apiv1.GeneratorTrial, polls bool) (*apiv1.GeneratorWindow,
	error) {
	if err := wait.For(ctx, settle); err != nil {
		return nil, err
	}
	spec.WindowMs = max(spec.DurationMs, 1000) // no wake-up within a window
	spec.Share = polls && l.shares()
	if l.realtime {
		spec.RealTime = l.workers[:1]
	}
	if l.realtime && polls {
		spec.RealTime = l.workers
	}
	total, err := l.generator.Run(ctx, spec, nil)
	if err == nil {
		err = testbed.CheckRealTime(spec, total)
	}
	return total, err
}

// check checks the headers of all frames. polls says whether the poller has a queue.
func (l *twoWorkers) check(ctx context.Context, polls bool) (err error) {
	if err := l.complete(ctx); err != nil {
		return err
	}
	return testbed.Check(ctx, func(ctx context.Context, spec *apiv1.GeneratorTrial) (*apiv1.GeneratorWindow, error) {
		return l.trial(ctx, spec, polls)
	})
}
