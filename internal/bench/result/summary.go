// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"slices"

	"github.com/corelane/corelane/internal/stat"
)

// Summary is what the saturated windows of a run say. Rates are frames per second received, NaN when there is none.
type Summary struct {
	Median float64 // over all windows
	Quiet  float64 // 90th percentile: the machine when its neighbours are silent
	Near   float64 // share of the windows with a near round trip; NaN: not probed

	// To the ceiling that was interleaved with it, 0 when there is none: medians of the windows of one repetition by
	// those of the ceiling's; the median, the lowest and the highest of all repetitions.
	Ratio, Low, High float64
	Windows          string // whose ratios these are: "near", "all"
}

// Summary of one of the result's runs.
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

// relate to the ceiling: only windows of the same state where both have enough of them.
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
