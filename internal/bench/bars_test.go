// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
)

func runOf(s scenario.Scenario, router string, rate, roundTrip float64) result.Run {
	return result.Run{Scenario: s.Label(), Router: router, Flows: s.Flows, Routes: s.Routes, FrameSizes: s.Sizes,
		Workers: s.Workers, Windows: []result.Window{{Seconds: 1, Received: rate, RoundTrip: roundTrip}}}
}

// A row with a bar passes if its share of the ceiling is not below it, and if the CPUs are near.
func TestMissed(t *testing.T) {
	routed, err := scenario.Find("routed")
	if err != nil {
		t.Fatal(err)
	}
	bridged, err := scenario.Find("bridged") // has no bar
	if err != nil {
		t.Fatal(err)
	}
	tracked := bridged
	tracked.Stateful = true
	ceiling := runOf(routed, result.Ceiling, 100, 200)
	for _, test := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"at the bar", []result.Run{runOf(routed, "corelane", 85, 200), ceiling}, nil},
		{"below", []result.Run{runOf(routed, "corelane", 84.9, 200), ceiling}, []string{"less than 0.85"}},
		{"without a ceiling", []result.Run{runOf(routed, "corelane", 85, 200)}, []string{"not measured together"}},
		{"failed", []result.Run{{Scenario: "routed", Router: "corelane", Flows: 1000, Routes: 1, FrameSizes: []int{64},
			Workers: 1, Error: "no start"}, ceiling}, []string{"not measured together"}},
		{"no bar", []result.Run{runOf(bridged, "corelane", 1, 200), runOf(bridged, result.Ceiling, 100, 200),
			runOf(routed, "ovs", 1, 200)}, []string{"no row has a bar"}},
		{"at the bar of stateless bridging", []result.Run{runOf(tracked, "corelane", 85, 200),
			runOf(bridged, "corelane", 100, 200), runOf(tracked, result.Ceiling, 300, 200)}, nil},
		{"below stateless bridging", []result.Run{runOf(tracked, "corelane", 84, 200),
			runOf(bridged, "corelane", 100, 200)}, []string{"has 0.84 of bridged, less than 0.85"}},
		{"without stateless bridging", []result.Run{runOf(tracked, "corelane", 85, 200),
			runOf(tracked, result.Ceiling, 100, 200)}, []string{"not measured together with bridged"}},
		{"far", []result.Run{runOf(routed, "corelane", 85, 300), runOf(routed, result.Ceiling, 100, 300)},
			[]string{"300 ns"}},
	} {
		missed := Missed(&result.Result{Runs: test.runs})
		if len(missed) != len(test.want) {
			t.Errorf("%s: %q", test.name, missed)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(missed[i], want) {
				t.Errorf("%s: %q, want %q", test.name, missed[i], want)
			}
		}
	}
}

// Each bar is for a row that the benchmark can measure.
func TestBarsHaveScenarios(t *testing.T) {
	for _, b := range bars {
		name, variant, _ := strings.Cut(b.scenario, ", ")
		s, err := scenario.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		s.Flows, s.Routes, s.Stateful = b.flows, b.routes, variant == "stateful"
		run := runOf(s, "corelane", 1, 100)
		if barOf(&run) == nil || *barOf(&run) != b || s.Validate() != nil {
			t.Errorf("%+v is not the bar of %s", b, s.Label())
		}
		if _, err := scenario.Find(b.of); b.of != "" && err != nil {
			t.Error(err)
		}
	}
}
