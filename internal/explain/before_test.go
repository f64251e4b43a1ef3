// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"math"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// second is a quiet second before the window.
func second(rate float64) Past {
	return Past{Seconds: 1, Packets: uint64(rate), BusyLoops: uint64(rate / fullBatch), BusyCycles: uint64(200 * rate)}
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
		{AgeNs: 2e9, Packets: 5000, BusyCycles: 105, BusyLoops: 3, WaitedNs: 9},
		{AgeNs: 1e9, Packets: 10}, // another worker of that number
		{AgeNs: 0, Packets: 30}})
	if len(past) != 2 || past[0] != (Past{2, 4000, 3, 100, 2}) || past[0].rate() != 2000 || past[1].rate() != 20 {
		t.Errorf("%+v", past)
	}
}
