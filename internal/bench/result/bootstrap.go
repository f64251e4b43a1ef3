// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"math/rand/v2"
	"slices"
)

// series are rates, or ratios of rates, in blocks, one for each repetition. Windows of a repetition resemble each other
// more than those of others: an interval that takes them for independent is too narrow.
type series [][]float64

// mean is the logarithm of the geometric mean of the blocks' medians, by their numbers of windows.
func (s series) mean() float64 {
	sum, windows := 0.0, 0
	for _, block := range s {
		sum += float64(len(block)) * math.Log(Percentile(block, 0.5))
		windows += len(block)
	}
	return sum / float64(windows)
}

// resample draws blocks, then windows within them.
func (s series) resample(r *rand.Rand) series {
	out := make(series, len(s))
	for i := range out {
		from := s[r.IntN(len(s))]
		out[i] = make([]float64, len(from))
		for k := range out[i] {
			out[i][k] = from[r.IntN(len(from))]
		}
	}
	return out
}

const resamples = 1000

// interval of 95 % for the difference of two means. A bootstrap of few blocks is too narrow; it is expanded as in
// Hesterberg, "What Teachers Should Know about the Bootstrap" (2015), section 5.3: by Student's t and n / (n - 1).
func interval(a, b series) (low, high float64) {
	r := rand.New(rand.NewPCG(1, 2)) // the same files give the same answer
	list := make([]float64, resamples)
	for i := range list {
		list[i] = b.resample(r).mean() - a.resample(r).mean()
	}
	slices.Sort(list)
	n := float64(min(len(a), len(b)))
	wider := student(len(a)+len(b)-2) / normal * math.Sqrt(n/(n-1))
	difference := b.mean() - a.mean()
	return difference - wider*(difference-percentile(list, 0.025)), difference + wider*(percentile(list, 0.975)-difference)
}

const normal = 1.959964 // 97.5th percentile of the normal distribution

// student is the 97.5th percentile of Student's t distribution (Abramowitz and Stegun 26.7.5).
func student(freedom int) float64 {
	n, z := float64(freedom), normal
	return z + (math.Pow(z, 3)+z)/(4*n) + (5*math.Pow(z, 5)+16*math.Pow(z, 3)+3*z)/(96*n*n) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*math.Pow(z, 3)-15*z)/(384*n*n*n)
}
