// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// stream is traffic that flows until it is stopped, with its received frames.
type stream struct {
	victim *victim
	ended  chan error

	mu      sync.Mutex
	windows []seen
}

// seen is one window of the traffic.
type seen struct {
	end      time.Time
	seconds  float64
	received uint64
}

const (
	windowMs = 200
	forever  = 3600e3 // ms
)

// flow begins the traffic of spec.
func (l *victim) flow(ctx context.Context, spec *apiv1.GeneratorTrial) *stream {
	s := &stream{victim: l, ended: make(chan error, 1)}
	spec = proto.CloneOf(spec)
	spec.DurationMs, spec.WindowMs = forever, windowMs
	go func() {
		_, err := l.run(ctx, spec, func(w *apiv1.GeneratorWindow) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.windows = append(s.windows, seen{time.Now(), w.Seconds, w.Received})
		})
		s.ended <- err
	}()
	return s
}

// stop ends the traffic.
func (s *stream) stop(ctx context.Context) error {
	select {
	case err := <-s.ended:
		return errors.Join(err, errors.New("the traffic ended by itself"))
	default:
	}
	for { // traffic that has not begun yet misses the first request
		if err := s.victim.generator.Stop(ctx); err != nil {
			return err
		}
		select {
		case err := <-s.ended:
			return err
		case <-time.After(stopAgain):
		}
	}
}

const stopAgain = 200 * time.Millisecond

// rate is the received one in a period, in frames/s, from the windows within it.
func (s *stream) rate(from, to time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rateOf(s.windows, from, to)
}

func rateOf(windows []seen, from, to time.Time) float64 {
	var frames uint64
	var seconds float64
	for _, w := range windows {
		if begin := w.end.Add(-time.Duration(w.seconds * float64(time.Second))); !begin.Before(from) &&
			!w.end.After(to) {
			frames += w.received
			seconds += w.seconds
		}
	}
	if seconds == 0 {
		return 0
	}
	return float64(frames) / seconds
}
