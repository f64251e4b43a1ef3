// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/workerresult"
)

// Two workers forward, and a third one is added and removed. Two of them share the generator's CPU, with ordinary
// priority so that the daemon runs there too. A turn may take milliseconds when other work is ready; large rings hold
// the packets of that time.
const (
	changeRing   = 16384
	changePause  = 20 * time.Millisecond
	changeBefore = 200 * time.Millisecond
)

// change makes the i-th change of a kind. Modes and queues change there and back; workers are added and removed.
type change struct {
	name string
	make func(ctx context.Context, l *twoWorkers, i int) error
	both bool // i counts pairs of an addition and a removal
}

var changes = []change{
	{"switch the mode", changeMode, false},
	{"move a queue", moveQueue, false},
	{"add and remove a worker", changeWorkers, true},
}

func changeMode(ctx context.Context, l *twoWorkers, i int) error {
	if i%2 == 0 {
		return l.setMode(ctx, apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION)
	}
	return l.setMode(ctx, apiv1.PortMode_PORT_MODE_HYBRID)
}

func moveQueue(ctx context.Context, l *twoWorkers, i int) error {
	return l.assign(ctx, guest, 0, (i+1)%2)
}

func changeWorkers(ctx context.Context, l *twoWorkers, i int) error {
	if i%2 == 0 {
		_, err := l.addWorker(ctx, newcomer, l.PollerCPU)
		return err
	}
	return l.deleteWorker(ctx, newcomer)
}

func measureChanges(ctx context.Context, s *workersRun) (err error) {
	control := s.control
	if control == s.WorkerCPU { // beside the generator rather than beside the worker that is measured
		control = s.Generator
	}
	l, err := s.open(ctx, place{ring: changeRing, queues: 2, control: control, idle: "spin"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	l.ring = changeRing
	if err := l.spread(ctx); err != nil {
		return err
	}
	s.Step("changes: what the router takes", stepTime)
	t, err := l.trial(ctx, &apiv1.GeneratorTrial{DurationMs: 1000}, true)
	if err != nil {
		return err
	}
	saturated := float64(t.Received) / t.Seconds
	for _, c := range changes {
		s.Step("changes at half load: "+c.name, stepTime)
		result, err := l.changes(ctx, c, saturated)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		s.result.Changes = append(s.result.Changes, *result)
	}
	return nil
}

// spread lets both workers poll a queue each.
func (l *twoWorkers) spread(ctx context.Context) error {
	return errors.Join(l.setRing(ctx, changeRing), l.setWorker(ctx, &apiv1.Worker{Id: poller, RingSize: changeRing},
		"ring_size"),
		l.setMode(ctx, apiv1.PortMode_PORT_MODE_HYBRID), l.assign(ctx, guest, 0, finisher),
		l.assign(ctx, guest, 1, poller))
}

// changes makes the changes of a kind while frames flow.
func (l *twoWorkers) changes(ctx context.Context, c change, saturated float64) (*workerresult.Change, error) {
	if err := l.spread(ctx); err != nil {
		return nil, err
	}
	before, err := l.Router.Counters(ctx)
	if err != nil {
		return nil, err
	}
	gaveUp, err := l.gaveUp(ctx)
	if err != nil {
		return nil, err
	}
	r := &workerresult.Change{Name: c.name, Saturated: saturated, Rate: saturated / 2}
	t, err := l.meanwhile(ctx, r.Rate, func() error { return l.changeAll(ctx, c, r) })
	if err != nil {
		return nil, err
	}
	after, err := l.Router.Counters(ctx)
	if err != nil {
		return nil, err
	}
	r.Sent, r.Lost, r.Reordered, r.Duplicated, r.Late = t.Sent+t.NoRoom, t.Lost+t.NoRoom, t.Reordered, t.Duplicated,
		t.Late
	r.Why = lossReasons(t, before, after)
	r.GaveUp, err = l.gaveUp(ctx)
	r.GaveUp -= gaveUp
	return r, err
}

// meanwhile runs f while frames flow at a rate. The trial ends with f.
func (l *twoWorkers) meanwhile(ctx context.Context, rate float64, f func() error) (*apiv1.GeneratorWindow, error) {
	type end struct {
		total *apiv1.GeneratorWindow
		err   error
	}
	ended := make(chan end, 1)
	go func() {
		t, err := l.trial(ctx, &apiv1.GeneratorTrial{DurationMs: 3600e3, PacketsPerSecond: rate, DrainMs: 2000}, true)
		ended <- end{t, err}
	}()
	select {
	case e := <-ended:
		return e.total, errors.Join(e.err, errors.New("the traffic ended before the changes"))
	case <-time.After(settle + changeBefore):
	}
	err := f()
	err = errors.Join(err, l.generator.Stop(ctx))
	e := <-ended
	return e.total, errors.Join(err, e.err)
}

func (l *twoWorkers) changeAll(ctx context.Context, c change, r *workerresult.Change) error {
	n := l.Changes
	if c.both {
		n *= 2
	}
	for i := range n {
		began := time.Now()
		if err := c.make(ctx, l, i); err != nil {
			return fmt.Errorf("change %d: %w", i+1, err)
		}
		r.Took = append(r.Took, time.Since(began).Seconds()*1e3)
		r.Done++
		select {
		case <-time.After(changePause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// gaveUp counts the changes that gave up waiting for a worker.
func (l *twoWorkers) gaveUp(ctx context.Context) (n uint64, err error) {
	ports, err := api.Collect(ctx, l.client, apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{})
	for _, p := range ports {
		for _, q := range p.GetState().GetQueues() {
			n += q.OrderGivenUp
		}
	}
	return n, err
}

// lossReasons lists the router's drop counters that grew, and frames for which the guest's ring had no room.
func lossReasons(t *apiv1.GeneratorWindow, before, after router.Counters) string {
	var parts []string
	if t.NoRoom > 0 {
		parts = append(parts, fmt.Sprintf("no room in the guest's ring %d", t.NoRoom))
	}
	for reason, n := range after.Drops {
		if n > before.Drops[reason] {
			parts = append(parts, fmt.Sprintf("%s %d", reason, n-before.Drops[reason]))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
