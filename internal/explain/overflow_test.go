// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"math"
	"testing"

	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// offer simulates a rate of packets/s to a worker that serves 10 M packets/s through a ring and is away for ns at the
// beginning of each period. It records the worker's counters and gaps, and returns the packets/s that found no room.
func offer(e *Evidence, rate float64, ns, period int64, ring float64) (lost float64) {
	const step = 1000 // ns
	const service = 10e6
	w := &e.Workers[0]
	queued, took, dropped := 0.0, 0.0, 0.0
	for now := int64(0); now < 10*sec; now += step {
		queued += rate * step / 1e9
		if now%period >= ns {
			n := math.Min(queued, service*step/1e9)
			queued, took = queued-n, took+n
		}
		if queued > ring {
			dropped, queued = dropped+queued-ring, ring
		}
	}
	n := 10 * sec / period
	all := 10 * sec * w.HzTSC / 1e9
	w.Packets, w.BusyLoops = uint64(took), uint64(took/fullBatch)
	w.BusyCycles = uint64(all * (took/service/10 + float64(ns)/float64(period)*took/service/10/(1-
		float64(ns)/float64(period))))
	w.IdleCycles = uint64(all) - w.BusyCycles
	w.EmptyLoops = uint64((1 - took/service/10 - float64(ns)/float64(period)) * all / 200)
	e.Ports[0].RingSize = uint32(ring)
	e.sum(kernel.Sum{Kind: kernel.KindSoftirq, ID: 3, NS: ns * n, Count: n, Longest: ns})
	for i := range n {
		e.Trace.Gaps = append(e.Trace.Gaps, kernel.Gap{CPU: 1, Worker: tid, From: i * period, NS: ns,
			Kind: kernel.KindSoftirq, ID: 3})
	}
	return dropped / 10
}

// The cost of gaps is what a simulated queue loses. The mean rate of the window would be too low: it includes the gaps.
func TestCostOfGaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		rate       float64 // packets/s
		ns, period int64
		ring       float64
		recorded   int // one gap in so many is recorded; 0: all
	}{
		{"half of each 100 ms, as by a quota", 4.5e6, 50 * msec, 100 * msec, 8192, 0},
		{"nearly all of each 100 ms, as by a real-time thread", 0.45e6, 95 * msec, 100 * msec, 1024, 0},
		{"a fifth of each second, at once", 4.5e6, 200 * msec, sec, 1024, 0},
		{"half in short gaps, between which the ring is not emptied", 4.9e6, 1000_000, 2000_000, 2048, 0},
		{"short gaps, most of which are not recorded", 4.5e6, 2 * msec, 4 * msec, 1024, 5},
		{"no loss: the ring is long enough", 4e6, 100_000, 500_000, 1024, 0},
	} {
		e := loaded(0.5)
		lost := offer(e, c.rate, c.ns, c.period, c.ring)
		if c.recorded > 0 {
			all := e.Trace.Gaps
			e.Trace.Gaps, e.Trace.Lost = all[:len(all)/c.recorded], uint64(len(all)-len(all)/c.recorded)
		}
		r := Explain(*e)
		cause := find(r, Softirq)
		if r.Workers[0].Model.saturated() {
			t.Fatalf("%s: %+v", c.name, r.Workers[0].Model)
		}
		if cause == nil || math.Abs(cause.PPS-lost) > 0.1*lost+100 {
			t.Errorf("%s: %+v, not %.0f packets/s", c.name, cause, lost)
		}
	}
}

func find(r *Report, kind Kind) *Cause {
	for i := range r.Causes {
		if r.Causes[i].Kind == kind {
			return &r.Causes[i]
		}
	}
	return nil
}

// The cost of skew is what the device missed. What other workers have time for is reported apart from it.
func TestCostOfSkew(t *testing.T) {
	e := loaded(1)
	e.second(0.1)
	e.Workers[0].RxMissed, e.Ports[0].RxMissed = 20e6, 20e6
	c := Explain(*e).Causes[0]
	if c.Kind != Skew || c.PPS != 2e6 || math.Abs(c.Recoverable-8.1e6) > 1e5 {
		t.Errorf("%+v", c)
	}
}

// Where a few gaps take most of a window, the loops that they fall into say nothing about what a packet costs: the
// usual cost of one does.
func TestCostOfAFewLongGaps(t *testing.T) {
	for name, busy := range map[string]float64{"in loops with packets": 0.99, "in empty loops": 0.01} {
		e := loaded(0.5)
		lost := offer(e, 5e6, 950*msec, sec, 8192)
		w := &e.Workers[0]
		w.BusyCycles = uint64(busy * 10 * w.HzTSC)
		w.IdleCycles, w.Usual = uint64(10*w.HzTSC)-w.BusyCycles, 200
		cause := find(Explain(*e), Softirq)
		if cause == nil || math.Abs(cause.PPS-lost) > 0.1*lost {
			t.Errorf("%s: %+v, not %.0f packets/s", name, cause, lost)
		}
	}
}

