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

// stream is traffic that flows until it is stopped, with the frames of its windows.
type stream struct {
	victim *victim
	ended  chan error

	mu      sync.Mutex
	windows []seen
}

// seen is one window of the traffic. Frames that the generator itself was late for were not offered.
type seen struct {
	start, seconds    float64   // since the traffic began
	arrived           time.Time // when the generator's message about it came
	offered, received uint64
}

// traffic is the mean of a period, in frames/s.
type traffic struct{ offered, received float64 }

// lost is what was offered and did not come back, in frames/s.
func (t traffic) lost() float64 { return max(0, t.offered-t.received) }

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
			s.windows = append(s.windows, seen{w.StartSeconds, w.Seconds, time.Now(), w.Due - min(w.Due, w.Late),
				w.Received})
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

// between returns the traffic of a period, from the windows within it.
func (s *stream) between(from, to time.Time) traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return trafficOf(s.windows, from, to)
}

func trafficOf(windows []seen, from, to time.Time) traffic {
	var offered, received uint64
	var seconds float64
	begin := beginOf(windows)
	for _, w := range windows {
		start := begin.Add(duration(w.start))
		if !start.Before(from) && !start.Add(duration(w.seconds)).After(to) {
			offered, received, seconds = offered+w.offered, received+w.received, seconds+w.seconds
		}
	}
	if seconds == 0 {
		return traffic{}
	}
	return traffic{float64(offered) / seconds, float64(received) / seconds}
}

// beginOf returns when the traffic began. Messages can be late, but not early.
func beginOf(windows []seen) (begin time.Time) {
	for i, w := range windows {
		if t := w.arrived.Add(-duration(w.start + w.seconds)); i == 0 || t.Before(begin) {
			begin = t
		}
	}
	return begin
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
