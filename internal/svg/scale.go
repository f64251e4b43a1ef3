// SPDX-License-Identifier: Apache-2.0
package svg

import "math"

// Scale places values on an axis, in per cent of its length. Plots have no other horizontal unit, so that they fit any
// width without scaling their text.
type Scale struct {
	low, high float64
	step      float64 // between ticks; 0: logarithmic, with a tick for each decade
	Inset     float64 // at both ends, per cent: room for labels inside of the plot
}

const mostTicks = 5 // besides 0

// Linear is a scale from 0 to a round number that is not below any value.
func Linear(largest float64) Scale {
	if !(largest > 0) {
		return Scale{high: 1, step: 1}
	}
	step := roundStep(largest / mostTicks)
	return Scale{high: step * math.Ceil(largest/step*(1-1e-9)), step: step}
}

// Between is a linear scale from a round number below the values to one above them.
func Between(smallest, largest float64) Scale {
	if !(smallest > 0) {
		return Linear(largest)
	}
	step := roundStep(math.Max(largest-smallest, largest/10) / 2)
	low, high := math.Floor(smallest/step), math.Ceil(largest/step)
	if low == high {
		low, high = low-1, high+1
	}
	return Scale{low: step * low, high: step * high, step: step}
}

// Logarithmic is a scale over whole decades around values above 0.
func Logarithmic(smallest, largest float64) Scale {
	if !(smallest > 0) || !(largest >= smallest) {
		return Scale{low: 1, high: 10}
	}
	low, high := math.Floor(math.Log10(smallest)+1e-9), math.Ceil(math.Log10(largest)-1e-9)
	return Scale{low: math.Pow(10, low), high: math.Pow(10, math.Max(high, low+1))}
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

// At is the place of a value, 0 to 100. Values beyond an end are drawn at the end.
func (s Scale) At(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.step == 0 {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	if math.IsNaN(share) {
		share = 0
	}
	return s.Inset + (100-2*s.Inset)*math.Min(1, math.Max(0, share))
}

// Ticks of the axis, from end to end.
func (s Scale) Ticks() []float64 {
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

// Steps is a scale from 0 to n whose ticks are the whole numbers.
func Steps(n int) Scale { return Scale{high: float64(n), step: 1} }