// A worker that never ran in the window lost all that arrived before.
func TestCostOfNeverRunning(t *testing.T) {
	e := loaded(0)
	e.hog(1)
	e.Trace.Gaps = nil
	e.away(1, kernel.Gap{NS: 10 * sec, Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: hog, PID: hog,
		Name: "stress"})
	w := &e.Workers[0]
	w.BusyCycles, w.IdleCycles, w.Loops, w.EmptyLoops, w.Past = 0, 0, 0, 0, seconds(5e6, 5e6, 5e6)
	if c := find(Explain(*e), ForeignThread); c == nil || c.Minor || math.Abs(c.PPS-5e6) > 1e5 {
		t.Errorf("%+v", c)
	}
}

// Steal is counted in ticks, which are gaps like others: what arrives meanwhile is lost.
func TestCostOfSteal(t *testing.T) {
	e := loaded(0.3)
	e.Host.Ticks = map[int]host.Ticks{1: {Steal: 60}}
	if c := find(Explain(*e), Steal); c == nil || c.Minor || c.PPS < 0.15e6 || c.PPS > 0.2e6 {
		t.Errorf("%+v: 6 %% of 3 M packets/s, less what the ring holds", c)
	}
}

// asleep makes the gaps that offer() recorded the worker's own doing.
func (e *Evidence) asleep() {
	e.Workers[0].Idle = "sleep"
	for i := range e.Trace.Sums {
		s := &e.Trace.Sums[i]
		s.Kind, s.Why, s.ID = kernel.KindGap, kernel.WhySleep, 0
	}
	for i := range e.Trace.Gaps {
		g := &e.Trace.Gaps[i]
		g.Kind, g.Why, g.ID = kernel.KindThread, kernel.WhySleep, 0
	}
}

// A worker that gives its CPU away because nothing comes loses nothing, whatever came before the window.
func TestCostOfSleepWithoutInput(t *testing.T) {
	for name, rate := range map[string]float64{"nothing comes": 0, "a few come": 20, "a little comes": 2000} {
		e := loaded(0)
		offer(e, rate, 950*msec, sec, 8192)
		e.asleep()
		e.Workers[0].Usual, e.Workers[0].Past = 200, seconds(2.5e6, 2.5e6, 2.5e6)
		if c := find(Explain(*e), Yield); c == nil || c.PPS > 1 || rate < 100 && !c.Minor {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A worker that is not woken although packets wait for it loses what arrives.
func TestCostOfSleepThatDoesNotEnd(t *testing.T) {
	e := loaded(0)
	e.Workers[0].Idle = "interrupt"
	e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhySleep, NS: 10 * sec, Count: 1, Longest: 10 * sec})
	e.away(1, kernel.Gap{NS: 10 * sec, Kind: kernel.KindThread, Why: kernel.WhySleep})
	e.Workers[0].Usual, e.Workers[0].Past = 200, seconds(2.5e6, 2.5e6, 2.5e6)
	e.Workers[0].Queues[0].Depth, e.Workers[0].Queues[0].Known = 1024, true
	if c := find(Explain(*e), Yield); c == nil || c.Minor || math.Abs(c.PPS-2.5e6) > 1e5 {
		t.Errorf("%+v", c)
	}
}

// A worker that sleeps for so long that its ring overflows finds a full ring each time.
func TestCostOfLongSleep(t *testing.T) {
	e := loaded(0.1)
	lost := offer(e, 1e6, 100*msec, 200*msec, 8192)
	e.asleep()
	e.Workers[0].Past = seconds(1e6, 1e6, 1e6)
	if c := find(Explain(*e), Yield); c == nil || math.Abs(c.PPS-lost) > 0.1*lost {
		t.Errorf("%+v, not %.0f packets/s", c, lost)
	}
}

// Nor does a worker to which nothing comes lose anything to others, although it has little time left.
func TestCostOfOthersWithoutInput(t *testing.T) {
	e := loaded(0)
	e.hog(0.9)
	e.hog(0.1)
	e.Workers[0].Usual, e.Workers[0].Past = 200, seconds(2.5e6, 2.5e6, 2.5e6)
	if c := find(Explain(*e), ForeignThread); c == nil || c.PPS > 0 {
		t.Errorf("%+v", c)
	}
}
