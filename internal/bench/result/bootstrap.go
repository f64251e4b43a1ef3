// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/corelane/corelane/internal/stat"
)

// block has the rates of the windows of one repetition. They resemble each other more than those of other repetitions,
// so an interval that treats them as independent would be too narrow.
type block struct{ run, ceiling []float64 }

// series has the blocks of a run, with those of the ceiling that was measured in turns with it, unless hasCeiling is
// false.
type series struct {
	blocks     []block
	hasCeiling bool
}

// weight of n windows beside m of the other run. Both get the same one, so that what moved both cancels out.
func weight(n, m int) int {
	if n > 0 && m > 0 {
		return min(n, m)
	}
	return n
}

func (s series) rate() float64 {
	return logRate(s.blocks, func(b block) ([]float64, int) { return b.run, weight(len(b.run), len(b.ceiling)) })
}

func (s series) ceiling() float64 {
	return logRate(s.blocks, func(b block) ([]float64, int) { return b.ceiling, weight(len(b.ceiling), len(b.run)) })
}

// logRate is the logarithm of the weighted geometric mean of the blocks' medians.
func logRate(blocks []block, part func(block) (windows []float64, weight int)) float64 {
	sum, weights := 0.0, 0
	for _, b := range blocks {
		if windows, weight := part(b); weight > 0 {
			sum += float64(weight) * math.Log(sortedMedian(windows))
			weights += weight
		}
	}
	return sum / float64(weights)
}

// sortedMedian sorts its list, which spares the bootstrap a copy.
func sortedMedian(list []float64) float64 {
	slices.Sort(list)
	return stat.SortedPercentile(list, 0.5)
}

// median returns the median of all windows of the run.
func (s series) median() float64 {
	var all []float64
	for _, b := range s.blocks {
		all = append(all, b.run...)
	}
	return sortedMedian(all)
}

// figure is the logarithm of the compared value: the rate, or its ratio to the ceiling's.
func (s series) figure() float64 {
	if !s.hasCeiling {
		return s.rate()
	}
	return s.rate() - s.ceiling()
}

// resample draws repetitions, then windows within them. The run and the ceiling of a repetition are drawn together,
// because they share the machine's drift.
func (s series) resample(r *rand.Rand) series {
	out := series{make([]block, len(s.blocks)), s.hasCeiling}
	for i := range out.blocks {
		from := s.blocks[r.IntN(len(s.blocks))]
		out.blocks[i] = block{stat.Resample(from.run, r), stat.Resample(from.ceiling, r)}
	}
	return out
}

const resamples = 1000

// interval of 95 % for the difference of two figures. A bootstrap of few blocks is too narrow; it is expanded as in
// Hesterberg, "What Teachers Should Know about the Bootstrap" (2015), section 5.3: by Student's t and n / (n - 1).
func interval(a, b series) (low, high float64) {
	r := rand.New(rand.NewPCG(1, 2)) // the same files give the same answer
	var list []float64
	for range resamples {
		if d := b.resample(r).figure() - a.resample(r).figure(); !math.IsNaN(d) { // NaN without a ceiling window
			list = append(list, d)
		}
	}
	slices.Sort(list)
	n := float64(min(len(a.blocks), len(b.blocks)))
	wider := stat.Student(len(a.blocks)+len(b.blocks)-2) / stat.Normal * math.Sqrt(n/(n-1))
	difference := b.figure() - a.figure()
	return difference - wider*(difference-stat.SortedPercentile(list, 0.025)),
		difference + wider*(stat.SortedPercentile(list, 0.975)-difference)
}
