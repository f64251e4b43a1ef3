// SPDX-License-Identifier: Apache-2.0
package result

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// verdicts counts the verdicts on corelane over many pairs of synthetic results, in which b is faster by a factor.
func verdicts(t *testing.T, m machine, pairs int, factor float64, ceiling bool) map[string]int {
	t.Helper()
	count := map[string]int{}
	for i := range uint64(pairs) {
		a, b := rates{"corelane": 15e6}, rates{"corelane": 15e6 * factor}
		if ceiling {
			a[Ceiling], b[Ceiling] = 28e6, 28e6
		}
		ra, rb := m.measure(2*i, a), m.measure(2*i+1, b)
		run := len(ra.Runs) - 1
		best := math.Min(bestRoundTrip(ra), bestRoundTrip(rb))
		l := compareRuns(pair{&ra.Runs[run], ra.ceiling(&ra.Runs[run])}, pair{&rb.Runs[run], rb.ceiling(&rb.Runs[run])},
			best)
		if l.Router != "corelane" || (l.CeilA > 0) != ceiling {
			t.Fatalf("not the line of corelane: %+v", l)
		}
		count[l.Verdict]++
	}
	return count
}

// with returns a changed copy of the usual machine.
func with(change func(*machine)) machine {
	m := usual
	change(&m)
	return m
}

func TestSameIsNoise(t *testing.T) {
	for name, c := range map[string]struct {
		m       machine
		ceiling bool
		pairs   int
	}{
		"usual machine": {usual, true, 200},
		"calm machine": {with(func(m *machine) {
			m.run, m.repetition, m.far, m.stolen = 0.02, 0.01, 0, 0
		}), true, 60},
		"restless machine":          {with(func(m *machine) { m.far = 4 }), true, 60},
		"calm, no ceiling":          {with(func(m *machine) { m.run, m.far = 0.02, 0 }), false, 60},
		"unlike blocks, no ceiling": {with(func(m *machine) { m.run, m.far, m.repetition = 0, 0, 0.2 }), false, 200},
		"three repetitions":         {with(func(m *machine) { m.repetitions = 3 }), true, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := verdicts(t, c.m, c.pairs, 1, c.ceiling); 20*n[Noise] < 19*c.pairs {
				t.Errorf("of %d pairs of the same: %v", c.pairs, n)
			}
		})
	}
}

func TestDifferenceIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		m       machine
		factor  float64
		verdict string
	}{
		"five repetitions":   {with(func(m *machine) { m.far = 0 }), 1.2, Faster},
		"many repetitions":   {with(func(m *machine) { m.far, m.repetitions = 0, 15 }), 1.1, Faster},
		"slower":             {with(func(m *machine) { m.far, m.repetitions = 0, 15 }), 0.9, Slower},
		"unlike repetitions": {with(func(m *machine) { m.far, m.repetition, m.repetitions = 0, 0.3, 15 }), 1.1, Faster},
		"restless machine":   {with(func(m *machine) { m.far, m.windows, m.repetitions = 4, 40, 10 }), 1.1, Faster},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := verdicts(t, c.m, 30, c.factor, true); n[c.verdict] < 24 {
				t.Errorf("of 30 pairs with a factor of %g: %v", c.factor, n)
			}
		})
	}
}

// Windows of a repetition are not independent: many more of them must not narrow the interval.
func TestWindowsOfARepetitionAreOneBlock(t *testing.T) {
	width := func(windows int) float64 {
		m := with(func(m *machine) { m.repetition, m.far, m.windows = 0.2, 0, windows })
		l := compareLine(t, m.measure(1, rates{"corelane": 15e6}), m.measure(2, rates{"corelane": 15e6}))
		return l.High/l.Low - 1
	}
	if few, many := width(10), width(160); many < 0.7*few || many < 0.2 {
		t.Errorf("interval is %.3f wide of 10 windows per repetition, %.3f of 160", few, many)
	}
}

func compareLine(t *testing.T, a, b *Result) Line {
	t.Helper()
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Lines, func(l Line) bool { return l.Router == "corelane" })
	return c.Lines[i]
}

