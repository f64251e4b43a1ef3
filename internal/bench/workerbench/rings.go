// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"context"
	"errors"
	"fmt"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/workerresult"
	"github.com/corelane/corelane/internal/stat"
)

func measureRings(ctx context.Context, s *workersRun) (err error) {
	l, err := s.open(ctx, s.quietPlace(deviceRing))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, size := range s.Sizes {
		s.result.Rings = append(s.result.Rings, workerresult.Ring{Size: size})
	}
	for repetition := range s.ringRepetitions() {
		for _, i := range stat.Turns(repetition, len(s.Sizes)) {
			r := &s.result.Rings[i]
			s.Step(fmt.Sprintf("rings of %d, round %d of %d", r.Size, repetition+1, s.ringRepetitions()), stepTime)
			sample, err := l.sample(ctx, &workerresult.Mode{Name: "hybrid", Ring: r.Size}, false)
			if err != nil {
				return err
			}
			r.Samples = append(r.Samples, sample)
		}
	}
	for i := range s.result.Rings {
		r := &s.result.Rings[i]
		s.Step(fmt.Sprintf("rings of %d: bursts while the worker is %v late", r.Size, workerresult.Late), stepTime)
		if r.Burst, err = l.longestBurst(ctx, r.Size); err != nil {
			return err
		}
		s.result.Wanted = max(s.result.Wanted, int(r.Rate()*workerresult.Late.Seconds()))
	}
	return nil
}

const (
	shortest = 64
	fineness = 32 // precision: a part of the longest burst
)

// longestBurst finds the longest burst that passes a ring of a size without loss while each loop of the finisher takes
// longer.
func (l *twoWorkers) longestBurst(ctx context.Context, ring int) (int, error) {
	if err := errors.Join(l.hybrid(ctx, ring), l.delay(ctx, workerresult.Late)); err != nil {
		return 0, err
	}
	longest, err := search(shortest, 8*ring, func(frames int) (bool, error) {
		t, err := l.bursts(ctx, frames, 5, true)
		if err == nil && t.Lost+t.NoRoom > 0 { // a single loss may be a disturbance
			t, err = l.bursts(ctx, frames, 5, true)
		}
		return err == nil && t.Lost+t.NoRoom == 0, err
	})
	return longest, errors.Join(err, l.delay(ctx, 0))
}

// search finds the largest value that passes: it doubles from least until one fails, then does a binary search. It
// returns 0 when least fails, and most when all pass.
func search(least, most int, passes func(int) (bool, error)) (int, error) {
	good, bad := 0, most+1
	for next := least; bad-good > max(1, good/fineness); {
		ok, err := passes(next)
		if err != nil {
			return good, err
		}
		if ok {
			good = next
		} else {
			bad = next
		}
		if next = min(2*good, most); good == 0 || bad <= most {
			next = (good + bad) / 2
		}
		if good == most || (good == 0 && bad <= least) {
			break
		}
	}
	return good, nil
}

// gap is the time between bursts in which a late worker takes a whole burst: at worst a device's ring per loop, each
// of which takes twice the delay.
func gap(frames int) float64 {
	const batch = 256
	return float64(frames/batch+4) * 2 * workerresult.Late.Seconds()
}

const burstTries = 3 // trials of a burst while the generator is late

// bursts sends n bursts of so many frames.
func (l *twoWorkers) bursts(ctx context.Context, frames, n int, polls bool) (t *apiv1.GeneratorWindow, err error) {
	gap := gap(frames)
	n = max(1, min(n, int(maxTrial.Seconds()/gap)))
	for range burstTries {
		t, err = l.trial(ctx, &apiv1.GeneratorTrial{Packets: uint64(n * frames), Burst: uint32(frames),
			PacketsPerSecond: float64(frames) / gap}, polls)
		if err != nil || t.Late == 0 {
			return t, err
		}
	}
	l.note("the generator was late with some bursts of %d frames: other work has its CPU", frames)
	return t, nil
}
