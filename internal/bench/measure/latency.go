// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"context"
	"fmt"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
)

// loads of a latency measurement, in per cent of a reference rate.
var loads = []int{10, 50, 90}

// Saturation is the load of a router that is sent as much as it takes.
const Saturation = "saturation"

// Latencies measures at shares of a rate with a name ("NDR"), and at saturation. A rate of 0 leaves the shares out.
func (m *Meter) Latencies(ctx context.Context, name string, rate float64) ([]result.Latency, error) {
	var list []result.Latency
	for _, percent := range loads {
		if rate == 0 {
			break
		}
		l, err := m.latency(ctx, fmt.Sprintf("%d%% %s", percent, name), rate*float64(percent)/100)
		if err != nil {
			return list, err
		}
		list = append(list, *l)
	}
	l, err := m.latency(ctx, Saturation, 0)
	if err != nil {
		return list, err
	}
	return append(list, *l), nil
}

func (m *Meter) latency(ctx context.Context, load string, rate float64) (*result.Latency, error) {
	o, err := m.Trial(ctx, &apiv1.GeneratorTrial{DurationMs: milliseconds(m.TrialTime), PacketsPerSecond: rate,
		Latency: true})
	if err != nil {
		return nil, err
	}
	if rate == 0 && o.Total.Seconds > 0 {
		rate = float64(o.Total.Received) / o.Total.Seconds
	}
	l := Percentiles(o.Total.Latency)
	l.Load, l.Rate, l.LateFrames = load, rate, o.Total.Late
	return l, nil
}

// width of the generator's bars: 1/32 of an octave.
const width = 1.0 / 32

// Percentiles reads the percentiles from a histogram, each as the middle of its bar.
func Percentiles(bars []*apiv1.GeneratorLatency) *result.Latency {
	l := &result.Latency{}
	total := uint64(0)
	for _, b := range bars {
		total += b.Frames
		l.Histogram = append(l.Histogram, result.Bar{Low: float64(b.LowNs) / 1e3, Frames: b.Frames})
	}
	for _, p := range []struct {
		share float64
		to    *float64
	}{{0.5, &l.P50}, {0.9, &l.P90}, {0.99, &l.P99}, {0.999, &l.P999}, {1, &l.Max}} {
		*p.to = barAtRank(l.Histogram, p.share*float64(total))
	}
	return l
}

func barAtRank(bars []result.Bar, rank float64) float64 {
	below := uint64(0)
	for _, b := range bars {
		below += b.Frames
		if float64(below) >= rank && b.Frames > 0 {
			return b.Low * (1 + width/2)
		}
	}
	return 0
}
