// SPDX-License-Identifier: Apache-2.0
package report

import (
	"math"
	"slices"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(0), "0"}, {number(math.NaN()), none}, {number(math.Inf(1)), none}, {number(15.94), "15.9"}, {number(12345), "12,300"},
		{number(-1234567), "-1,230,000"}, {mpps(165432), "0.165"}, {ratio(0), none}, {ratio(0.5149), "0.51"}, {times(2.34), "2.3"}, {times(52.9), "53"},
		{count(999), "999"}, {count(uint64(1048576)), "1,048,576"}, {plural(1, "route"), "1 route"}, {plural(100000, "flow"), "100,000 flows"},
		{span(4.001, 4.002, number), "4.00"}, {span(4, 9, number), "4.00\u00a0to\u00a09.00"}, {tick(0.30000000000000004), "0.3"}, {tick(1000), "1,000"},
		{short(1), "1"}, {short(1e5), "100\u00a0k"}, {short(1e6), "1\u00a0M"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestScales(t *testing.T) {
	for name, c := range map[string]struct {
		s     scale
		ticks []float64
	}{
		"linear":        {linear(28.4), []float64{0, 10, 20, 30}},
		"round":         {linear(10), []float64{0, 2, 4, 6, 8, 10}},
		"small":         {linear(0.0041), []float64{0, 0.001, 0.002, 0.003, 0.004, 0.005}},
		"nothing":       {linear(0), []float64{0, 1}},
		"not a number":  {linear(math.NaN()), []float64{0, 1}},
		"between":       {between(9.2, 11.9), []float64{8, 10, 12}},
		"one value":     {between(9.2, 9.2), []float64{9, 9.5}},
		"round value":   {between(9, 9), []float64{8.5, 9, 9.5}},
		"from nothing":  {between(0, 9), []float64{0, 2, 4, 6, 8, 10}},
		"decades":       {logarithmic(3.1, 450), []float64{1, 10, 100, 1000}},
		"whole decades": {logarithmic(1, 100000), []float64{1, 10, 100, 1000, 10000, 100000}},
		"one decade":    {logarithmic(10, 10), []float64{10, 100}},
		"below 1":       {logarithmic(0.02, 0.5), []float64{0.01, 0.1, 1}},
		"no logarithm":  {logarithmic(0, 5), []float64{1, 10}},
	} {
		same := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if got := c.s.ticks(); !slices.EqualFunc(got, c.ticks, same) {
			t.Errorf("%s: %v, want %v", name, got, c.ticks)
		}
		if low, high := c.s.at(c.ticks[0]), c.s.at(c.ticks[len(c.ticks)-1]); !same(low, 0) || !same(high, 100) {
			t.Errorf("%s: from %g to %g", name, low, high)
		}
	}
	s := logarithmic(1, 100)
	s.inset = 10
	for v, want := range map[float64]float64{1: 10, 10: 50, 100: 90, 1000: 90, 0: 10} {
		if got := s.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g is at %g, want %g", v, got, want)
		}
	}
}
