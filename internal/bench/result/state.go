// SPDX-License-Identifier: Apache-2.0
package result

import (
	"fmt"
	"math"
	"slices"
)

// The CPUs of a virtual machine drift between near and far from each other, and rates change with that. A window is
// near when its round trip was less than nearFactor times the best of both results.
const (
	nearFactor = 1.5
	enough     = 3   // near windows in a repetition, and such repetitions, for comparing near windows only
	unlike     = 0.3 // difference between the shares of near windows that makes all windows incomparable
	changed    = 1.5 // factor between two ceilings that makes shares of them incomparable
)

// pair is a run and the run of the ceiling that was interleaved with it, or nil.
type pair struct{ run, ceiling *Run }

// chosen has the windows of two results that are compared.
type chosen struct {
	a, b         series
	said, unlike string // which windows they are; why they cannot be compared
}

// choose takes the near windows when both results have enough of them, else all.
func choose(a, b pair, best float64) chosen {
	every := chosen{a: a.series(anyWindow), b: b.series(anyWindow), said: "all"}
	if math.IsInf(best, 1) {
		every.said = "not probed"
		return every
	}
	near := nearer(best)
	if a.enough(near) && b.enough(near) {
		return chosen{a: a.series(near), b: b.series(near), said: "near"}
	}
	if x, y := portion(a.run, near), portion(b.run, near); math.Abs(x-y) > unlike {
		every.unlike = fmt.Sprintf("not the same state of the machine: %.0f %% of a's windows are near, %.0f %% of b's",
			100*x, 100*y)
	}
	return every
}

// otherMachine says when the ceilings of the results are too far apart. What slows the machine down does not slow all
// routers by the same factor, so shares of the ceiling cannot be compared then.
func (c *chosen) otherMachine() string {
	if !c.a.hasCeiling {
		return ""
	}
	x, y := math.Exp(c.a.ceiling())/1e6, math.Exp(c.b.ceiling())/1e6
	if max(x, y) < changed*min(x, y) {
		return ""
	}
	return fmt.Sprintf("not the same state of the machine: the ceiling itself went from %s to %s Mpps", Digits(x),
		Digits(y))
}

func anyWindow(Window) bool { return true }

func nearer(best float64) func(Window) bool {
	return func(w Window) bool { return w.RoundTrip > 0 && w.RoundTrip < nearFactor*best }
}

// Near selects the windows in which the CPUs were near to each other, and those that were not probed.
func (r *Result) Near() func(Window) bool {
	near := nearer(bestRoundTrip(r))
	return func(w Window) bool { return w.RoundTrip == 0 || near(w) }
}

func (p pair) enough(want func(Window) bool) bool {
	return repeated(p.run, want) && (p.ceiling == nil || repeated(p.ceiling, want))
}

func repeated(r *Run, want func(Window) bool) bool {
	blocks := slices.DeleteFunc(repetitions(r, want), func(b []float64) bool { return len(b) < enough })
	return len(blocks) >= enough
}

// series has a block for each repetition with wanted windows. Their rates are in ascending order, so that the draws of
// a bootstrap do not depend on the order in which windows were measured.
func (p pair) series(want func(Window) bool) series {
	run, ceiling := repetitions(p.run, want), repetitions(p.ceiling, want)
	s := series{hasCeiling: p.ceiling != nil}
	for i := range max(len(run), len(ceiling)) {
		var b block
		if i < len(run) {
			b.run = slices.Sorted(slices.Values(run[i]))
		}
		if i < len(ceiling) {
			b.ceiling = slices.Sorted(slices.Values(ceiling[i]))
		}
		if len(b.run)+len(b.ceiling) > 0 {
			s.blocks = append(s.blocks, b)
		}
	}
	return s
}

// repetitions are the rates of a run by repetition.
func repetitions(r *Run, want func(Window) bool) [][]float64 {
	if r == nil {
		return nil
	}
	var list [][]float64
	for _, w := range r.Windows {
		if w.Repetition >= len(list) {
			list = append(list, make([][]float64, w.Repetition+1-len(list))...)
		}
		if want(w) {
			list[w.Repetition] = append(list[w.Repetition], w.Received)
		}
	}
	return list
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
