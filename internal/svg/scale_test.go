// SPDX-License-Identifier: Apache-2.0
package svg

import (
	"math"
	"slices"
	"testing"
)

func TestScales(t *testing.T) {
	for name, c := range map[string]struct {
		s     Scale
		ticks []float64
	}{
		"linear":        {Linear(28.4), []float64{0, 10, 20, 30}},
		"round":         {Linear(10), []float64{0, 2, 4, 6, 8, 10}},
		"small":         {Linear(0.0041), []float64{0, 0.001, 0.002, 0.003, 0.004, 0.005}},
		"nothing":       {Linear(0), []float64{0, 1}},
		"not a number":  {Linear(math.NaN()), []float64{0, 1}},
		"between":       {Between(9.2, 11.9), []float64{8, 10, 12}},
		"one value":     {Between(9.2, 9.2), []float64{9, 9.5}},
		"round value":   {Between(9, 9), []float64{8.5, 9, 9.5}},
		"from nothing":  {Between(0, 9), []float64{0, 2, 4, 6, 8, 10}},
		"decades":       {Logarithmic(3.1, 450), []float64{1, 10, 100, 1000}},
		"whole decades": {Logarithmic(1, 100000), []float64{1, 10, 100, 1000, 10000, 100000}},
		"one decade":    {Logarithmic(10, 10), []float64{10, 100}},
		"below 1":       {Logarithmic(0.02, 0.5), []float64{0.01, 0.1, 1}},
		"no logarithm":  {Logarithmic(0, 5), []float64{1, 10}},
	} {
		same := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if got := c.s.Ticks(); !slices.EqualFunc(got, c.ticks, same) {
			t.Errorf("%s: %v, want %v", name, got, c.ticks)
		}
		if low, high := c.s.At(c.ticks[0]), c.s.At(c.ticks[len(c.ticks)-1]); !same(low, 0) || !same(high, 100) {
			t.Errorf("%s: from %g to %g", name, low, high)
		}
	}
	s := Logarithmic(1, 100)
	s.Inset = 10
	for v, want := range map[float64]float64{1: 10, 10: 50, 100: 90, 1000: 90, 0: 10} {
		if got := s.At(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g is at %g, want %g", v, got, want)
		}
	}
}
