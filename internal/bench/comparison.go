// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/stat"
)

// comparison is a run of the benchmark.
type comparison struct {
	Options
	Progress
	routers        []router.Router
	versions       map[string]string
	startGenerator func(context.Context, generator.Place) (testbed.Generator, error)
	settle         time.Duration // pause after a router was resumed
	watch          time.Duration // how long the CPUs are watched for other work before the run
	place          placement
	memory         int // MB of hugepages for each router
	result         result.Result
	runs           []*result.Run
	path           string
	failed         bool // a router broke down in the middle
}

// save writes what has been measured so far.
func (s *comparison) save() error {
	s.result.Runs = s.result.Runs[:0]
	for _, r := range s.runs {
		s.result.Runs = append(s.result.Runs, *r)
	}
	s.result.Ended = time.Now()
	return result.Save(s.path, &s.result)
}

// note adds a note to the result and shows it.
func (s *comparison) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(s.result.Notes, text) {
		s.result.Notes = append(s.result.Notes, text)
		s.Note(text)
	}
}

// noteRoundTrip says how far the CPUs were from each other, on which the rates of all routers depend.
func (s *comparison) noteRoundTrip() {
	var runs []result.Run
	for _, r := range s.runs {
		runs = append(runs, *r)
	}
	list := roundTrips(runs)
	if len(list) == 0 {
		return
	}
	median := stat.Median(list)
	text := fmt.Sprintf("a cache line took %.0f ns from the generator's CPU to the router's and back (median; %.0f to "+
		"%.0f)", median, slices.Min(list), slices.Max(list))
	if median > farNs {
		text = fmt.Sprintf("warning: %s, more than %d ns. So far apart, the rings between the CPUs limit all routers, "+
			"and shares of the ceiling are higher than on CPUs that are near", text, farNs)
	}
	s.note("%s", text)
}

// all measures the scenarios one after the other.
func (s *comparison) all(ctx context.Context) error {
	defer s.noteRoundTrip()
	for _, sc := range s.Scenarios {
		if err := s.scenario(ctx, sc); err != nil {
			return err
		}
	}
	return nil
}

// scenario measures all routers that can do it. They all run at once, and all but one are paused.
func (s *comparison) scenario(ctx context.Context, sc scenario.Scenario) (err error) {
	var contenders []*contender
	defer func() {
		for _, l := range contenders {
			err = errors.Join(err, l.Close())
		}
		err = errors.Join(err, s.save())
	}()
	for _, r := range s.able(sc) {
		l, err := s.bring(ctx, r, sc)
		if err != nil {
			return err
		}
		if l != nil {
			contenders = append(contenders, l)
		}
		if err := s.save(); err != nil {
			return err
		}
	}
	if err := s.rounds(ctx, sc, contenders); err != nil {
		return err
	}
	for _, l := range contenders {
		if err := s.alone(ctx, sc, l); err != nil {
			return err
		}
	}
	return nil
}

// named says whether the user named routers: a failure of a named router is an error.
func (s *comparison) named() bool { return len(s.Routers) > 0 }

// able returns the routers that can do a scenario.
func (s *comparison) able(sc scenario.Scenario) []router.Router {
	var list []router.Router
	for _, r := range s.routers {
		if err := r.Supports(&sc); err != nil {
			s.note("%s left out of %s: %s", r.Name(), sc.Label(), reason(r, err))
			continue
		}
		list = append(list, r)
	}
	return list
}

// expectedAll is the time that all scenarios take.
func (s *comparison) expectedAll() (sum time.Duration) {
	for _, sc := range s.Scenarios {
		for _, r := range s.routers {
			if r.Supports(&sc) == nil {
				sum += s.expected(1)
			}
		}
	}
	return sum
}

// bring starts a router. A failure is recorded and gives nil; for a router that the user named it is an error.
func (s *comparison) bring(ctx context.Context, r router.Router, sc scenario.Scenario) (*contender, error) {
	s.Step(fmt.Sprintf("%s: %s starts and its work is checked", title(sc), r.Name()), startTime+checkTime)
	run := &result.Run{Scenario: sc.Label(), Router: r.Name(), RouterVersion: s.versions[r.Name()], Flows: sc.Flows,
		Routes: sc.Routes, FrameSizes: sc.Sizes, Workers: sc.Workers}
	l, err := s.open(ctx, r, sc, run)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	s.runs = append(s.runs, run)
	if err == nil {
		s.result.Manifest.TSCHz = l.tscHz
		return l, nil
	}
	run.Error = oneLine(err)
	s.Note(fmt.Sprintf("%s fails in %s: %s", r.Name(), sc.Label(), run.Error))
	if s.named() {
		return nil, input.Errorf("--router "+r.Name(), "", "%s: %s", sc.Label(), run.Error)
	}
	return nil, nil
}

