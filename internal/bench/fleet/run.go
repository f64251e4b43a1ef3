// SPDX-License-Identifier: Apache-2.0

// Package fleet measures the agent of a node in a fleet: how fast received paths become routes of the data plane, how
// much memory it takes, and what the death of agent or reflector costs.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Options of a run.
type Options struct {
	Bin    string // folder of corelaned and corelane-agent
	Worker int    // CPU of the router's worker
	Other  int    // CPU of the agent and of the router's control plane
	Memory int    // MB of hugepages, 0: none
	Agent  int    // MB of memory that the agent may use before it collects all garbage at once
	Paths  int    // of a full table
	Some   int    // paths that are withdrawn, or there when something is killed
	Say    func(text string)
}

// Row is one figure.
type Row struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the value must reach the limit; otherwise it may not be above it
}

// Short tells whether the row falls short.
func (r Row) Short() bool {
	if r.Least {
		return r.Value < r.Limit
	}
	return r.Value > r.Limit
}

// Result of a run.
type Result struct {
	Paths int   `json:"paths"`
	Some  int   `json:"some"`
	Rows  []Row `json:"rows"`
}

// Limits of the table, which are those of the default numbers of paths.
const (
	syncSeconds   = 10
	memoryMB      = 500
	uniqueRate    = 20000
	sharedRate    = 50000
	withdrawMS    = 500
	inStepSeconds = 5
)

// Run measures all rows.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	b, err := newBed(ctx, &o)
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return nil, err
	}
	r = &Result{Paths: o.Paths, Some: o.Some}
	for _, step := range []struct {
		name string
		rows func() ([]Row, error)
	}{
		{"first sync", b.firstSync},
		{"paths that share attributes", func() ([]Row, error) {
			return b.rate("shared attributes", shared(o.Paths), sharedRate)
		}},
		{"paths that share none", func() ([]Row, error) {
			return b.rate("unique attributes", unique(o.Paths), uniqueRate)
		}},
		{"withdrawal", b.withdrawal},
		{"death of the agent", b.agentDies},
		{"death of the peer", b.peerDies},
	} {
		o.Say(step.name)
		rows, err := step.rows()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// firstSync begins with the start of the agent.
func (b *bed) firstSync() ([]Row, error) {
	list := unique(b.o.Paths)
	messages := append(announce(list), endOfRib()...)
	begin := time.Now()
	err := b.startAgent()
	if err == nil {
		err = b.peer.send(messages)
	}
	if err == nil {
		err = b.untilRoutes(len(list))
	}
	took := time.Since(begin)
	memory, merr := b.memory()
	if err = errors.Join(err, merr); err == nil {
		err = b.clear(list)
	}
	return []Row{
		{fmt.Sprintf("first sync of %d paths", len(list)), took.Seconds(), "s", syncSeconds, false},
		{fmt.Sprintf("memory of the agent at %d paths", len(list)), memory, "MB", memoryMB, false},
	}, err
}

func (b *bed) clear(list []route) error {
	if err := b.peer.send(withdraw(list)); err != nil {
		return err
	}
	return b.untilRoutes(0)
}

// rate begins when a session that is established has its first path.
func (b *bed) rate(name string, list []route, least float64) ([]Row, error) {
	messages := announce(list)
	begin := time.Now()
	err := b.peer.send(messages)
	if err == nil {
		err = b.untilRoutes(len(list))
	}
	took := time.Since(begin)
	if err == nil {
		err = b.clear(list)
	}
	return []Row{{"received to FIB, " + name, float64(len(list)) / took.Seconds(), "paths/s", least, true}}, err
}

func (b *bed) withdrawal() ([]Row, error) {
	list := unique(b.o.Some)
	err := b.peer.send(announce(list))
	if err == nil {
		err = b.untilRoutes(len(list))
	}
	messages := withdraw(list)
	begin := time.Now()
	if err == nil {
		err = b.peer.send(messages)
	}
	if err == nil {
		err = b.untilRoutes(0)
	}
	return []Row{{fmt.Sprintf("withdrawal of %d routes to the last FIB change", len(list)),
		float64(time.Since(begin).Microseconds()) / 1000, "ms", withdrawMS, false}}, err
}

// whole sends a table as a peer does after its start, and waits until the node has it.
func (b *bed) whole(list []route) error {
	err := b.peer.send(slices.Concat(announce(list), endOfRib()))
	if err == nil {
		err = b.untilInStep(len(list))
	}
	if err == nil {
		err = b.untilRoutes(len(list))
	}
	return err
}

// agentDies kills the agent and starts it again at once. Routes that it changes are packets that may be lost.
func (b *bed) agentDies() ([]Row, error) {
	list := unique(b.o.Some)
	if err := b.whole(list); err != nil {
		return nil, err
	}
	begin := time.Now()
	err := b.killAgent()
	if err == nil {
		err = b.startAgent()
	}
	if err == nil {
		err = b.whole(list)
	}
	took := time.Since(begin)
	if err != nil {
		return nil, err
	}
	st, err := b.status()
	return b.afterDeath("agent", took, st.GetSync().GetChanges()), err
}

// peerDies ends the session as the death of a reflector does. The next one answers at once.
func (b *bed) peerDies() ([]Row, error) {
	before, err := b.status()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	b.peer.close()
	if err = b.accept(); err == nil {
		err = b.whole(unique(b.o.Some))
	}
	took := time.Since(begin)
	if err != nil {
		return nil, err
	}
	after, err := b.status()
	return b.afterDeath("peer", took, after.GetSync().GetChanges()-before.Sync.Changes), err
}

func (b *bed) afterDeath(who string, took time.Duration, changes uint64) []Row {
	return []Row{
		{fmt.Sprintf("death of the %s until in step at %d paths", who, b.o.Some), took.Seconds(), "s", inStepSeconds,
			false},
		{fmt.Sprintf("death of the %s: changes of the FIB", who), float64(changes), "objects", 0, false},
	}
}
