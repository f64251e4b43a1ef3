// SPDX-License-Identifier: Apache-2.0
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/svg"
)

// sweep is a number by which several groups differ, and by nothing else.
type sweep struct {
	noun string
	of   func(result.Key) int
	rest func(result.Key) result.Key // the key without it
}

var sweeps = []sweep{
	{"flows", func(k result.Key) int { return k.Flows }, func(k result.Key) result.Key { k.Flows = 0; return k }},
	{"routes", func(k result.Key) int { return k.Routes }, func(k result.Key) result.Key { k.Routes = 0; return k }},
}

// point of a router's curve.
type point struct {
	router string
	n      int
	spread spread
}

// curves draws the throughput over the number of flows and of routes, where several were measured.
func curves(list []*group, p palette) section {
	s := section{ID: "scale", Title: "Throughput over flows and routes",
		Text: "Medians at saturation, with the range from the 10th to the 90th percentile of the windows."}
	for _, sw := range sweeps {
		for i, points := range sw.collect(list) {
			if len(values(points)) > 1 {
				id := fmt.Sprintf("%s-%d", sw.noun, i)
				s.Figures = append(s.Figures, curve(sw.title(list, points), sw.noun, id, points.points, p))
			}
		}
	}
	return s
}

type family struct {
	key    result.Key
	points []point
}

// collect returns families of groups that differ only in the number of the sweep.
func (sw sweep) collect(list []*group) []family {
	var found []family
	for _, g := range list {
		key := sw.rest(g.Key)
		i := slices.IndexFunc(found, func(f family) bool { return f.key == key })
		if i < 0 {
			i, found = len(found), append(found, family{key: key})
		}
		for _, run := range g.with(measured) {
			rates := received(run)
			found[i].points = append(found[i].points, point{run.Router, sw.of(g.Key),
				spread{stat.Percentile(rates, 0.1) / 1e6, stat.Median(rates) / 1e6, stat.Percentile(rates, 0.9) / 1e6}})
		}
	}
	for i := range found {
		slices.SortStableFunc(found[i].points, func(a, b point) int { return cmp.Compare(a.n, b.n) })
	}
	return found
}

func values(f family) []int {
	var list []int
	for _, p := range f.points {
		if !slices.Contains(list, p.n) {
			list = append(list, p.n)
		}
	}
	return list
}

// title names what the family has in common and other groups of the report have not.
func (sw sweep) title(list []*group, f family) string {
	text := f.key.Scenario
	for _, part := range []struct {
		noun string
		text func(result.Key) string
	}{{"flows", flows}, {"routes", routes}, {"sizes", sizes}, {"workers", workers}} {
		if part.noun != sw.noun && !alike(list, part.text) {
			text += ", " + part.text(f.key)
		}
	}
	return text + ", over " + sw.noun
}

const (
	curveHeight = 220.0
	curveInset  = 8
)

func curve(title, noun, id string, points []point, p palette) figure {
	f := figure{Title: title,
		Table: table{Heads: append(left("Router"), right(strings.ToUpper(noun[:1])+noun[1:], "Median, Mpps",
			"10th percentile", "90th percentile")...)}}
	largest, low, high := 0.0, math.Inf(1), 0.0
	for _, pt := range points {
		largest, low, high = math.Max(largest, pt.spread.high), math.Min(low, float64(max(1, pt.n))),
			math.Max(high, float64(pt.n))
	}
	x, y := svg.Logarithmic(low, high), svg.Linear(largest)
	x.Inset = curveInset
	c := newCanvas()
	c.frame(x, y, noun)
	var routers, told []string
	for _, pt := range points {
		if !slices.Contains(routers, pt.router) {
			routers = append(routers, pt.router)
		}
	}
	for _, name := range routers {
		line := slices.DeleteFunc(slices.Clone(points), func(pt point) bool { return pt.router != name })
		told = append(told, name+": "+c.curveLine(x, y, line, noun, p))
		for _, pt := range line {
			f.Table.Rows = append(f.Table.Rows,
				tableRow{Cells: []string{name, count(pt.n), number(pt.spread.median), number(pt.spread.low),
					number(pt.spread.high)}})
		}
	}
	f.Legend = p.legend(routers)
	f.Plot = c.svg(id, curveHeight+2*axisHeight, title, strings.Join(told, ". "))
	return f
}

// frame draws the axes. The numbers of Mpps are inside, on their lines.
func (c *canvas) frame(x, y svg.Scale, noun string) {
	lines := y.Ticks()
	for i, v := range lines {
		at := height(y, v)
		class, unit := "grid", ""
		if i == 0 {
			class = "base"
		}
		if i == len(lines)-1 {
			unit = " Mpps"
		}
		c.Line(class, 0, at, 100, at)
		c.Label("tick", "start", 0, at-3, tick(v)+unit)
	}
	ticks := x.Ticks()
	for _, v := range ticks[:len(ticks)-1] {
		c.Label("tick", "middle", x.At(v), axisHeight+curveHeight+14, short(v))
	}
	c.Label("tick", "end", 100, axisHeight+curveHeight+14, short(ticks[len(ticks)-1])+" "+noun)
}

// height is the position of a value in pixels from the top.
func height(y svg.Scale, v float64) float64 { return axisHeight + curveHeight*(1-y.At(v)/100) }

func (c *canvas) curveLine(x, y svg.Scale, line []point, noun string, p palette) string {
	class := p.class(line[0].router)
	var told []string
	for i, pt := range line {
		at := x.At(float64(pt.n))
		if i > 0 {
			before := line[i-1]
			c.Line("curve "+class, x.At(float64(before.n)), height(y, before.spread.median), at,
				height(y, pt.spread.median))
		}
		c.Line("whisker "+class, at, height(y, pt.spread.low), at, height(y, pt.spread.high))
		told = append(told, fmt.Sprintf("%s Mpps with %s %s", number(pt.spread.median), count(pt.n), noun))
	}
	for i, pt := range line {
		c.Marker("marker "+class, string(p.shape(pt.router)), x.At(float64(pt.n)), height(y, pt.spread.median),
			pt.router+": "+told[i])
	}
	return strings.Join(told, ", ")
}
