// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/bench/result"
)

func meter(s *simulated) *Meter { return &Meter{Trialer: s, Options: Default()} }

func TestSearchFindsTheRate(t *testing.T) {
	const fast = 100e6
	for name, c := range map[string]struct {
		s     simulated
		start float64
		allow float64 // error of the answer besides the resolution
	}{
		"exact start":         {simulated{capacity: 10e6, generator: fast}, 10e6, 0},
		"start too high":      {simulated{capacity: 10e6, generator: fast}, 17e6, 0},
		"start too low":       {simulated{capacity: 10e6, generator: fast}, 3e6, 0},
		"start far too high":  {simulated{capacity: 0.5e6, generator: fast}, 20e6, 0},
		"noise":               {simulated{capacity: 10e6, generator: fast, noise: 0.03}, 10e6, 0.03},
		"accidents":           {simulated{capacity: 10e6, generator: fast, accidents: 0.2}, 10e6, 0.02},
		"late now and then":   {simulated{capacity: 10e6, generator: fast, accidents: 0.2, late: true}, 10e6, 0.02},
		"often late":          {simulated{capacity: 10e6, generator: fast, accidents: 0.6, late: true}, 10e6, 0.02},
		"generator just fine": {simulated{capacity: 10e6, generator: 10.5e6}, 10e6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := meter(&c.s)
			s, err := m.Search(t.Context(), 1e-4, c.start)
			if err != nil {
				t.Fatal(err)
			}
			off := s.Rate/c.s.capacity - 1
			if off > c.allow+1e-4 || off < -m.Resolution-c.allow {
				t.Errorf("found %.0f of %.0f in %d trials (%s)", s.Rate, c.s.capacity, len(s.Trials), s.Limited)
			}
			if s.Limited != "" {
				t.Errorf("limited: %s", s.Limited)
			}
		})
	}
}

func TestLossIsVerified(t *testing.T) {
	s := &simulated{capacity: 10e6, generator: 100e6, accidents: 0.5}
	found, err := meter(s).Search(t.Context(), 0, 9e6)
	if err != nil {
		t.Fatal(err)
	}
	repeated := 0
	for i, trial := range found.Trials {
		if trial.Repeated {
			repeated++
			if before := found.Trials[i-1]; before.Passed || before.Rate != trial.Rate || before.Why == "" {
				t.Errorf("trial %d repeats %+v", i, before)
			}
		}
		if trial.Passed == (trial.Why != "") {
			t.Errorf("trial %d: passed %v, why %q", i, trial.Passed, trial.Why)
		}
	}
	if repeated == 0 {
		t.Error("no lossy trial was repeated")
	}
}

