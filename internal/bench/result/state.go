// SPDX-License-Identifier: Apache-2.0
package result

import (
	"fmt"
	"math"
)

// A virtual machine's CPUs drift between near and far from each other, and rates with them. Windows are near whose round
// trip was less than nearFactor times the best.
const (
	nearFactor  = 1.5
	enoughNear  = 3 // windows of a repetition, and repetitions, that make near ones alone worth comparing
	notProbed   = "all, round trip not probed"
	nearWindows = "near"
)

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

// choose which windows are compared, and say so: the near ones when every run has enough of them.
func choose(best float64, a, b pair) (take func(Window) bool, said string) {
	near := func(w Window) bool { return w.RoundTrip > 0 && w.RoundTrip < nearFactor*best }
	all := func(Window) bool { return true }
	if math.IsInf(best, 1) {
		return all, notProbed
	}
	for _, run := range []*Run{a.run, a.ceiling, b.run, b.ceiling} {
		if run != nil && !enough(run, near) {
			return all, fmt.Sprintf("all (near: %.0f %% of a, %.0f %% of b)", 100*portion(a.run, near), 100*portion(b.run, near))
		}
	}
	return near, nearWindows
}

func enough(r *Run, near func(Window) bool) bool {
	repetitions := 0
	for _, block := range blocks(r, near) {
		if len(block) >= enoughNear {
			repetitions++
		}
	}
	return repetitions >= enoughNear
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
