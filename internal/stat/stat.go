// SPDX-License-Identifier: Apache-2.0

// Package stat has the statistics of measurements and the differences of counters.
package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Percentile of values in any order, p from 0 to 1, interpolated linearly; NaN without values.
func Percentile(values []float64, p float64) float64 {
	return SortedPercentile(slices.Sorted(slices.Values(values)), p)
}

// SortedPercentile is Percentile of values in ascending order.
func SortedPercentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Median of values in any order; NaN without values.
func Median(values []float64) float64 { return Percentile(values, 0.5) }

// Mean of values; NaN without values.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Spread is the median and the range of values.
type Spread struct{ Median, Low, High float64 }

// SpreadOf is the spread of one figure of each sample; all 0 without samples.
func SpreadOf[T any](samples []T, figure func(T) float64) Spread {
	if len(samples) == 0 {
		return Spread{}
	}
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	slices.Sort(values)
	return Spread{SortedPercentile(values, 0.5), values[0], values[len(values)-1]}
}

// Itself returns its argument: the figure of a sample that is a number.
func Itself(f float64) float64 { return f }

// Resample draws as many values as there are, with replacement: a step of a bootstrap.
func Resample(values []float64, r *rand.Rand) []float64 {
	out := make([]float64, len(values))
	for i := range out {
		out[i] = values[r.IntN(len(values))]
	}
	return out
}

// Normal is the 97.5th percentile of the normal distribution.
const Normal = 1.959964

// Student is the 97.5th percentile of Student's t distribution (Abramowitz and Stegun 26.7.5).
func Student(freedom int) float64 {
	n, z := float64(freedom), Normal
	return z + (math.Pow(z, 3)+z)/(4*n) + (5*math.Pow(z, 5)+16*math.Pow(z, 3)+3*z)/(96*n*n) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*math.Pow(z, 3)-15*z)/(384*n*n*n)
}