func TestLossIsExplained(t *testing.T) {
	for want, s := range map[string]*simulated{
		"no room in the router's queue for 10000000": {capacity: 5e6, generator: 100e6},
		"router: port_rx_error 5000": {capacity: 100e6, generator: 100e6,
			accidents: 1},
		"router: port_rx_error 5000, other work had CPU 1 for 7.0 ms": {capacity: 100e6, generator: 100e6, accidents: 1,
			waited: 7 * time.Millisecond},
		"generator late with 5000": {capacity: 100e6, generator: 100e6, accidents: 1,
			late: true},
		"no room in the router's queue for 2, router: tx_full 1": {capacity: 9999999, generator: 100e6, sinkFull: 1e-7},
	} {
		found, err := meter(s).Search(t.Context(), 0, 10e6)
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Trials[0].Why; got != want && !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A generator that is always late must not be reported as a limit of the router.
func TestGeneratorLimit(t *testing.T) {
	s := &simulated{capacity: 20e6, generator: 10e6}
	found, err := meter(s).Search(t.Context(), 0, 11e6)
	if err != nil {
		t.Fatal(err)
	}
	if found.Rate > 10.02e6 || found.Rate < 9.9e6 {
		t.Errorf("found %.0f", found.Rate)
	}
	if !strings.HasPrefix(found.Limited, "the generator did not keep 10.") ||
		!strings.Contains(found.Limited, "generator late with") {
		t.Errorf("limited: %q", found.Limited)
	}
	strict, err := meter(s).Stricter(t.Context(), 0, found)
	if err != nil || strict.Limited != found.Limited || strict.Rate != found.Rate {
		t.Errorf("%+v, %v", strict, err)
	}
}

// The same holds when every trial of the generator is disturbed.
func TestGeneratorIsAlwaysDisturbed(t *testing.T) {
	s := &simulated{capacity: 20e6, generator: 100e6, accidents: 1, late: true}
	m := meter(s)
	m.Budget = 1000
	found, err := m.Search(t.Context(), 0, 1e6)
	if err != nil || found.Rate != 0 || !strings.Contains(found.Limited, "the generator did not keep") {
		t.Errorf("%.0f, %q, %v", found.Rate, found.Limited, err)
	}
	for i, trial := range found.Trials[:maxVoid+1] {
		if (trial.Rate == 1e6) != (i < maxVoid) {
			t.Errorf("trial %d at %.0f", i, trial.Rate)
		}
	}
}

func TestStricterUsesWhatIsKnown(t *testing.T) {
	s := &simulated{capacity: 10e6, generator: 100e6}
	m := meter(s)
	pdr, err := m.Search(t.Context(), 1e-4, 12e6)
	if err != nil {
		t.Fatal(err)
	}
	before := s.trials
	ndr, err := m.Stricter(t.Context(), 0, pdr)
	if err != nil || ndr.Rate != pdr.Rate || len(ndr.Trials) != 1 || s.trials != before {
		t.Errorf("%+v after %d more trials, %v", ndr, s.trials-before, err)
	}

	s.accidents, s.capacity = 1, 1e9 // now every trial loses some, too few for PDR
	m.Budget = 200
	pdr.Trials, pdr.Rate = nil, 1e9
	for range 3 {
		pdr.Trials = append(pdr.Trials, result.Trial{Rate: 1e9, Sent: 2e9, Lost: 5000, Passed: true})
	}
	if ndr, err = m.Stricter(t.Context(), 0, pdr); err != nil || ndr.Rate != 0 || ndr.Limited != "" {
		t.Errorf("%.0f %q, %v", ndr.Rate, ndr.Limited, err)
	}
}

func TestRaise(t *testing.T) {
	pdr := &result.Search{LossRatio: 1e-4, Rate: 5, Trials: []result.Trial{{Rate: 5, Passed: true}}}
	Raise(pdr,
		&result.Search{Rate: 7, Trials: []result.Trial{{Rate: 4, Passed: true}, {Rate: 8}, {Rate: 7, Passed: true}}})
	if pdr.Rate != 7 || len(pdr.Trials) != 2 || !pdr.Trials[1].Passed {
		t.Errorf("%+v", pdr)
	}
}

func TestStricterAfterNothing(t *testing.T) {
	s := &simulated{capacity: 0, generator: 100e6}
	m := meter(s)
	pdr, err := m.Search(t.Context(), 1e-4, 1e6)
	if err != nil || pdr.Rate != 0 || pdr.Limited != "" {
		t.Fatalf("%+v, %v", pdr, err)
	}
	if ndr, err := m.Stricter(t.Context(), 0, pdr); err != nil || ndr.Rate != 0 {
		t.Errorf("%+v, %v", ndr, err)
	}
}

func TestNeverMoreTrialsThanTheBudget(t *testing.T) {
	for budget := 1; budget < 12; budget++ {
		s := &simulated{capacity: 7e6, generator: 100e6}
		m := meter(s)
		m.Budget = budget
		found, err := m.Search(t.Context(), 0, 10e6)
		if err != nil || len(found.Trials) > budget || s.trials > budget {
			t.Fatalf("budget %d: %d trials, %v", budget, s.trials, err)
		}
		if !strings.HasPrefix(found.Limited, "stopped after") {
			t.Errorf("budget %d: %.0f, %q", budget, found.Rate, found.Limited)
		}
	}
}

func TestInterruptLeavesWhatWasFound(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	s := &simulated{capacity: 10e6, generator: 100e6}
	s.onTrial = func(n int) {
		if n == 6 {
			cancel(stop)
		}
	}
	found, err := meter(s).Search(ctx, 0, 16e6)
	if !errors.Is(err, stop) || len(found.Trials) != 5 || !strings.HasPrefix(found.Limited, "not finished") {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestSaturate(t *testing.T) {
	s := &simulated{capacity: 10e6, generator: 20e6}
	m := meter(s)
	windows, o, err := m.Saturate(t.Context(), 3, 100)
	if err != nil || len(windows) != m.Windows || o.Total == nil {
		t.Fatalf("%d windows, %v", len(windows), err)
	}
	w := windows[1]
	if w.Repetition != 3 || w.At <= 100 || math.Abs(w.Received/10e6-1) > 0.01 || math.Abs(w.Idle-0.5) > 0.01 ||
		math.Abs(w.RoundTrip-110) > 1 {
		t.Errorf("%+v", w)
	}
}

func TestLatencies(t *testing.T) {
	s := &simulated{capacity: 10e6, generator: 20e6}
	list, err := meter(s).Latencies(t.Context(), "NDR", 8e6)
	if err != nil || len(list) != 4 {
		t.Fatalf("%v, %v", list, err)
	}
	for i, want := range []struct {
		load string
		rate float64
	}{{"10% NDR", 0.8e6}, {"50% NDR", 4e6}, {"90% NDR", 7.2e6}, {Saturation, 10e6}} {
		if l := list[i]; l.Load != want.load || math.Abs(l.Rate/want.rate-1) > 1e-6 {
			t.Errorf("%s at %.0f", l.Load, l.Rate)
		}
	}
	l := list[0]
	for _, c := range []struct{ got, low float64 }{{l.P50, 1}, {l.P90, 1}, {l.P99, 2}, {l.P999, 4}, {l.Max, 64}} {
		if c.got < c.low || c.got > c.low*1.04 {
			t.Errorf("%g, want %g", c.got, c.low)
		}
	}
	if list, err = meter(s).Latencies(t.Context(), "NDR", 0); err != nil || len(list) != 1 ||
		list[0].Load != Saturation {
		t.Errorf("without a rate: %v, %v", list, err)
	}
}

func TestPercentilesOfNothing(t *testing.T) {
	if l := Percentiles(nil); l.P50 != 0 || l.Max != 0 {
		t.Errorf("%+v", l)
	}
}

func TestBurst(t *testing.T) {
	for _, c := range []struct {
		queue uint64
		limit bool
	}{{0, false}, {1, false}, {63, false}, {64, false}, {1024, false}, {5000, false}, {1 << 20, true},
		{1 << 40, true}} {
		s := &simulated{capacity: 10e6, generator: 20e6, queue: c.queue}
		m := meter(s)
		b, err := m.Burst(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := min(c.queue, m.BurstLimit)
		if b.Frames > want || float64(b.Frames) < float64(want)*(1-m.Resolution)-1 || b.Limit != c.limit ||
			b.Trials != s.trials {
			t.Errorf("queue of %d: %+v", c.queue, b)
		}
	}
}

func TestBottleneck(t *testing.T) {
	for name, c := range map[string]struct {
		s         simulated
		component string
		says      []string
	}{
		"router": {simulated{capacity: 10e6, generator: 40e6}, "router",
			[]string{"9.95 Mpps on average", "busy 100 %", "75 % to spare"}},
		"disturbed": {simulated{capacity: 10e6, generator: 40e6, waited: 201 * time.Millisecond}, "router",
			[]string{"to spare; other work had CPU 1 for 10 % of the time"}},
		"busy machine": {simulated{capacity: 10e6, generator: 40e6, waited: 1840 * time.Millisecond}, "machine",
			[]string{"9.95 Mpps on average", "other work had CPU 1 for 92 % of the time"}},
		"silent router": {simulated{capacity: 10e6, generator: 40e6, silent: true}, "router",
			[]string{"queue was full", "waited 75 %"}},
		"generator": {simulated{capacity: 40e6, generator: 10e6}, "generator",
			[]string{"busy 100 %", "only 25 %"}},
		"generator, silent": {simulated{capacity: 40e6, generator: 10e6, silent: true}, "generator",
			[]string{"0 % of its time to spare"}},
		"sink": {simulated{capacity: 10e6, generator: 40e6, sinkFull: 0.2}, "sink",
			[]string{"full for 20.0 %", "tx_full"}},
		"lossy router": {simulated{capacity: 1e4, generator: 40e6, accidents: 1}, "router", []string{"port_rx_error"}},
		"nothing":      {simulated{capacity: 0, generator: 40e6}, "router", []string{"no frame"}},
	} {
		t.Run(name, func(t *testing.T) {
			sum := NewSaturated(1)
			for i := range 2 {
				_, o, err := meter(&c.s).Saturate(t.Context(), i, 0)
				if err != nil {
					t.Fatal(err)
				}
				sum.Add(o)
			}
			b := sum.Bottleneck()
			if b.Component != c.component {
				t.Errorf("%s: %s", b.Component, b.Why)
			}
			for _, part := range c.says {
				if !strings.Contains(b.Why, part) {
					t.Errorf("%q does not say %q", b.Why, part)
				}
			}
		})
	}
}

func TestNodesOfAllRepetitions(t *testing.T) {
	s := &simulated{capacity: 10e6, generator: 40e6}
	sum := NewSaturated(1)
	for i := range 3 {
		_, o, err := meter(s).Saturate(t.Context(), i, 0)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(o)
	}
	nodes := sum.Nodes()
	if len(nodes) != 1 || nodes[0].Name != "port_rx" || math.Abs(nodes[0].CyclesPerPacket-10) > 0.1 ||
		math.Abs(nodes[0].PacketsPerCall-10) > 0.1 {
		t.Errorf("%+v", nodes)
	}
}
