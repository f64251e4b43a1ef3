// SPDX-License-Identifier: Apache-2.0
package workerresult

import (
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/stat"
)

func ring(size, burst int, rates ...float64) Ring {
	r := Ring{Size: size, Burst: burst}
	for _, f := range rates {
		r.Samples = append(r.Samples, Sample{Rate: f, P50: float64(size), P99: 2 * float64(size), Queued: uint32(size)})
	}
	return r
}

func TestRecommended(t *testing.T) {
	small, middle, large := ring(256, 256, 4e6, 5e6, 6e6), ring(1024, 1100, 5e6, 5.1e6, 9e6),
		ring(4096, 4100, 5.1e6, 5e6, 5.2e6)
	for _, c := range []struct {
		rings        []Ring
		wanted, size int
	}{
		{[]Ring{small, middle, large}, 100, 256},
		{[]Ring{small, middle, large}, 1000, 1024},
		{[]Ring{large, middle, small}, 1000, 1024},
		{[]Ring{small, middle, large}, 2000, 4096},
		{[]Ring{small, middle, large}, 5000, 0},
		{[]Ring{ring(256, 9000, 4e6), large}, 100, 4096}, // too slow
		{nil, 100, 0},
	} {
		if got := Recommended(c.rings, c.wanted); got != c.size {
			t.Errorf("burst of %d: %d, want %d", c.wanted, got, c.size)
		}
	}
}

func TestTimesIsByRepetition(t *testing.T) {
	a := Mode{Samples: []Sample{{P99: 100}, {P99: 400}, {P99: 90}, {P99: 1}}}
	b := Mode{Samples: []Sample{{P99: 10}, {P99: 100}, {P99: 30}}}
	if got := Times(a, b, p99); got != (stat.Spread{Median: 4, Low: 3, High: 10}) {
		t.Error(got)
	}
	if got := Times(a, Mode{Samples: []Sample{{}}}, p99); got != (stat.Spread{}) {
		t.Error(got)
	}
}

func TestAddWindow(t *testing.T) {
	var list []Scale
	for _, w := range []Scale{{"shared", false, 1, []float64{100}}, {"shared", true, 1, []float64{150}},
		{"apart", false, 1, []float64{110}},
		{"shared", false, 2, []float64{101}}, {"shared", false, 1, []float64{104}}} {
		list = AddWindow(list, w)
	}
	if len(list) != 4 || !slices.Equal(list[0].Cycles, []float64{100, 104}) {
		t.Errorf("%+v", list)
	}
}

func full() *Result {
	r := &Result{Modes: slices.Clone(Modes), Rings: []Ring{ring(256, 250, 4e6), ring(1024, 1000, 5e6)}, Wanted: 900,
		Isolated: []Bursts{{1024, false, 2000, 1000, []string{"no room 1000"}},
			{Frames: 1024, Isolated: true, Sent: 2000}},
		Changes: []Change{{Name: "move a queue", Done: 100, Sent: 5, Lost: 2, Why: "port_tx_full 2",
			Took: []float64{1, 2, 9}, Rate: 1e6}, {Name: "switch", Why: "not lost"}},
		Scaling: []Scale{{"shared", false, 1, []float64{100, 200, 300}}, {"shared", false, 2, []float64{220}}}}
	for i := range r.Modes {
		r.Modes[i].Samples = []Sample{{Rate: 5e6, P50: 10, P99: float64(20 + 100*i), HalfP50: 1, HalfP99: 2,
			HalfLost: 3, Turn: 4}}
	}
	return r
}

func TestTables(t *testing.T) {
	var text strings.Builder
	for _, table := range full().Tables() {
		text.WriteString(table.Markdown())
	}
	lines := strings.Split(text.String(), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	for _, want := range []string{
		"| run-to-completion | 5.00 (5.00 to 5.00) | 10.0 (10.0 to 10.0) | 20.0 (20.0 to 20.0) | 1.00 (1.00 to 1.00) " +
			"| 2.00 (2.00 to 2.00) | 3 | 4.00 |",
		"p99 at saturation, hybrid, ring of 2048 over run-to-completion: 11.0 (11.0 to 11.0) times, by repetition.",
		"| 256 | 4.00 (4.00 to 4.00) | 256 (256 to 256) | 512 (512 to 512) | 256 | 250 |",
		"| 1024 | no | 2000 | 1000 | 50.0 % | no room 1000 |",
		"| 1024 | yes | 2000 | 0 | 0.0 % | - |",
		"| move a queue | 100 | 1.00 | 5 | 2 | 0 | 0 | 0 | 2.00 (9.00) | port_tx_full 2 |",
		"| 2 | share all tables | no | 220 (220 to 220) | 1.10 |",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if strings.Contains(text.String(), "not lost") {
		t.Error("a reason without a loss")
	}
	if got := new(Result).Tables(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
