// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"testing"
)

// drifting makes a run with half the rate and twice the round trip in the windows for which far is true.
func drifting(router string, rate float64, far func(repetition, window int) bool) Run {
	r := Run{Scenario: "vxlan-encap", Router: router, Flows: 1, Workers: 1, FrameSizes: []int{64}}
	for repetition := range 4 {
		for window := range 10 {
			w := Window{Repetition: repetition, Seconds: 0.2, Received: rate * (1 + 0.01*float64(repetition)),
				RoundTrip: 100}
			if far(repetition, window) {
				w.Received, w.RoundTrip = w.Received/2, 300
			}
			r.Windows = append(r.Windows, w)
		}
	}
	return r
}

func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want) || math.IsNaN(got) {
		t.Errorf("%s %g, want %g", what, got, want)
	}
}

func TestSummaryComparesWindowsOfTheSameState(t *testing.T) {
	mostly := func(_, window int) bool { return window < 6 }
	seldom := func(_, window int) bool { return window < 1 }
	r := &Result{Runs: []Run{drifting("corelane", 10e6, mostly), drifting(Ceiling, 20e6, seldom)}}
	s := r.Summary(&r.Runs[0])
	about(t, "ratio", s.Ratio, 0.5)
	about(t, "low", s.Low, 0.5)
	about(t, "high", s.High, 0.5)
	about(t, "quiet", s.Quiet, 10.21e6)
	about(t, "near", s.Near, 0.4)
	if s.Median > 6e6 || s.Windows != "near" {
		t.Errorf("%+v", s)
	}
	if c := r.Summary(&r.Runs[1]); c.Ratio != 0 || c.Windows != "" || c.Median < 20e6 {
		t.Errorf("ceiling: %+v", c)
	}
}

// A run with hardly any near windows is compared over all windows.
func TestSummaryWithoutNearWindows(t *testing.T) {
	always := func(int, int) bool { return true }
	never := func(int, int) bool { return false }
	r := &Result{Runs: []Run{drifting("corelane", 10e6, always), drifting(Ceiling, 20e6, never)}}
	s := r.Summary(&r.Runs[0])
	about(t, "ratio", s.Ratio, 0.25)
	if s.Windows != "all" || s.Near != 0 {
		t.Errorf("%+v", s)
	}
}

// Ratios are taken within a round: what changes both routers from round to round does not spread the ratio.
func TestSummaryPairsRounds(t *testing.T) {
	never := func(int, int) bool { return false }
	r := &Result{Runs: []Run{drifting("corelane", 10e6, never), drifting(Ceiling, 20e6, never)}}
	for i := range r.Runs {
		for j := range r.Runs[i].Windows {
			w := &r.Runs[i].Windows[j]
			w.Received, w.RoundTrip = w.Received*[]float64{1, 3, 0.5, 2}[w.Repetition], 0
		}
	}
	// interrupted before the ceiling's turn
	r.Runs[0].Windows = append(r.Runs[0].Windows, Window{Repetition: 4, Seconds: 0.2, Received: 1})
	s := r.Summary(&r.Runs[0])
	about(t, "low", s.Low, 0.5)
	about(t, "high", s.High, 0.5)
	if !math.IsNaN(s.Near) || s.Windows != "all" {
		t.Errorf("%+v", s)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	r := &Result{Runs: []Run{{Scenario: "vxlan-encap", Router: "ovs", Flows: 1, Workers: 1, Error: "no"}}}
	if s := r.Summary(&r.Runs[0]); !math.IsNaN(s.Median) || !math.IsNaN(s.Quiet) || s.Ratio != 0 {
		t.Errorf("%+v", s)
	}
}
