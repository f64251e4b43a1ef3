// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"math"
	"strings"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// second is a quiet second before the window.
func second(rate float64) Past {
	loops := uint64(rate / fullBatch)
	return Past{Seconds: 1, Packets: uint64(rate), Loops: loops, BusyLoops: loops, BusyCycles: uint64(200 * rate)}
}

func seconds(rates ...float64) (out []Past) {
	for _, r := range rates {
		out = append(out, second(r))
	}
	return out
}

func TestArrivedBefore(t *testing.T) {
	disturbed := second(1e6)
	disturbed.WaitedNS = 100 * msec
	for name, c := range map[string]struct {
		past       []Past
		near, want float64 // want 0: not known
	}{
		"nothing is known":                    {nil, 5e6, 0},
		"one second may be half of something": {seconds(4e6), 5e6, 0},
		"steady":                              {seconds(4e6, 4.1e6, 4e6), 5e6, 4.1e6},
		"steady, with less traffic now":       {seconds(4e6, 4.1e6, 4e6), 1e6, 4e6},
		"steady, then a second of change":     {seconds(4e6, 4e6, 2e6), 5e6, 4e6},
		"changed before":                      {seconds(9e6, 9e6, 4e6, 4e6), 5e6, 4e6},
		"before a disturbance":                {append(seconds(4e6, 4e6), disturbed, disturbed), 5e6, 4e6},
		"never steady":                        {seconds(1e6, 2e6, 3e6, 4e6), 5e6, 0},
	} {
		w := Worker{Past: c.past}
		got, known := w.arrivedBefore(c.near)
		if known != (c.want > 0) || known && got != c.want {
			t.Errorf("%s: %v %v, want %v", name, got, known, c.want)
		}
	}
}

// A worker without time left does not show how much it is offered. What it received before tells.
func TestCostWithoutTimeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		past []Past
		want func(offered, lost, received float64) float64
	}{
		"as before":         {seconds(9.6e6, 9.6e6, 9.6e6), func(_, lost, _ float64) float64 { return lost }},
		"nothing is known":  {nil, func(_, _, received float64) float64 { return 10e6 - received }},
		"less came before":  {seconds(1e6, 1e6), func(_, _, received float64) float64 { return 10e6 - received }},
		"much more did":     {seconds(40e6, 40e6), func(_, _, received float64) float64 { return 10e6 - received }},
		"a little more did": {seconds(10e6, 10e6), func(_, _, received float64) float64 { return 10e6 - received }},
	} {
		e := loaded(1)
		lost := offer(e, 9.6e6, 2*msec, 4*msec, 1024)
		w := &e.Workers[0]
		w.Past = c.past
		r := Explain(*e)
		if !r.Workers[0].Model.saturated() {
			t.Fatalf("%s: %+v", name, r.Workers[0].Model)
		}
		want := c.want(9.6e6, lost, float64(w.Packets)/10)
		if cause := find(r, Softirq); cause == nil || math.Abs(cause.PPS-want) > 0.05*want {
			t.Errorf("%s: %+v, not %.0f packets/s", name, cause, want)
		}
	}
}

func TestPastOf(t *testing.T) {
	past := pastOf([]*apiv1.WorkerSample{{AgeNs: 4e9, Packets: 1000, BusyCycles: 5, WaitedNs: 7},
		{AgeNs: 2e9, Packets: 5000, Loops: 8, BusyCycles: 105, IdleCycles: 6, BusyLoops: 3, WaitedNs: 9},
		{AgeNs: 1e9, Packets: 10}, // another worker of that number
		{AgeNs: 0, Packets: 30}})
	if len(past) != 2 || past[0] != (Past{2, 4000, 8, 3, 100, 6, 2}) || past[0].rate() != 2000 || past[1].rate() != 20 {
		t.Errorf("%+v", past)
	}
}

