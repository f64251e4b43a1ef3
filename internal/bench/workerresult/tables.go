// SPDX-License-Identifier: Apache-2.0
package workerresult

import (
	"fmt"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/table"
)

// Table is one measure as text, for a terminal, a document or the page.
type Table struct {
	ID, Title, Text string
	Heads           []string
	Rows            [][]string
}

// Markdown writes the table with aligned columns.
func (t *Table) Markdown() string {
	text := table.Markdown(t.Heads, t.Rows)
	if t.Text != "" {
		text += "\n" + t.Text + "\n"
	}
	return text
}

// Tables returns a table for each measure that was taken.
func (r *Result) Tables() (list []Table) {
	for _, t := range []Table{r.modesTable(), r.ringsTable(), r.isolatedTable(), r.changesTable(), r.scalingTable()} {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

func digits(f float64) string { return result.Digits(f) }

// inUnits is a spread as text.
func inUnits(s stat.Spread, unit float64) string {
	return fmt.Sprintf("%s (%s to %s)", digits(s.Median/unit), digits(s.Low/unit), digits(s.High/unit))
}

func (r *Result) modesTable() Table {
	t := Table{ID: "modes", Title: "Ways to run: median (lowest to highest) of the repetitions",
		Heads: []string{"mode", "Mpps", "p50 us, saturated", "p99 us, saturated", "p50 us at 50 %", "p99 us at 50 %",
			"lost at 50 %", "poller's turn us"}}
	for i := range r.Modes {
		m := &r.Modes[i]
		of := func(pick func(Sample) float64, unit float64) string {
			return inUnits(stat.SpreadOf(m.Samples, pick), unit)
		}
		lost := uint64(0)
		for _, s := range m.Samples {
			lost += s.HalfLost
		}
		t.Rows = append(t.Rows, []string{m.Title(), of(func(s Sample) float64 {
			return s.Rate
		}, 1e6), of(func(s Sample) float64 { return s.P50 }, 1),
			of(p99, 1), of(func(s Sample) float64 {
				return s.HalfP50
			}, 1), of(func(s Sample) float64 { return s.HalfP99 }, 1), fmt.Sprint(lost),
			digits(stat.SpreadOf(m.Samples, func(s Sample) float64 { return s.Turn }).Median)})
	}
	if len(r.Modes) == len(Modes) {
		t.Text = fmt.Sprintf("p99 at saturation, %s over %s: %s times, by repetition.", r.Modes[2].Title(), Complete,
			inUnits(Times(r.Modes[2], r.Modes[0], p99), 1))
	}
	return t
}

func p99(s Sample) float64 { return s.P99 }

func (r *Result) ringsTable() Table {
	t := Table{ID: "rings", Title: "Rings between two workers",
		Heads: []string{"packets", "Mpps", "p50 us, saturated", "p99 us, saturated", "most in the ring",
			"longest burst without loss"}}
	for _, ring := range r.Rings {
		rate := stat.SpreadOf(ring.Samples, func(s Sample) float64 { return s.Rate })
		p50 := stat.SpreadOf(ring.Samples, func(s Sample) float64 { return s.P50 })
		queued := stat.SpreadOf(ring.Samples, func(s Sample) float64 { return float64(s.Queued) })
		t.Rows = append(t.Rows, []string{fmt.Sprint(ring.Size), inUnits(rate, 1e6), inUnits(p50, 1),
			inUnits(stat.SpreadOf(ring.Samples, p99), 1), fmt.Sprintf("%.0f", queued.High), fmt.Sprint(ring.Burst)})
	}
	if size := Recommended(r.Rings, r.Wanted); size > 0 {
		t.Text = fmt.Sprintf("Recommended: %d, the smallest that is as fast as the fastest and holds the %d frames "+
			"that arrive, "+
			"at the saturated rate, while the worker is late. Latency at saturation grows with the ring.", size,
			r.Wanted)
	} else {
		t.Text = fmt.Sprintf("None of these is as fast as the fastest and holds the %d frames that arrive, "+
			"at the saturated rate, while the worker is late.", r.Wanted)
	}
	return t
}

func (r *Result) isolatedTable() Table {
	t := Table{ID: "isolated", Title: fmt.Sprintf("Bursts through a device's ring of %d, with a worker whose loops "+
		"take %d us longer", DeviceRing, Late.Microseconds()),
		Heads: []string{"burst", "isolated receive", "sent", "lost", "share", "where the last were lost"}}
	for _, b := range r.Isolated {
		with, share, why := "no", "-", "-"
		if b.Isolated {
			with = "yes"
		}
		if len(b.Why) > 0 {
			why = b.Why[len(b.Why)-1]
		}
		if b.Sent > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(b.Lost)/float64(b.Sent))
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(b.Frames), with, fmt.Sprint(b.Sent), fmt.Sprint(b.Lost), share,
			why})
	}
	return t
}

func (r *Result) changesTable() Table {
	t := Table{ID: "changes", Title: "Changes while frames flow at half of what the router takes",
		Heads: []string{"change", "times", "Mpps", "frames", "lost", "reordered", "duplicated", "did not wait",
			"ms each (highest)", "why lost"}}
	for _, c := range r.Changes {
		took := stat.SpreadOf(c.Took, stat.Itself)
		why := c.Why
		if c.Lost == 0 || why == "" {
			why = "-"
		}
		t.Rows = append(t.Rows, []string{c.Name, fmt.Sprint(c.Done), digits(c.Rate / 1e6), fmt.Sprint(c.Sent),
			fmt.Sprint(c.Lost), fmt.Sprint(c.Reordered), fmt.Sprint(c.Duplicated), fmt.Sprint(c.GaveUp),
			fmt.Sprintf("%s (%s)", digits(took.Median), digits(took.High)), why})
	}
	return t
}

var kinds = map[string]string{"shared": "share all tables", "apart": "beside a process that shares nothing",
	"control": "and a counter that all write"}

func (r *Result) scalingTable() Table {
	t := Table{ID: "scaling", Title: "Cycles per packet of workers that share all tables",
		Heads: []string{"workers", "", "flows", "cycles per packet", "of one worker"}}
	for i := range r.Scaling {
		s := &r.Scaling[i]
		flows, of := "no", "-"
		if s.Stateful {
			flows = "yes"
		}
		if one := r.one(s.Stateful); one > 0 {
			of = fmt.Sprintf("%.2f", s.Median().Median/one)
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(s.Workers), kinds[s.Kind], flows, inUnits(s.Median(), 1), of})
	}
	return t
}

// one worker's cycles.
func (r *Result) one(stateful bool) float64 {
	for i := range r.Scaling {
		if s := &r.Scaling[i]; s.Kind == "shared" && s.Workers == 1 && s.Stateful == stateful {
			return s.Median().Median
		}
	}
	return 0
}