func TestVerdictSaysWhy(t *testing.T) {
	// Hardly any noise: intervals of about 1 %, so that no verdict depends on the samples of the bootstrap.
	calm := with(func(m *machine) {
		m.run, m.repetition, m.start, m.far, m.stolen, m.turn, m.window = 0, 0, 0, 0, 0, 0.002, 0.01
	})
	one := calm
	one.repetitions = 1
	measure := func(m machine, rate float64) *Result { return m.measure(5, rates{"corelane": rate, Ceiling: 28e6}) }
	far := measure(calm, 15e6)
	for i := range far.Runs {
		for k := range far.Runs[i].Windows {
			far.Runs[i].Windows[k].RoundTrip *= 6
		}
	}
	// where both wait for the same memory
	slow := func(m machine) *Result { return m.measure(7, rates{"corelane": 8e6, Ceiling: 8e6}) }
	alone := func(m machine, rate float64) *Result { return m.measure(6, rates{"corelane": rate}) }
	for name, c := range map[string]struct {
		a, b         *Result
		verdict, why string
	}{
		"faster":         {measure(calm, 15e6), measure(calm, 17e6), Faster, ""},
		"same":           {measure(calm, 15e6), measure(calm, 15e6), Noise, ""},
		"small":          {measure(calm, 15e6), measure(calm, 15.4e6), Noise, "below 5 %"},
		"no ceiling":     {alone(calm, 15e6), alone(calm, 15.9e6), Noise, "below 11 %"},
		"one repetition": {measure(one, 15e6), measure(one, 30e6), Noise, "one repetition"},
		"other state":    {measure(calm, 15e6), far, Noise, ""},
		"sometimes":      {measure(calm, 15e6), nowAndThen(measure(calm, 15e6)), Noise, "in too many windows"},
		"other ceiling":  {measure(calm, 15e6), slow(calm), Noise, "the ceiling itself"},
		"no ceiling left": {silent(ceilingLast(measure(calm, 15e6))), measure(calm, 15e6), Noise,
			"in a whole repetition"},
		"nothing": {measure(calm, 15e6), silent(measure(calm, 15e6)), Noise, "in a whole repetition"},
	} {
		t.Run(name, func(t *testing.T) {
			l := compareLine(t, c.a, c.b)
			if _, err := json.Marshal(l); err != nil {
				t.Error(err)
			}
			if l.Verdict != c.verdict || !strings.Contains(l.Why, c.why) || (l.Why == "") != (c.why == "") {
				t.Errorf("%#v", l)
			}
		})
	}
}

// silent returns the result of a router that let nothing through.
func silent(r *Result) *Result {
	windows := r.Runs[len(r.Runs)-1].Windows
	for i := range windows {
		windows[i].Received = 0
	}
	return r
}

// ceilingLast returns the result with the ceiling's run as the last one.
func ceilingLast(r *Result) *Result {
	slices.Reverse(r.Runs)
	return r
}

// nowAndThen returns the result of a router that has a rate of 0 in four of ten windows of two repetitions.
func nowAndThen(r *Result) *Result {
	for i := range r.Runs[len(r.Runs)-1].Windows {
		if w := &r.Runs[len(r.Runs)-1].Windows[i]; w.Repetition > 2 && i%10 < 4 {
			w.Received = 0
		}
	}
	return r
}

func TestStatesOfTheMachine(t *testing.T) {
	m := with(func(m *machine) { m.far = 0 })
	measure := func(seed uint64, rate float64) *Result {
		return m.measure(seed, rates{"corelane": rate, Ceiling: 28e6})
	}
	a, b := measure(1, 15e6), measure(2, 15e6)
	if l := compareLine(t, a, b); l.Windows != "near" {
		t.Errorf("both near: %+v", l)
	}
	for i := range b.Runs {
		for k := range b.Runs[i].Windows {
			b.Runs[i].Windows[k].RoundTrip = 400
			if b.Runs[i].Router != Ceiling {
				b.Runs[i].Windows[k].Received *= 0.5
			}
		}
	}
	if l := compareLine(t, a, b); l.Windows != "all" || l.Verdict != Noise ||
		!strings.Contains(l.Why, "100 % of a's windows are near, 0 % of b's") {
		t.Errorf("near and far: %+v", l)
	}
	for _, r := range []*Result{a, b} {
		for i := range r.Runs {
			for k := range r.Runs[i].Windows {
				r.Runs[i].Windows[k].RoundTrip = 0
			}
		}
	}
	if l := compareLine(t, a, b); l.Windows != "not probed" || l.Verdict != Slower {
		t.Errorf("not probed: %+v", l)
	}
}

// The order of the windows within a repetition does not matter.
func TestOrderOfWindowsSaysNothing(t *testing.T) {
	a, b := usual.measure(1, rates{"corelane": 15e6, Ceiling: 28e6}),
		usual.measure(2, rates{"corelane": 15e6, Ceiling: 28e6})
	want := compareLine(t, a, b)
	slices.Reverse(b.Runs[1].Windows)
	slices.SortStableFunc(b.Runs[1].Windows, func(x, y Window) int { return x.Repetition - y.Repetition })
	if got := compareLine(t, a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
	s := pair{run: &b.Runs[1]}.series(anyWindow)
	for _, block := range s.blocks {
		if !slices.IsSorted(block.run) {
			t.Errorf("the bootstrap draws from %v", block.run)
		}
	}
}

func TestCompareIsDeterministic(t *testing.T) {
	a, b := usual.measure(1, rates{"corelane": 15e6}), usual.measure(2, rates{"corelane": 15e6})
	if x, y := compareLine(t, a, b), compareLine(t, a, b); x.Low != y.Low || x.High != y.High {
		t.Errorf("%g to %g, then %g to %g", x.Low, x.High, y.Low, y.High)
	}
}
