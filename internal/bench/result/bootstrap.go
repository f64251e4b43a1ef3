// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"math/rand/v2"
	"slices"
)

// pair is a run and the run of the ceiling that was interleaved with it, or nil.
type pair struct{ run, ceiling *Run }

// series are the rates that are compared, a block per repetition: windows of one repetition resemble each other, so the
// repetitions are what the interval has to be drawn from.
type series struct {
	run, ceiling [][]float64 // the same repetitions in both; ceiling is nil when there is none
}

func (p pair) series(take func(Window) bool) series {
	run := blocks(p.run, take)
	if p.ceiling == nil {
		return series{run: slices.Collect(values(run, run))}
	}
	ceiling := blocks(p.ceiling, take)
	return series{run: slices.Collect(values(run, ceiling)), ceiling: slices.Collect(values(ceiling, run))}
}

// blocks are the rates by repetition.
func blocks(r *Run, take func(Window) bool) [][]float64 {
	var list [][]float64
	for _, w := range r.Windows {
		if w.Repetition >= len(list) {
			list = append(list, make([][]float64, w.Repetition+1-len(list))...)
		}
		if take(w) {
			list[w.Repetition] = append(list[w.Repetition], w.Received)
		}
	}
	return list
}

// values are the blocks of list that are filled in the other, too.
func values(list, other [][]float64) func(yield func([]float64) bool) {
	return func(yield func([]float64) bool) {
		for i := range min(len(list), len(other)) {
			if len(list[i]) > 0 && len(other[i]) > 0 && !yield(list[i]) {
				return
			}
		}
	}
}

func median(list [][]float64) float64 { return Percentile(slices.Concat(list...), 0.5) }

// statistic is the logarithm of the rate, or of its ratio to the ceiling's.
func (s series) statistic() float64 {
	if s.ceiling == nil {
		return math.Log(median(s.run))
	}
	return math.Log(median(s.run) / median(s.ceiling))
}

// resample draws repetitions, then windows within them. The ceiling's repetitions are drawn with the router's: they
// share the machine's drift.
func (s series) resample(r *rand.Rand) series {
	var out series
	for range s.run {
		i := r.IntN(len(s.run))
		out.run = append(out.run, draw(s.run[i], r))
		if s.ceiling != nil {
			out.ceiling = append(out.ceiling, draw(s.ceiling[i], r))
		}
	}
	return out
}

func draw(from []float64, r *rand.Rand) []float64 {
	out := make([]float64, len(from))
	for i := range out {
		out[i] = from[r.IntN(len(from))]
	}
	return out
}

const resamples = 1000

// interval of 95 % for b's statistic less a's. A bootstrap of few blocks is too narrow; it is expanded as in Hesterberg,
// "What Teachers Should Know about the Bootstrap" (2015), section 5.3: by Student's t and n / (n - 1).
func interval(a, b series, difference float64) (low, high float64) {
	r := rand.New(rand.NewPCG(1, 2)) // the same files give the same answer
	list := make([]float64, resamples)
	for i := range list {
		list[i] = b.resample(r).statistic() - a.resample(r).statistic()
	}
	n := float64(min(len(a.run), len(b.run)))
	wider := student(len(a.run)+len(b.run)-2) / normal * math.Sqrt(n/(n-1))
	return difference - wider*(difference-Percentile(list, 0.025)), difference + wider*(Percentile(list, 0.975)-difference)
}

const normal = 1.959964 // 97.5th percentile of the normal distribution

// student is the 97.5th percentile of Student's t distribution (Abramowitz and Stegun 26.7.5).
func student(freedom int) float64 {
	n, z := float64(freedom), normal
	return z + (math.Pow(z, 3)+z)/(4*n) + (5*math.Pow(z, 5)+16*math.Pow(z, 3)+3*z)/(96*n*n) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*math.Pow(z, 3)-15*z)/(384*n*n*n)
}
