// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/bench/manifest"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/input"
)

const (
	startTime  = 2 * time.Second // roughly, of a router and its generators
	trialPause = 150 * time.Millisecond
	trials     = 4 // of a pair, at most
)

type run struct {
	Options
	bench.Progress
	memory int // MB of hugepages of the router
	result Result
}

// Run measures the chosen attacks. On an error it also returns what was measured before.
func Run(ctx context.Context, o Options, p bench.Progress) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, input.Errorf("user", "root; try sudo", "the benchmark needs CPUs and hugepages")
	}
	s := &run{Options: o, Progress: p}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	rows := s.rows()
	each := startTime + time.Duration(trials*s.Repetitions+1)*(s.Trial+trialPause)
	defer s.result.check()
	s.Begin(time.Duration(len(rows)) * each)
	var failed error
	for _, r := range rows {
		s.Step(fmt.Sprintf("%s, %s", r.attack.Name, r.port), each)
		measured, err := s.measure(ctx, r)
		if ctx.Err() != nil {
			return &s.result, context.Cause(ctx)
		}
		if err != nil { // the other rows do not depend on it
			err = fmt.Errorf("%s, %s: %v", r.attack.Name, r.port, err) // not wrong input, whatever it was
			s.note("%v", err)
			failed = errors.Join(failed, err)
			continue
		}
		s.result.Rows = append(s.result.Rows, measured)
	}
	s.result.Complete = failed == nil
	return &s.result, failed
}

func (s *run) prepare() error {
	free, err := bench.FreeHugepages(s.Root)
	if err != nil {
		return err
	}
	if s.memory = min(free*3/4, mostUsed); s.memory < leastFree {
		s.memory = 0
		s.note("no hugepages are free: the router runs without them and is slower. To have some: " +
			"tools/with-hugepages.sh 1024 -- corelane bench neighbor ...")
	}
	s.result.Started, s.result.Command = time.Now(), s.Command
	s.result.Manifest, err = manifest.Read(s.Root, result.Manifest{Commit: s.Commit, Corelane: s.Version,
		RouterCPUs: []int{s.WorkerCPU}, GeneratorCPU: s.Generator, Settings: s.settings()})
	if err != nil {
		return err
	}
	return bench.KeepOn(s.Generator)
}

func (s *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.result.Notes = append(s.result.Notes, text)
	s.Note(text)
}

// measure takes pairs of trials. Each kind of trial is the first one in turn.
func (s *run) measure(ctx context.Context, r row) (m *Row, err error) {
	b, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	m = &Row{Name: r.attack.Name, Port: r.port, Pairs: make([]Pair, 0, s.Repetitions)}
	if err := b.calibrate(ctx, m); err != nil {
		return nil, err
	}
	for i := range s.Repetitions {
		p := Pair{}
		kinds := []kindOfTrial{{alone, &p.Without}, {alone, &p.Again}, {attacked, &p.With}}
		if b.attacker.ordinary != nil || b.attacker.ordinaryGuest != nil {
			kinds = []kindOfTrial{{alone, &p.Without}, {busy, &p.Busy}, {attacked, &p.With}, {busy, &p.Again}}
		}
		for k := range kinds {
			trial := kinds[(i+k)%len(kinds)]
			if *trial.to, err = b.trial(ctx, m, trial.with); err != nil {
				return nil, err
			}
		}
		m.Pairs = append(m.Pairs, p)
	}
	return m, nil
}

// kindOfTrial is a trial of a pair, and where its sample goes.
type kindOfTrial struct {
	with company
	to   **Sample
}
