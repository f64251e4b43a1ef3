// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

// --- Disturbances by corelaned's API, and by its traffic. ---

// injectOwnThread gives a service thread work and keeps it on the worker's CPU. The daemon moves it back once a second.
func injectOwnThread(ctx context.Context, b *loadedVictim) (*injection, error) {
	busy, err := disturb(ctx, b, apiv1.Disturbance_DISTURBANCE_SHOOTDOWNS, busyThread)
	if err != nil {
		return nil, err
	}
	tid, err := b.thread(ctx, debugThread)
	var i *intrusion
	if err == nil {
		i, err = b.intrude(b.Dir, "", []int{b.control()}, "pin", strconv.Itoa(tid), strconv.Itoa(b.WorkerCPU))
	}
	if err != nil {
		return nil, errors.Join(err, busy.undo())
	}
	return &injection{culprit: Culprit{PID: tid, Name: debugThread}, undo: func() error {
		return errors.Join(i.Stop(), busy.undo())
	}}, nil
}

const (
	debugThread = "svc-debug"
	busyThread  = 1000000 // shootdowns a second, more than it can do; on the worker's CPU they interrupt no other one
	shootdowns  = 200000
	pageLosses  = 5000
)

// thread returns the id of a thread of the daemon, which may just be starting.
func (b *loadedVictim) thread(ctx context.Context, name string) (tid int, err error) {
	within, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = wait.Until(within, 10*time.Millisecond, func() (bool, error) {
		list, err := api.Collect(ctx, b.client, apiv1.NewThreadsClient, apiv1.ThreadsClient.List,
			&apiv1.ThreadListRequest{})
		for _, t := range list {
			if t.Name == name {
				tid = int(t.Tid)
			}
		}
		return tid != 0, err
	})
	if tid == 0 {
		err = errors.Join(err, fmt.Errorf("the daemon has no thread %s", name))
	}
	return tid, err
}

// injectDisabled disables the port to which the traffic comes.
func injectDisabled(ctx context.Context, b *loadedVictim) (*injection, error) {
	set := func(ctx context.Context, disabled bool) error {
		_, err := api.Call(ctx, b.client, apiv1.NewPortsClient, apiv1.PortsClient.Set,
			&apiv1.PortSetRequest{Port: &apiv1.Port{Name: tenant, Disabled: disabled}, Fields: []string{"disabled"}})
		return err
	}
	return &injection{culprit: Culprit{Name: "port_disabled"}, undo: func() error {
		return set(context.WithoutCancel(ctx), false)
	}}, set(ctx, true)
}

func (b *loadedVictim) setWorker(ctx context.Context, w *apiv1.Worker, fields ...string) error {
	_, err := api.Call(ctx, b.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Set,
		&apiv1.WorkerSetRequest{Worker: w, Fields: fields})
	return err
}

// injectYield makes the worker yield in each empty loop, beside a thread of policy SCHED_IDLE (sched(7)), which gets
// next to nothing from a worker that does not yield.
func injectYield(ctx context.Context, b *loadedVictim) (*injection, error) {
	idle := func(ctx context.Context, p apiv1.IdlePolicy) error {
		return b.setWorker(ctx, &apiv1.Worker{Idle: p}, "idle")
	}
	i, err := b.intrude(b.Dir, "", []int{b.WorkerCPU}, "hog", "idle")
	if err != nil {
		return nil, err
	}
	undo := func() error {
		// The thread is stopped first: beside a spinning worker it would not get to its end.
		return errors.Join(i.Stop(), idle(context.WithoutCancel(ctx), apiv1.IdlePolicy_IDLE_POLICY_SPIN))
	}
	if err := idle(ctx, apiv1.IdlePolicy_IDLE_POLICY_YIELD); err != nil {
		return nil, errors.Join(err, undo())
	}
	return &injection{undo: undo}, nil
}

func injectFlushes(ctx context.Context, b *loadedVictim) (*injection, error) {
	i, err := disturb(ctx, b, apiv1.Disturbance_DISTURBANCE_SHOOTDOWNS, shootdowns)
	if err == nil {
		i.culprit.Name = debugThread
	}
	return i, err
}

func injectFaults(ctx context.Context, b *loadedVictim) (*injection, error) {
	return disturb(ctx, b, apiv1.Disturbance_DISTURBANCE_FAULTS, pageLosses)
}

func disturb(ctx context.Context, b *loadedVictim, what apiv1.Disturbance, perSecond uint32) (*injection, error) {
	set := func(ctx context.Context, n uint32) error {
		_, err := api.Call(ctx, b.client, apiv1.NewDebugClient, apiv1.DebugService.Disturb,
			&apiv1.DebugDisturbRequest{What: what, PerSecond: n})
		return err
	}
	undo := func() error { return set(context.WithoutCancel(ctx), 0) }
	return &injection{undo: undo}, set(ctx, perSecond)
}

var injectDelay = delayOf(20)

