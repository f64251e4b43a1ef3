// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/svg"
)

// The drawn percentiles, each with its own shape.
var percentiles = []struct {
	name  string
	shape shape
	of    func(*result.Latency) float64
}{
	{"50th", circle, func(l *result.Latency) float64 { return l.P50 }},
	{"90th", square, func(l *result.Latency) float64 { return l.P90 }},
	{"99th", diamond, func(l *result.Latency) float64 { return l.P99 }},
	{"99.9th", up, func(l *result.Latency) float64 { return l.P999 }},
	{"highest", bar, func(l *result.Latency) float64 { return l.Max }},
}

const (
	latencyRow = 36.0
	loadGap    = 10.0 // between loads
)

// latencies draws a figure for each group, with a row for each load and router. All figures have the same scale.
func latencies(list []*group, p palette) section {
	s := section{ID: "latency", Title: "Latency",
		Text: "Time from the generator through the router and back to it, of all frames, at a constant rate; at " +
			"saturation the router's queues are full. The axis is logarithmic."}
	low, high := math.Inf(1), 0.0
	has := func(run *result.Run) bool { return len(run.Latency) > 0 }
	for _, g := range list {
		for _, run := range g.with(has) {
			for i := range run.Latency {
				if l := &run.Latency[i]; l.P50 > 0 {
					low, high = math.Min(low, l.P50), math.Max(high, l.Max)
				}
			}
		}
	}
	for i, g := range list {
		if runs := g.with(has); len(runs) > 0 {
			s.Figures = append(s.Figures, latencyFigure(g, runs, svg.Logarithmic(low, high), p,
				fmt.Sprintf("latency-%d", i)))
		}
	}
	return s
}

// byLoad has the latencies of several routers at one load.
type byLoad struct {
	router  string
	latency *result.Latency
	top     float64
}

func latencyFigure(g *group, runs []*result.Run, s svg.Scale, p palette, id string) figure {
	f := figure{Title: g.Title,
		Table: table{Heads: append(left("Load", "Router"), right("Mpps", "50th, µs", "90th", "99th", "99.9th",
			"Highest")...)}}
	for _, q := range percentiles {
		f.Legend = append(f.Legend, entry{mark("ink", q.shape), q.name + " percentile"})
	}
	f.Legend[len(f.Legend)-1].Text = "highest"
	c, rows := newCanvas(), sorted(runs)
	bottom := rows[len(rows)-1].top + latencyRow + 4
	c.Axis(s, 0, bottom, "µs", tick)
	var told []string
	for _, row := range rows {
		l := row.latency
		name := fmt.Sprintf("%s, %s", l.Load, row.router)
		told = append(told, c.latencyLine(s, row.top, name, l, p.class(row.router)))
		cells := []string{l.Load, row.router, mpps(l.Rate)}
		for _, q := range percentiles {
			cells = append(cells, number(q.of(l)))
		}
		f.Table.Rows = append(f.Table.Rows, tableRow{Cells: cells})
		if l.LateFrames > 0 {
			f.Caption += fmt.Sprintf("%s: the generator could not send %s in time. ", name,
				plural(l.LateFrames, "frame"))
		}
	}
	f.Plot = c.svg(id, bottom+axisHeight, "Latency in "+g.Title, strings.Join(told, ". "))
	return f
}

// sorted groups latencies by load, in order of appearance, then by router.
func sorted(runs []*result.Run) []byLoad {
	var loads []string
	at := map[string][]byLoad{}
	for _, run := range runs {
		for i := range run.Latency {
			l := &run.Latency[i]
			if at[l.Load] == nil {
				loads = append(loads, l.Load)
			}
			at[l.Load] = append(at[l.Load], byLoad{router: run.Router, latency: l})
		}
	}
	var list []byLoad
	for i, load := range loads {
		for _, row := range at[load] {
			row.top = float64(len(list))*latencyRow + float64(i)*loadGap
			list = append(list, row)
		}
	}
	return list
}

func (c *canvas) latencyLine(s svg.Scale, y float64, name string, l *result.Latency, class string) string {
	c.Label("name", "start", 0, y+13, name)
	if !(l.P50 > 0) {
		c.Label("value", "end", 100, y+13, "no frame came back")
		return name + ": no frame came back"
	}
	text := fmt.Sprintf("median %s, 99th %s µs", number(l.P50), number(l.P99))
	c.Label("value", "end", 100, y+13, text)
	middle := y + 26
	c.Line("curve "+class, s.At(l.P50), middle, s.At(l.Max), middle)
	for _, q := range percentiles {
		c.Marker("marker "+class, string(q.shape), s.At(q.of(l)), middle,
			fmt.Sprintf("%s, %s: %s µs", name, q.name, number(q.of(l))))
	}
	return name + ": " + text
}
