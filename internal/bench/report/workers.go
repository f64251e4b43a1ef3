// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"html/template"

	"github.com/corelane/corelane/internal/bench/workerresult"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/svg"
)

// WriteWorkers writes the report of the benchmark of workers: a section with a table for each measure, and plots of
// modes and rings.
func WriteWorkers(w io.Writer, r *workerresult.Result) error {
	v := view{Style: template.CSS(styleText), Verdict: "Ways to run on cores", Command: r.Command,
		Facts: []string{r.Started.Format("2 January 2006"), r.Manifest.CPU, plural(r.Manifest.CPUs, "CPU"),
			r.Manifest.Kernel},
		Footer: "Ways to run take turns: compare them within a section. Times are the delays of frames from the " +
			"generator through the router to its sink."}
	if !r.Complete {
		v.Incomplete = "Everything shown here was measured."
	}
	for _, t := range r.Tables() {
		s := section{ID: t.ID, Title: t.Title, Text: t.Text}
		whole := workersTable(t)
		switch t.ID {
		case "modes":
			s.Figures = []figure{modesFigure(r.Modes, whole)}
		case "rings":
			s.Figures = []figure{ringsLatency(r.Rings, whole), ringsBurst(r.Rings, whole)}
		default:
			s.Table = &whole
		}
		v.Sections = append(v.Sections, s)
	}
	if len(r.Notes) > 0 {
		s := section{ID: "notes", Title: "Notes"}
		for _, n := range r.Notes {
			s.Bullets = append(s.Bullets, bullet{Text: n})
		}
		v.Sections = append(v.Sections, s)
	}
	return page.Execute(w, v)
}

func workersTable(t workerresult.Table) table {
	out := table{}
	for i, h := range t.Heads {
		out.Heads = append(out.Heads, head{h, i > 0})
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, tableRow{Cells: row})
	}
	return out
}

// barRow is one value of a figure with bars.
type barRow struct {
	name, class string
	spread      stat.Spread
}

func bars(id, title, unit string, rows []barRow, t table) figure {
	largest := 0.0
	for _, r := range rows {
		largest = math.Max(largest, r.spread.High)
	}
	c, s := newCanvas(), svg.Linear(largest)
	bottom := float64(len(rows))*rowHeight + 2
	c.Axis(s, 0, bottom, unit, tick)
	var told []string
	for i, r := range rows {
		y := float64(i) * rowHeight
		text := fmt.Sprintf("%s: %s %s, %s", r.name, number(r.spread.Median), unit,
			span(r.spread.Low, r.spread.High, number))
		told = append(told, text)
		c.Label("name", "start", 0, y+labelHeight-5, r.name)
		c.Label("value", "end", 100, y+labelHeight-5, number(r.spread.Median))
		c.Rect("bar "+r.class, 0, y+labelHeight, s.At(r.spread.Median), barHeight, text)
	}
	return figure{Title: title, Plot: c.svg(id, bottom+axisHeight, title, strings.Join(told, ". ")), Table: t}
}

func modesFigure(list []workerresult.Mode, t table) figure {
	var rows []barRow
	for i, m := range list {
		class := "r1"
		if m.Name == workerresult.Complete {
			class = "r0"
		}
		rows = append(rows,
			barRow{t.Rows[i].Cells[0], class, stat.SpreadOf(m.Samples, func(s workerresult.Sample) float64 {
				return s.P99
			})})
	}
	return bars("modes-p99", "p99 at saturation", "us", rows, t)
}

func ringsLatency(list []workerresult.Ring, t table) figure {
	var rows []barRow
	for _, r := range list {
		rows = append(rows,
			barRow{plural(r.Size, "packet"), "r0", stat.SpreadOf(r.Samples, func(s workerresult.Sample) float64 {
				return s.P99
			})})
	}
	return bars("rings-p99", "p99 at saturation over the size of the ring", "us", rows, t)
}

func ringsBurst(list []workerresult.Ring, t table) figure {
	var rows []barRow
	for _, r := range list {
		burst := float64(r.Burst)
		rows = append(rows, barRow{plural(r.Size, "packet"), "r2", stat.Spread{Median: burst, Low: burst, High: burst}})
	}
	f := bars("rings-burst", "Longest burst without loss while the worker is late", "frames", rows, t)
	f.Folded = true
	return f
}
