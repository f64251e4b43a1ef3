// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/svg"
)

const (
	labelHeight = 18.0 // height of the text above a bar
	barHeight   = 20.0
	barGap      = 12.0
	rowHeight   = labelHeight + barHeight + barGap
	axisHeight  = 22.0
	mostDots    = 400 // drawn windows of a run; of more, every second or third is drawn
)

// throughput draws a figure for each group. Groups with the same frame sizes have the same scale.
func throughput(r *result.Result, list []*group, p palette) section {
	s := section{ID: "throughput", Title: "Throughput at saturation",
		Text: "Frames received per second while the generator sends as much as the router takes. The bar ends at the " +
			"median of all windows, the thin line " +
			"goes from the 10th to the 90th percentile. Each dot is a window, in the order of time from top to " +
			"bottom; hollow dots are windows in which " +
			"the machine had put the two CPUs far from each other. The dashed line is the ceiling: " + result.Ceiling +
			", which only takes frames and returns them."}
	near, largest := r.Near(), map[string]float64{}
	for _, g := range list {
		for _, run := range g.with(measured) {
			largest[g.Sizes] = math.Max(largest[g.Sizes], stat.Percentile(received(run), 1))
		}
	}
	for i, g := range list {
		if runs := g.with(measured); len(runs) > 0 {
			d := rateFigure{canvas: newCanvas(), Result: r, near: near, scale: svg.Linear(largest[g.Sizes] / 1e6),
				palette: p}
			s.Figures = append(s.Figures, d.draw(g, runs, fmt.Sprintf("throughput-%d", i)))
		}
	}
	return s
}

// rateFigure draws the runs of one group.
type rateFigure struct {
	*result.Result
	*canvas
	near    func(result.Window) bool
	scale   svg.Scale
	palette palette
}

func (d *rateFigure) draw(g *group, runs []*result.Run, id string) figure {
	f := figure{Title: g.Title,
		Table: table{Heads: append(left("Router"), right("Median, Mpps", "10th percentile", "90th percentile",
			"Windows", "Of the ceiling", "Repetitions")...)}}
	bottom := float64(len(runs))*rowHeight + 2
	d.Axis(d.scale, 0, bottom, "Mpps", tick)
	var told []string
	for i, run := range runs {
		sum, list := d.Summary(run), received(run)
		q := spread{stat.Percentile(list, 0.1), sum.Median, stat.Percentile(list, 0.9)}
		text := fmt.Sprintf("%s: median %s Mpps, 10th to 90th percentile %s", run.Router, mpps(q.median),
			span(q.low, q.high, mpps))
		told = append(told, text)
		d.row(float64(i)*rowHeight, run, q, text)
		f.Table.Rows = append(f.Table.Rows,
			tableRow{Cells: []string{run.Router, mpps(q.median), mpps(q.low), mpps(q.high), count(len(list)),
				ofCeiling(run, sum), repetitions(sum)}})
	}
	f.Table = f.Table.filled()
	for _, run := range runs {
		if run.Router == result.Ceiling {
			x := d.scale.At(d.Summary(run).Median / 1e6)
			d.Line("ceiling", x, 0, x, bottom)
		}
	}
	f.Plot = d.svg(id, bottom+axisHeight, "Throughput in "+g.Title, strings.Join(told, ". "))
	return f
}

// ofCeiling is the ratio to the ceiling.
func ofCeiling(run *result.Run, s result.Summary) string {
	if run.Router == result.Ceiling {
		return "ceiling"
	}
	return ratio(s.Ratio)
}

// repetitions writes the lowest and the highest ratio to the ceiling of all repetitions.
func repetitions(s result.Summary) string {
	if s.Ratio == 0 {
		return none
	}
	return span(s.Low, s.High, ratio)
}

type spread struct{ low, median, high float64 }

// row draws one run, with its name and its median above the bar.
func (d *rateFigure) row(y float64, run *result.Run, q spread, text string) {
	top, class := y+labelHeight, d.palette.class(run.Router)
	d.Label("name", "start", 0, top-5, run.Router)
	d.Label("value", "end", 100, top-5, mpps(q.median)+" Mpps")
	d.Rect("bar "+class, 0, top, d.scale.At(q.median/1e6), barHeight, text)
	step := 1 + len(run.Windows)/mostDots
	for i := 0; i < len(run.Windows); i += step {
		w, state := run.Windows[i], "near"
		if !d.near(w) {
			state = "far"
		}
		d.Dot("window "+state+" "+class, d.scale.At(w.Received/1e6),
			top+2+(barHeight-4)*float64(i)/float64(max(1, len(run.Windows)-1)), 2)
	}
	a, b, middle := d.scale.At(q.low/1e6), d.scale.At(q.high/1e6), top+barHeight/2
	d.Line("range", a, middle, b, middle)
	d.Line("range", a, middle-4, a, middle+4)
	d.Line("range", b, middle-4, b, middle+4)
}
