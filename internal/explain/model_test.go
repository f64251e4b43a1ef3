// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// The parts of a model add up for any evidence: nothing is counted twice, and nothing is left out.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		e := loaded(r.Float64())
		w := &e.Workers[0]
		w.BusyLoops = 1 + uint64(float64(w.Packets)*r.Float64())
		w.Dropped = uint64(float64(w.Packets) * r.Float64() * 1.2)
		for range r.IntN(6) {
			e.sum(kernel.Sum{Kind: kernel.Kind(1 + r.IntN(7)), Why: kernel.Why(r.IntN(7)), ID: r.IntN(12),
				NS: r.Int64N(4 * sec), Count: 1 + r.Int64N(1000), Name: "x"})
		}
		e.Host.Ticks = map[int]host.Ticks{1: {Steal: r.Int64N(200)}}
		w.DelayUS = uint32(r.IntN(2))
		for _, report := range Explain(*e).Workers {
			checkSum(t, e, &report.Model)
		}
	}
}

func checkSum(t *testing.T, e *Evidence, m *Model) {
	t.Helper()
	shares, rates := m.Forwarding, m.Delivered
	for _, p := range m.Parts {
		if p.Share < -1e-9 || p.PPS < -1e-6 || math.IsNaN(p.PPS) || math.IsInf(p.PPS, 0) {
			t.Fatalf("%+v", p)
		}
		shares, rates = shares+p.Share, rates+p.PPS
	}
	if math.Abs(shares-1) > 1e-6 {
		t.Fatalf("shares are %v in all: %+v", shares, m)
	}
	if m.PerPacket > 0 && math.Abs(rates-m.Expected) > 1e-6*m.Expected {
		t.Fatalf("rates are %v in all, not %v: %+v", rates, m.Expected, m)
	}
}

func TestModel(t *testing.T) {
	e := loaded(0.5)
	m := Explain(*e).Workers[0].Model
	if math.Abs(m.PerPacket-200) > 0.1 || math.Abs(m.Expected-10e6) > 1e4 || math.Abs(m.Headroom-0.5) > 0.01 ||
		m.saturated() {
		t.Errorf("%+v", m)
	}
	e = loaded(1)
	e.hog(0.5) // busy for half of the time only: the core could process twice as many packets
	e.Workers[0].Packets /= 2
	m = Explain(*e).Workers[0].Model
	if math.Abs(m.PerPacket-200) > 0.1 || math.Abs(m.Expected-10e6) > 1e4 || !m.saturated() {
		t.Errorf("%+v", m)
	}
	if m := modelOf(&Evidence{}, &Worker{}, nil); m.Expected != 0 || m.saturated() {
		t.Errorf("%+v", m)
	}
}

// A cause takes time for more packets than it costs: rings hold some, and no more came. The table says which it has.
func TestTableSaysWhatItCounts(t *testing.T) {
	e := loaded(0.3)
	e.hog(0.1)
	r := Explain(*e)
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	part := r.Workers[0].Model.Parts[0]
	if text := b.String(); part.PPS < 2*r.Causes[0].PPS || strings.Count(text, "could have processed meanwhile") != 1 ||
		!strings.Contains(text, "How many of them were lost is the cost of a cause, above.\n") {
		t.Errorf("%+v, %s", part, text)
	}
}
