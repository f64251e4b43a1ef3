// SPDX-License-Identifier: Apache-2.0
package result

import (
	"cmp"
	"fmt"
	"math"
)

// Spread between results, as a share of the rate, which the windows of two results cannot show. A router is started
// once per result, with one memory layout. Machines drift between results, which the ratio to the ceiling cancels.
const (
	startSpread = 0.04
	driftSpread = 0.10
)

const fewest = 2 // repetitions for which there is a spread

// compareRuns compares two runs, by their ratio to the ceiling when both have one.
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

// finite returns f, or 0 for the shares of a ceiling that let nothing through.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// judge decides whether the difference exceeds the interval together with the spread between results.
func (l *Line) judge(a, b series, spread float64) {
	l.Verdict = Noise
	difference := b.figure() - a.figure()
	if math.IsNaN(difference) || math.IsInf(difference, 0) {
		l.Why = "nothing was received in a whole repetition"
		return
	}
	l.Ratio = math.Exp(difference)
	if min(len(a.blocks), len(b.blocks)) < fewest {
		l.Why = "one repetition does not show the spread"
		return
	}
	low, high := interval(a, b)
	if width := high - low; math.IsNaN(width) || math.IsInf(width, 0) {
		l.Why = "nothing was received in too many windows"
		return
	}
	l.Low, l.High = math.Exp(low), math.Exp(high)
	l.Resolution = math.Exp(math.Hypot((high-low)/2, spread)) - 1
	switch {
	case low <= 0 && high >= 0:
	case math.Abs(difference) < math.Log1p(l.Resolution):
		l.Why = fmt.Sprintf("these results do not show differences below %.0f %%", math.Ceil(100*l.Resolution))
	case difference > 0:
		l.Verdict = Faster
	default:
		l.Verdict = Slower
	}
}