// rounds measures saturated windows, each router in turn.
func (s *comparison) rounds(ctx context.Context, sc scenario.Scenario, contenders []*contender) error {
	for repetition := range s.Repetitions {
		for _, i := range stat.Turns(repetition, len(contenders)) {
			l := contenders[i]
			s.Step(fmt.Sprintf("%s: saturated, round %d of %d: %s", title(sc), repetition+1, s.Repetitions,
				l.router.Name()), s.roundTime())
			err := s.tolerate(ctx, sc, l, func() error { return l.round(ctx, repetition, s.result.Started) })
			if err != nil {
				return err
			}
		}
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}

// tolerate stops a router that fails, and lets the others go on.
func (s *comparison) tolerate(ctx context.Context, sc scenario.Scenario, l *contender, f func() error) error {
	if l.broken {
		return nil
	}
	err := f()
	if err == nil || ctx.Err() != nil {
		return err
	}
	l.broken, s.failed = true, true
	text := oneLine(errors.Join(err, l.Close()))
	if len(l.run.Windows) == 0 {
		l.run.Error = text
	}
	s.note("%s broke down in %s: %s", l.router.Name(), sc.Label(), text)
	return nil
}

// alone takes the measurements for which the other routers stay paused.
func (s *comparison) alone(ctx context.Context, sc scenario.Scenario, l *contender) error {
	for _, m := range []struct {
		name     string
		on       bool
		expected time.Duration
		measure  func(context.Context) error
	}{
		{"throughput without loss", s.Search, s.searchTime(), l.search},
		{"latency", s.Latency, s.latencyTime(), l.latencies},
		{"bursts", s.Burst, s.burstTime(), l.bursts},
	} {
		if !m.on {
			continue
		}
		s.Step(fmt.Sprintf("%s: %s: %s", title(sc), m.name, l.router.Name()), m.expected)
		err := s.tolerate(ctx, sc, l, func() error { return l.awake(ctx, func() error { return m.measure(ctx) }) })
		if err = errors.Join(err, s.save()); err != nil {
			return err
		}
	}
	return nil
}

// title is the name of a scenario with its numbers of flows and routes.
func title(sc scenario.Scenario) string {
	text := fmt.Sprintf("%s, %d flows", sc.Label(), sc.Flows)
	if sc.Routes > 1 {
		text += fmt.Sprintf(", %d routes", sc.Routes)
	}
	return text
}

// reason is the text of a router's error without the router's name.
func reason(r router.Router, err error) string {
	return strings.TrimPrefix(oneLine(err), r.Name()+": ")
}

func oneLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// search finds NDR and PDR. It begins at the rate that saturates the router on a quiet machine.
func (l *contender) search(ctx context.Context) (err error) {
	rate := l.quiet()
	if rate == 0 {
		return nil
	}
	if l.run.PDR, err = l.Search(ctx, pdrLoss, rate); err != nil {
		return err
	}
	l.run.NDR, err = l.Stricter(ctx, 0, l.run.PDR)
	measure.Raise(l.run.PDR, l.run.NDR)
	return err
}

const pdrLoss = 1e-4

// quiet is the 90th percentile of the saturated windows.
func (l *contender) quiet() float64 {
	var rates []float64
	for _, w := range l.run.Windows {
		rates = append(rates, w.Received)
	}
	if len(rates) == 0 {
		return 0
	}
	return stat.Percentile(rates, 0.9)
}

// latencies measures at shares of the NDR, or else of the PDR or the saturated rate.
func (l *contender) latencies(ctx context.Context) (err error) {
	name, rate := "saturated rate", l.quiet()
	for _, s := range []struct {
		name  string
		found *result.Search
	}{{"PDR", l.run.PDR}, {"NDR", l.run.NDR}} {
		if s.found != nil && s.found.Rate > 0 {
			name, rate = s.name, s.found.Rate
		}
	}
	l.run.Latency, err = l.Latencies(ctx, name, rate)
	return err
}

func (l *contender) bursts(ctx context.Context) (err error) {
	l.run.Burst, err = l.Meter.Burst(ctx)
	return err
}
