// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"slices"

	"github.com/corelane/corelane/internal/stat"
)

// Summary sums up the saturated windows of a run. Rates are received frames per second, NaN without windows.
type Summary struct {
	Median float64 // over all windows
	Quiet  float64 // 90th percentile: the machine with little other work
	Near   float64 // share of the windows with a near round trip; NaN: not probed

	// Ratio to the interleaved ceiling, 0 without one: the median of the windows in a repetition over the ceiling's.
	// Of all repetitions: median, lowest and highest.
	Ratio, Low, High float64
	Windows          string // windows that Ratio, Low and High cover: "near" or "all"
}

// Summary sums up one of the result's runs.
func (r *Result) Summary(run *Run) Summary {
	var rates []float64
	for _, w := range run.Windows {
		rates = append(rates, w.Received)
	}
	best := bestRoundTrip(r)
	near := nearer(best)
	s := Summary{Median: stat.Median(rates), Quiet: stat.Percentile(rates, 0.9), Near: math.NaN()}
	if !math.IsInf(best, 1) && len(rates) > 0 {
		s.Near = portion(run, near)
	}
	if ceiling := r.ceiling(run); ceiling != nil && len(rates) > 0 {
		s.relate(run, ceiling, near)
	}
	return s
}

// relate sets the ratios to the ceiling, of near windows when both runs have enough of them.
func (s *Summary) relate(run, ceiling *Run, near func(Window) bool) {
	p, want := pair{run, ceiling}, anyWindow
	s.Windows = "all"
	if p.enough(near) {
		s.Windows, want = "near", near
	}
	var ratios []float64
	for _, b := range p.series(want).blocks {
		if c := stat.Median(b.ceiling); c > 0 && len(b.run) > 0 {
			ratios = append(ratios, stat.Median(b.run)/c)
		}
	}
	if len(ratios) > 0 {
		s.Ratio, s.Low, s.High = stat.Median(ratios), slices.Min(ratios), slices.Max(ratios)
	}
}
