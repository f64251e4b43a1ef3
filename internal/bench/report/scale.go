// SPDX-License-Identifier: Apache-2.0
package report

import "math"

// scale places values on an axis, in per cent of its length. Plots have no other horizontal unit: so they fit any width
// without their letters changing size.
type scale struct {
	low, high float64
	step      float64 // between ticks; 0: logarithmic, with a tick for each decade
	inset     float64 // at both ends, per cent: room for labels inside of the plot
}

const mostTicks = 5 // besides 0

// linear scale from 0 to a round number that is not below any value.
func linear(largest float64) scale {
	if !(largest > 0) {
		return scale{high: 1, step: 1}
	}
	step := roundStep(largest / mostTicks)
	return scale{high: step * math.Ceil(largest/step*(1-1e-9)), step: step}
}

// between is a linear scale whose ends are round numbers around the values.
func between(smallest, largest float64) scale {
	if !(smallest > 0) {
		return linear(largest)
	}
	step := roundStep(math.Max(largest-smallest, largest/10) / 2)
	low, high := math.Floor(smallest/step), math.Ceil(largest/step)
	if low == high {
		low, high = low-1, high+1
	}
	return scale{low: step * low, high: step * high, step: step}
}

// logarithmic scale over whole decades around values above 0.
func logarithmic(smallest, largest float64) scale {
	if !(smallest > 0) || !(largest >= smallest) {
		return scale{low: 1, high: 10}
	}
	low, high := math.Floor(math.Log10(smallest)+1e-9), math.Ceil(math.Log10(largest)-1e-9)
	return scale{low: math.Pow(10, low), high: math.Pow(10, math.Max(high, low+1))}
}

// roundStep is the 1, 2 or 5 of a decade that is not below a value.
func roundStep(f float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(f)))
	for _, n := range []float64{1, 2, 5} {
		if n*decade >= f*(1-1e-9) {
			return n * decade
		}
	}
	return 10 * decade
}

// at is where a value is, 0..100. What is beyond an end is drawn at the end.
func (s scale) at(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.step == 0 {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	if math.IsNaN(share) {
		share = 0
	}
	return s.inset + (100-2*s.inset)*math.Min(1, math.Max(0, share))
}

// ticks of the axis, from end to end.
func (s scale) ticks() []float64 {
	var list []float64
	if s.step == 0 {
		for n := math.Round(math.Log10(s.low)); n <= math.Round(math.Log10(s.high)); n++ {
			list = append(list, math.Pow(10, n))
		}
		return list
	}
	for n := math.Round(s.low / s.step); n <= math.Round(s.high/s.step); n++ {
		list = append(list, n*s.step)
	}
	return list
}
