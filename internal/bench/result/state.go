// SPDX-License-Identifier: Apache-2.0
package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A virtual machine's CPUs drift between near and far from each other, and rates with them. Windows are near whose round
// trip was less than nearFactor times the best of both results.
const (
	nearFactor = 1.5
	enough     = 3   // near windows of a repetition, and repetitions, that make near windows alone worth comparing
	unlike     = 0.3 // difference of the shares of near windows from which on all windows cannot be compared
)

// pair is a run and the run of the ceiling that was interleaved with it, or nil.
type pair struct{ run, ceiling *Run }

// chosen is what is compared of two results.
type chosen struct {
	a, b         series // of the rates
	relA, relB   series // of the ratios to the ceiling; nil: there is none
	said, unlike string // which windows they are; why they cannot be compared after all
}

// choose the near windows when both have enough of them, else all.
func choose(a, b pair, best float64) chosen {
	if math.IsInf(best, 1) {
		return take(a, b, anyWindow, 1, "not probed")
	}
	near := nearer(best)
	if c := take(a, b, near, enough, "near"); min(len(c.a), len(c.b)) >= enough {
		return c
	}
	x, y := portion(a.run, near), portion(b.run, near)
	c := take(a, b, anyWindow, 1, "all")
	if math.Abs(x-y) > unlike {
		c.unlike = fmt.Sprintf("not the same state of the machine: %.0f %% of a's windows are near, %.0f %% of b's", 100*x, 100*y)
	}
	return c
}

func take(a, b pair, want func(Window) bool, least int, said string) chosen {
	c := chosen{said: said}
	c.a, c.relA = a.series(want, least)
	c.b, c.relB = b.series(want, least)
	return c
}

func anyWindow(Window) bool { return true }

func nearer(best float64) func(Window) bool {
	return func(w Window) bool { return w.RoundTrip > 0 && w.RoundTrip < nearFactor*best }
}

// series has a block for each repetition in which the run, and the ceiling if there is one, have as many windows as we want.
func (p pair) series(want func(Window) bool, least int) (rates, ratios series) {
	run, ceiling := repetitions(p.run, want), repetitions(p.ceiling, want)
	for i := range run {
		switch {
		case len(run[i]) < least:
		case p.ceiling == nil:
			rates = append(rates, received(run[i]))
		case i < len(ceiling) && len(ceiling[i]) >= least:
			rates, ratios = append(rates, received(run[i])), append(ratios, relate(run[i], ceiling[i]))
		}
	}
	return rates, ratios
}

// repetitions are the windows of a run by repetition.
func repetitions(r *Run, want func(Window) bool) [][]Window {
	if r == nil {
		return nil
	}
	var list [][]Window
	for _, w := range r.Windows {
		if w.Repetition >= len(list) {
			list = append(list, make([][]Window, w.Repetition+1-len(list))...)
		}
		if want(w) {
			list[w.Repetition] = append(list[w.Repetition], w)
		}
	}
	return list
}

func received(list []Window) []float64 {
	rates := make([]float64, len(list))
	for i, w := range list {
		rates[i] = w.Received
	}
	return rates
}

// relate each window to the ceiling's that is next to it in time: what the machine did meanwhile cancels out.
func relate(run, ceiling []Window) []float64 {
	ratios := make([]float64, len(run))
	for i, w := range run {
		beside := slices.MinFunc(ceiling, func(x, y Window) int { return cmp.Compare(math.Abs(x.At-w.At), math.Abs(y.At-w.At)) })
		ratios[i] = w.Received / beside.Received
	}
	return ratios
}

func portion(r *Run, near func(Window) bool) float64 {
	n := 0
	for _, w := range r.Windows {
		if near(w) {
			n++
		}
	}
	return float64(n) / float64(len(r.Windows))
}

func bestRoundTrip(r *Result) float64 {
	best := math.Inf(1)
	for _, run := range r.Runs {
		for _, w := range run.Windows {
			if w.RoundTrip > 0 {
				best = math.Min(best, w.RoundTrip)
			}
		}
	}
	return best
}
