// SPDX-License-Identifier: Apache-2.0
package restart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/wait"
)

const (
	before   = time.Second     // traffic before the event
	after    = 4 * time.Second // and after the router answers again
	window   = 5               // ms
	longest  = 60 * time.Second
	toAnswer = 10 * time.Second // a connection, after the event
)

// Run measures all events.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b, err := newBed(ctx, &o)
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return nil, err
	}
	r = &Result{Ports: o.Ports, Routes: o.Routes, Rate: o.Rate}
	for _, e := range events {
		if !slices.Contains(o.Events, e.name) {
			continue
		}
		rows, err := b.measure(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// measure runs all streams at once, and the event in their midst.
func (b *bed) measure(ctx context.Context, e event) ([]Row, error) {
	b.o.Say(e.name)
	trials := make(chan trial)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for _, s := range b.streams {
		go func() { trials <- s.run(ctx, b.o.Rate) }()
	}
	begin := time.Now()
	err := wait.For(ctx, before)
	caused := time.Now()
	if err == nil {
		err = e.cause(b)
	}
	took := time.Since(caused)
	if err == nil {
		err = wait.For(ctx, after)
	}
	for _, s := range b.streams {
		err = errors.Join(err, s.stop(ctx))
	}
	survived := b.connections.survivors(toAnswer)
	var rows []Row
	for range b.streams {
		t := <-trials
		if err = errors.Join(err, t.err); err != nil {
			continue
		}
		row := Row{Event: e.name, Kind: t.kind, MostMS: float64(e.most.Milliseconds()), Sent: t.sent(), Lost: t.lost(),
			Late:     t.late,
			OutageMS: t.outage(caused.Sub(begin) / 2), Connections: b.o.Connections, Survived: survived}
		if e.restarts {
			row.StartMS = float64(took.Microseconds()) / 1000
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(x, y Row) int { return slices.Index(Kinds, x.Kind) - slices.Index(Kinds, y.Kind) })
	return rows, errors.Join(err, b.connections.renew())
}