// delayOf injects a delay into each of the worker's loops.
func delayOf(us uint32) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		set := func(ctx context.Context, us uint32) error {
			_, err := api.Call(ctx, b.client, apiv1.NewDebugClient, apiv1.DebugService.Delay,
				&apiv1.DebugDelayRequest{Worker: 0, Us: us})
			return err
		}
		return &injection{undo: func() error { return set(context.WithoutCancel(ctx), 0) }}, set(ctx, us)
	}
}

// injectReader makes the tenant stop reading.
func injectReader(ctx context.Context, b *loadedVictim) (*injection, error) {
	spec := &apiv1.GeneratorTrial{PacketsPerSecond: half * b.capacity, UnreadPort: tenant}
	return &injection{culprit: Culprit{Port: tenant}, undo: nothing}, b.change(ctx, spec)
}

const smallRing = 64

// handOver makes the second worker poll the tenant's queues and hand all packets to the first one, through a small
// ring.
func handOver(ctx context.Context, l *victim) error {
	b := &loadedVictim{victim: l}
	port := &apiv1.PortSetRequest{Port: &apiv1.Port{Name: tenant, Mode: apiv1.PortMode_PORT_MODE_HYBRID,
		SpreadWorkers: []string{"0"}},
		Fields: []string{"mode", "spread_workers"}}
	_, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Set, port)
	return errors.Join(err, b.setWorker(ctx, &apiv1.Worker{RingSize: smallRing}, "ring_size"), l.assign(ctx, tenant, 1),
		l.assign(ctx, wire, 0))
}

// assign assigns all queues of a port to a worker.
func (l *victim) assign(ctx context.Context, port string, worker uint32) error {
	for queue := range uint32(2) {
		_, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Assign,
			&apiv1.PortAssignRequest{Name: port, Queue: queue, Worker: worker})
		if err != nil {
			return err
		}
	}
	return nil
}

// burstsOf sends the frames in bursts of n.
func burstsOf(n uint32) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		return &injection{undo: nothing},
			b.change(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: 0.2 * b.capacity, Burst: n})
	}
}

// apart makes each worker poll one queue of the tenant, and finish its packets.
func apart(ctx context.Context, l *victim) error {
	port := &apiv1.PortSetRequest{Port: &apiv1.Port{Name: tenant, Mode: apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION},
		Fields: []string{"mode"}}
	if _, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Set, port); err != nil {
		return err
	}
	for queue := range uint32(2) {
		req := &apiv1.PortAssignRequest{Name: tenant, Queue: queue, Worker: queue}
		if _, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Assign, req); err != nil {
			return err
		}
	}
	return l.assign(ctx, wire, 0)
}

const (
	trying   = 0.1 // of the worker's capacity
	elephant = 1.2 // of the worker's capacity for the flow
	// bytes of its frames: the worker copies them, and the generator does not, so that it has time left for explain
	elephantFrame = 1400
)

// injectElephant sends one flow, with more than a worker's capacity. It tries flows until one belongs to worker 0.
func injectElephant(ctx context.Context, b *loadedVictim) (*injection, error) {
	profile := b.profile
	undo := func() error { return b.configure(context.WithoutCancel(ctx), profile, half*b.capacity) }
	for first := range uint32(16) {
		p := proto.CloneOf(profile)
		for _, s := range p.Streams {
			s.Flows.Count, s.Flows.SourcePorts, s.Flows.DestinationPorts = 1, 1, 1
			s.Sizes = []uint32{elephantFrame}
			s.Header[len(s.Header)-8+1] += byte(first) // the UDP source port that flows begin with
		}
		if err := b.configure(ctx, p, trying*b.capacity); err != nil {
			return nil, err
		}
		before, err := b.worker(ctx, 0)
		if err != nil {
			return nil, err
		}
		if err := wait.For(ctx, takesHold); err != nil {
			return nil, err
		}
		after, err := b.worker(ctx, 0)
		if err != nil {
			return nil, err
		}
		if after.State.Packets-before.State.Packets > 1000 {
			return &injection{culprit: Culprit{Port: tenant}, undo: undo}, b.outgrow(ctx)
		}
	}
	return nil, errors.Join(undo(), fmt.Errorf("none of 16 flows reached worker 0"))
}

// outgrow offers more of the present flows than the worker can carry.
func (b *loadedVictim) outgrow(ctx context.Context) error {
	if err := b.stream.stop(ctx); err != nil {
		return err
	}
	capacity, err := b.saturated(ctx, saturatedTime)
	if err != nil {
		return err
	}
	b.stream = b.flow(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: elephant * capacity})
	return nil
}

// configure replaces the traffic.
func (b *loadedVictim) configure(ctx context.Context, p *apiv1.GeneratorProfile, rate float64) error {
	if err := b.stream.stop(ctx); err != nil {
		return err
	}
	if err := b.generator.Configure(ctx, p); err != nil {
		return err
	}
	b.stream = b.flow(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: rate})
	return nil
}
