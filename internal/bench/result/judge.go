// SPDX-License-Identifier: Apache-2.0
package result

import (
	"cmp"
	"fmt"
	"math"
)

// What no interval from within two results can hold, as a share of the rate: each router is started once per result,
// with the luck of its memory layout; and machines drift between results, which the ratio to the ceiling cancels.
const (
	startSpread = 0.04
	driftSpread = 0.10
)

const fewest = 2 // repetitions; the spread between them cannot be told from one

// compareRuns of two results, each with its ceiling. The ceiling counts when both have it.
func compareRuns(a, b pair, best float64) Line {
	if a.ceiling == nil || b.ceiling == nil {
		a.ceiling, b.ceiling = nil, nil
	}
	c := choose(a, b, best)
	l := Line{Key: a.run.Key(), Singles: singles(a.run, b.run), Windows: c.said, A: c.a.median(), B: c.b.median()}
	spread := driftSpread
	if c.a.hasCeiling {
		spread = startSpread
		l.CeilA, l.CeilB = finite(math.Exp(c.a.figure())), finite(math.Exp(c.b.figure()))
	}
	l.judge(c.a, c.b, spread)
	if why := cmp.Or(c.unlike, c.otherMachine()); l.Verdict != Noise && why != "" {
		l.Verdict, l.Why = Noise, why
	}
	return l
}

// finite or 0: of a ceiling that let nothing through there are no shares.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// judge whether a difference is more than noise: than the interval and the spread between results, which are independent.
func (l *Line) judge(a, b series, spread float64) {
	l.Verdict = Noise
	difference := b.figure() - a.figure()
	if math.IsNaN(difference) || math.IsInf(difference, 0) {
		l.Why = "there is a repetition in which nothing was received"
		return
	}
	l.Ratio = math.Exp(difference)
	if min(len(a.blocks), len(b.blocks)) < fewest {
		l.Why = "one repetition tells nothing of the spread"
		return
	}
	low, high := interval(a, b)
	if width := high - low; math.IsNaN(width) || math.IsInf(width, 0) {
		l.Why = "in too many windows nothing was received"
		return
	}
	l.Low, l.High = math.Exp(low), math.Exp(high)
	l.Resolution = math.Exp(math.Hypot((high-low)/2, spread)) - 1
	switch {
	case low <= 0 && high >= 0:
	case math.Abs(difference) < math.Log1p(l.Resolution):
		l.Why = fmt.Sprintf("these results cannot tell less than %.0f %%", math.Ceil(100*l.Resolution))
	case difference > 0:
		l.Verdict = Faster
	default:
		l.Verdict = Slower
	}
}
