// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cpuset"
)

// --- What corelaned is told, and the traffic that it gets. ---

// injectMaster keeps the master where the worker is, and has it answer questions. Once a second it moves itself back, and is
// moved again.
func injectMaster(_ context.Context, b *bed) (*injection, error) {
	i, err := b.intrude(b.dir, "", []int{b.control()}, "errand", b.socket(), strconv.Itoa(b.pid()), strconv.Itoa(b.WorkerCPU))
	if err != nil {
		return nil, err
	}
	undo := func() error { return errors.Join(i.Stop(), affinity(b.pid(), cpuset.Of(b.others()...))) }
	return &injection{Culprit{PID: b.pid(), Name: "corelaned"}, undo}, nil
}

func (b *bed) setWorker(ctx context.Context, w *apiv1.Worker, fields ...string) error {
	_, err := api.Call(ctx, b.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Set, &apiv1.WorkerSetRequest{Worker: w, Fields: fields})
	return err
}

func injectYield(ctx context.Context, b *bed) (*injection, error) {
	idle := func(ctx context.Context, p apiv1.IdlePolicy) error { return b.setWorker(ctx, &apiv1.Worker{Idle: p}, "idle") }
	undo := func() error { return idle(context.WithoutCancel(ctx), apiv1.IdlePolicy_IDLE_POLICY_SPIN) }
	return &injection{undo: undo}, idle(ctx, apiv1.IdlePolicy_IDLE_POLICY_YIELD)
}

func injectShootdowns(ctx context.Context, b *bed) (*injection, error) {
	set := func(ctx context.Context, n uint32) error {
		_, err := api.Call(ctx, b.client, apiv1.NewThreadsClient, apiv1.ThreadsClient.Shootdowns, &apiv1.ThreadShootdownsRequest{PerSecond: n})
		return err
	}
	undo := func() error { return set(context.WithoutCancel(ctx), 0) }
	return &injection{Culprit{Name: "svc-debug"}, undo}, set(ctx, shootdowns)
}

const shootdowns = 50000 // a second, each of two interrupts

// injectReader: what the wire sends to the tenant is not taken.
func injectReader(ctx context.Context, b *bed) (*injection, error) {
	spec := &apiv1.GeneratorTrial{PacketsPerSecond: half * b.capacity, UnreadPort: tenant}
	return &injection{Culprit{Port: tenant}, nothing}, b.change(ctx, spec)
}

const smallRing = 64

// handOver: the second worker polls the tenant's queues and gives all to the first, through a small ring.
func handOver(ctx context.Context, l *lane) error {
	b := &bed{lane: l}
	port := &apiv1.PortSetRequest{Port: &apiv1.Port{Name: tenant, Mode: apiv1.PortMode_PORT_MODE_HYBRID, SpreadWorkers: []string{"0"}},
		Fields: []string{"mode", "spread_workers"}}
	_, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Set, port)
	return errors.Join(err, b.setWorker(ctx, &apiv1.Worker{RingSize: smallRing}, "ring_size"), l.assign(ctx, tenant, 1), l.assign(ctx, wire, 0))
}

// assign all queues of a port to a worker.
func (l *lane) assign(ctx context.Context, port string, worker uint32) error {
	for queue := range uint32(2) {
		_, err := api.Call(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.Assign, &apiv1.PortAssignRequest{Name: port, Queue: queue, Worker: worker})
		if err != nil {
			return err
		}
	}
	return nil
}

const burst = 2048

func injectBursts(ctx context.Context, b *bed) (*injection, error) {
	return &injection{undo: nothing}, b.change(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: 0.2 * b.capacity, Burst: burst})
}

// apart: each worker polls one queue of the tenant, and finishes what it polls.
func apart(ctx context.Context, l *lane) error {
	port := &apiv1.PortSetRequest{Port: &apiv1.Port{Name: tenant, Mode: apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION}, Fields: []string{"mode"}}
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

// injectElephant sends all in one flow, more than one worker takes: it is worker 0's, or the next one is tried.
func injectElephant(ctx context.Context, b *bed) (*injection, error) {
	profile := b.profile
	undo := func() error { return b.configure(context.WithoutCancel(ctx), profile) }
	for first := range uint32(16) {
		p := proto.CloneOf(profile)
		for _, s := range p.Streams {
			s.Flows.Count, s.Flows.SourcePorts, s.Flows.DestinationPorts = 1, 1, 1
			s.Header[len(s.Header)-8+1] += byte(first) // the UDP source port that flows begin with
		}
		if err := b.configure(ctx, p); err != nil {
			return nil, err
		}
		before, err := b.worker(ctx, 0)
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, takesHold); err != nil {
			return nil, err
		}
		after, err := b.worker(ctx, 0)
		if err != nil {
			return nil, err
		}
		if after.State.Packets-before.State.Packets > 1000 {
			return &injection{Culprit{Port: tenant}, undo}, nil
		}
	}
	return nil, errors.Join(undo(), fmt.Errorf("no flow of 16 came to worker 0"))
}

// configure other traffic, more than one worker takes.
func (b *bed) configure(ctx context.Context, p *apiv1.GeneratorProfile) error {
	if err := b.stream.stop(ctx); err != nil {
		return err
	}
	if err := b.generator.Configure(ctx, p); err != nil {
		return err
	}
	b.stream = b.flow(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: 1.3 * b.capacity})
	return nil
}
