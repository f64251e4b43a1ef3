// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"context"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
)

// Saturate measures the windows of one repetition, sending as fast as the port takes frames. `at` is the time since
// the run began.
func (m *Meter) Saturate(ctx context.Context, repetition int, at float64) ([]result.Window, *Outcome, error) {
	// pauses not included
	o, err := m.Trial(ctx, &apiv1.GeneratorTrial{DurationMs: milliseconds(m.Window * time.Duration(m.Windows)),
		WindowMs: milliseconds(m.Window), PauseMs: milliseconds(m.Pause)})
	if err != nil {
		return nil, nil, err
	}
	var list []result.Window
	for _, w := range o.Windows {
		if w.Seconds < m.Window.Seconds()/2 {
			continue // an incomplete window at the end
		}
		list = append(list, result.Window{Repetition: repetition, At: at + w.StartSeconds, Seconds: w.Seconds,
			Sent: float64(w.Sent) / w.Seconds, Received: float64(w.Received) / w.Seconds,
			RoundTrip: nanoseconds(w.RoundTripCycles, o.Total.TscHz), Idle: idle(w)})
	}
	return list, o, nil
}

func nanoseconds(cycles uint32, hz uint64) float64 {
	if hz == 0 {
		return 0
	}
	return float64(cycles) / float64(hz) * 1e9
}

// idle is the share of its time in which the generator had nothing to do.
func idle(w *apiv1.GeneratorWindow) float64 {
	if w.Cycles == 0 || w.BusyCycles > w.Cycles {
		return 0
	}
	return 1 - float64(w.BusyCycles)/float64(w.Cycles)
}
