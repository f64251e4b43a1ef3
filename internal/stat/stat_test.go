// SPDX-License-Identifier: Apache-2.0
package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	list := []float64{4, 1, 3, 2}
	for p, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.25: 1.75} {
		if got := Percentile(list, p); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
	if !math.IsNaN(Percentile(nil, 0.5)) || !math.IsNaN(Mean(nil)) || list[0] != 4 {
		t.Error("nothing has a percentile, or the list was sorted in place")
	}
	if Median(list) != 2.5 || Median(list[:3]) != 3 || Mean(list) != 2.5 {
		t.Error(Median(list), Median(list[:3]), Mean(list))
	}
}

func TestSpread(t *testing.T) {
	if s := SpreadOf([]float64{5, 1, 9}, Itself); s != (Spread{5, 1, 9}) {
		t.Error(s)
	}
	if s := SpreadOf([]int{3}, func(n int) float64 { return float64(2 * n) }); s != (Spread{6, 6, 6}) {
		t.Error(s)
	}
	if s := SpreadOf(nil, Itself); s != (Spread{}) {
		t.Error(s)
	}
}

func TestResample(t *testing.T) {
	from := []float64{1, 2, 3}
	drawn := Resample(from, rand.New(rand.NewPCG(1, 2)))
	if len(drawn) != 3 || slices.ContainsFunc(drawn, func(f float64) bool { return !slices.Contains(from, f) }) {
		t.Error(drawn)
	}
}

// Values of the tables of Student's t.
func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{2: 4.303, 3: 3.182, 4: 2.776, 8: 2.306, 14: 2.145, 30: 2.042,
		1000: 1.962} {
		if got := Student(freedom); math.Abs(got/want-1) > 0.04 {
			t.Errorf("%d: %.3f, want %.3f", freedom, got, want)
		}
	}
}

func TestGrown(t *testing.T) {
	if Grown(uint64(7), 5) != 2 || Grown(uint64(3), 5) != 3 || Grown(int64(5), 5) != 0 {
		t.Error("counters")
	}
	by := GrownBy(map[string]uint64{"a": 5, "b": 5, "reset": 1, "new": 2},
		map[string]uint64{"a": 4, "b": 5, "reset": 9, "gone": 3})
	if fmt.Sprint(by) != "map[a:1 new:2 reset:1]" {
		t.Error(by)
	}
	if d := GrownBy(map[int]time.Duration{1: 5}, map[int]time.Duration{1: 2}); d[1] != 3 {
		t.Error(d)
	}
}
