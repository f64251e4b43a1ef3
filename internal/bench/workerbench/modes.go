// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/workerresult"
	"github.com/corelane/corelane/internal/stat"
)

func measureModes(ctx context.Context, s *workersRun) (err error) {
	l, err := s.open(ctx, s.quietPlace(deviceRing))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	s.result.Modes = slices.Clone(workerresult.Modes)
	for repetition := range s.Repetitions {
		for _, i := range stat.Turns(repetition, len(workerresult.Modes)) {
			m := &s.result.Modes[i]
			s.Step(fmt.Sprintf("modes, round %d of %d: %s", repetition+1, s.Repetitions, m.Title()), stepTime)
			sample, err := l.sample(ctx, m, true)
			if err != nil {
				return err
			}
			m.Samples = append(m.Samples, sample)
		}
	}
	return nil
}

// quietPlace is for latencies: only the polling threads run on their CPUs.
func (s *workersRun) quietPlace(ring int) place {
	return place{ring: ring, queues: 1, control: s.control, realtime: true, idle: "spin"}
}

// sample measures a mode at saturation and, if asked to, at half of that rate.
func (l *twoWorkers) sample(ctx context.Context, m *workerresult.Mode, half bool) (s workerresult.Sample, err error) {
	if m.Ring > 0 {
		err = l.hybrid(ctx, m.Ring)
	} else {
		err = l.complete(ctx)
	}
	if err != nil {
		return s, err
	}
	ms := uint32(l.Trial.Milliseconds())
	t, err := l.trial(ctx, &apiv1.GeneratorTrial{DurationMs: ms, Latency: true}, m.Ring > 0)
	if err != nil {
		return s, err
	}
	p := measure.Percentiles(t.Latency)
	s.Rate, s.P50, s.P99, s.Turn = float64(t.Received)/t.Seconds, p.P50, p.P99, turn(t)
	if s.Queued, err = l.queued(ctx); err != nil || !half {
		return s, err
	}
	s.Half = s.Rate / 2
	if t, err = l.trial(ctx, &apiv1.GeneratorTrial{DurationMs: ms, PacketsPerSecond: s.Half, Latency: true},
		m.Ring > 0); err != nil {
		return s, err
	}
	p = measure.Percentiles(t.Latency)
	s.HalfP50, s.HalfP99, s.HalfLost = p.P50, p.P99, t.Lost+t.NoRoom
	return s, nil
}

// turn is how long, in microseconds, other threads had the generator's CPU each time.
func turn(t *apiv1.GeneratorWindow) float64 {
	if t.Turns == 0 || t.TscHz == 0 {
		return 0
	}
	return float64(t.TurnCycles) / float64(t.Turns) / float64(t.TscHz) * 1e6
}