// The time for which an interrupt is not seen is missing in the packets: they cost more than usual.
func TestHiddenCosts(t *testing.T) {
	e := loaded(1)
	e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorFlush, NS: sec, Count: 1e6, Longest: 9000})
	w := &e.Workers[0]
	for range 3 { // 9 s of 2 G cycles bring 100 M packets at 180 cycles; usual are 150
		w.Past = append(w.Past, Past{Seconds: 1, Packets: 8e6, BusyLoops: 8e6 / fullBatch, Loops: 8e6 / fullBatch,
			BusyCycles: 8e6 * 150})
	}
	r := Explain(*e)
	c, m := find(r, TLBShootdown), r.Workers[0].Model
	if math.Abs(m.PerPacket-150) > 0.5 || c == nil || math.Abs(c.Share-0.25) > 0.005 ||
		!strings.Contains(c.Evidence[0].Text, "1.50 s of it to enter and leave the kernel") {
		t.Errorf("%+v %+v", c, m)
	}
	checkSum(t, e, &m)
}

// Breakpoints in the packets' path explain what packets cost more, beside interruptions that are often but short.
func TestHiddenCostsOfBreakpoints(t *testing.T) {
	for inPath, want := range map[bool]Kind{true: CostlyPackets, false: TimerTick} {
		e := loaded(1)
		e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorTimer, NS: sec / 10, Count: 22000, Longest: 9000})
		w := &e.Workers[0]
		for range 3 { // 200 cycles now, usual are 100
			w.Past = append(w.Past, Past{Seconds: 1, Packets: 8e6, BusyLoops: 8e6 / fullBatch, Loops: 8e6 / fullBatch,
				BusyCycles: 8e6 * 100})
		}
		e.Host.Handicaps = []host.Handicap{{What: "somebody set 1 breakpoints", Remedy: "end it:", Fix: "echo 0 > x",
			Passing: true, InPath: inPath}}
		r := Explain(*e)
		c, tick := r.Causes[0], find(r, TimerTick)
		if c.Kind != want || c.Fix != "echo 0 > x" || inPath && (c.Share < 0.4 || tick.Share > 0.05) {
			t.Errorf("in the path %v: %+v\n%+v", inPath, c, tick)
		}
		checkSum(t, e, &r.Workers[0].Model)
	}
}

// What is always there, such as the kernel's ticks, costs packets only because of what matters.
func TestCostsOfMinorCauses(t *testing.T) {
	e := loaded(1)
	e.sum(kernel.Sum{Kind: kernel.KindSoftirq, ID: 3, NS: 2 * sec, Count: 1e5, Longest: msec})
	e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorTimer, NS: sec / 10, Count: 2500, Longest: 9000})
	r := Explain(*e)
	softirq, tick := find(r, Softirq), find(r, TimerTick)
	want := (softirq.Share + tick.Share) * r.Workers[0].Model.Expected
	if !tick.Minor || tick.PPS != 0 || math.Abs(softirq.PPS-want) > 0.01*want {
		t.Errorf("%+v %+v: want %.0f packets/s", softirq, tick, want)
	}
}

func TestExplains(t *testing.T) {
	for _, c := range []struct {
		model, missing, away float64
		want                 bool
	}{{1e6, 1.1e6, 0, true}, {1e6, 1.9e6, 0, true}, {1.9e6, 1e6, 0, true}, {1e6, 2.1e6, 2e6, false},
		{1e6, 2.1e6, 3e6, true}, {1e6, 4.1e6, 9e6, false}, {2.1e6, 1e6, 9e6, false}, {0, 1e6, 9e6, false}} {
		if got := explains(c.model, c.missing, c.away); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Of a worker without time left whose traffic was not steady, the last undisturbed second tells what still arrives.
func TestLastQuiet(t *testing.T) {
	w := Worker{Past: seconds(9e6, 4e6)}
	disturbed := second(1e6)
	disturbed.WaitedNS = 100 * msec
	w.Past = append(w.Past, disturbed)
	if rate, ok := w.lastQuiet(); !ok || rate != 4e6 {
		t.Errorf("%v, %v", rate, ok)
	}
	if _, ok := (&Worker{Past: []Past{disturbed}}).lastQuiet(); ok {
		t.Error("of a disturbed second")
	}
}
