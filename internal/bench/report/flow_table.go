// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/corelane/corelane/internal/bench/flowtable"
	"github.com/corelane/corelane/internal/svg"
)

// WriteFlowTable writes the report of the flow table's benchmark: a section for each size and load, a bar for each
// step.
func WriteFlowTable(w io.Writer, r *flowtable.Result, facts []string) error {
	v := view{Style: template.CSS(styleText), Verdict: "Finding a packet's flow: cycles per lookup", Facts: facts,
		Command: "corelane bench flow-table", Footer: "The time-stamp counter counts the cycles. The back ends " +
			"take turns, window by window: compare them within a figure."}
	for i, p := range r.Points() {
		v.Sections = append(v.Sections, flowTableSection(p, fmt.Sprintf("table-%d", i)))
	}
	if len(r.Notes) > 0 {
		v.Incomplete = strings.Join(r.Notes, "; ")
	}
	return page.Execute(w, v)
}

func flowTableSection(p *flowtable.Point, id string) section {
	title := fmt.Sprintf("%s flows of %s, %d %% of the slots used", thousands(fmt.Sprint(p.Flows)),
		strings.Replace(p.Family, "ip", "IP", 1), p.Load)
	s := section{ID: id, Title: title, Text: "Batches of up to 256 keys that are in the cache, as they are after a " +
		"packet was parsed. " +
		"Gain: how many times as fast as the step that it builds on, when all keys are in the table."}
	for i, hit := range flowtable.Hits {
		f := stepFigure{canvas: newCanvas(), scale: svg.Linear(largestCycles(p, i))}
		share := fmt.Sprintf("%d %% of the keys are in the table", hit)
		s.Figures = append(s.Figures, f.draw(p, i, fmt.Sprintf("%s-%d", id, hit), share))
	}
	return s
}

func largestCycles(p *flowtable.Point, hit int) float64 {
	largest := 0.0
	for _, s := range p.Steps {
		largest = math.Max(largest, s.Cycles[hit])
	}
	return largest
}

type stepFigure struct {
	*canvas
	scale svg.Scale
}

func (d *stepFigure) draw(p *flowtable.Point, hit int, id, title string) figure {
	f := figure{Title: title, Folded: hit > 0,
		Table: table{Heads: append(left("Step"), right("Cycles", "Times as fast as rte_hash", "Gain", "M inserts/s",
			"M removals/s")...)}}
	bottom := float64(len(p.Steps))*rowHeight + 2
	d.Axis(d.scale, 0, bottom, "cycles", tick)
	var told []string
	for i, s := range p.Steps {
		text := fmt.Sprintf("%s: %s cycles", s.Backend, number(s.Cycles[hit]))
		told = append(told, text)
		d.row(float64(i)*rowHeight, s, hit, text)
		f.Table.Rows = append(f.Table.Rows, tableRow{Cells: stepCells(s, hit)})
	}
	f.Table = f.Table.filled()
	f.Plot = d.svg(id, bottom+axisHeight, title, strings.Join(told, ". "))
	return f
}

func (d *stepFigure) row(y float64, s flowtable.Step, hit int, text string) {
	class := "r1"
	switch {
	case strings.HasPrefix(s.Backend, "corelane"):
		class = "r0"
	case s.Backend == "rte_hash":
		class = "r2"
	}
	d.Label("name", "start", 0, y+labelHeight-5, s.Backend+": "+s.Text)
	d.Label("value", "end", 100, y+labelHeight-5, number(s.Cycles[hit]))
	d.Rect("bar "+class, 0, y+labelHeight, d.scale.At(s.Cycles[hit]), barHeight, text)
}

func stepCells(s flowtable.Step, hit int) []string {
	ofHash, gain := none, none
	if hit < len(s.OfHash) {
		ofHash = times(s.OfHash[hit])
	}
	if s.Gain > 0 {
		gain = times(s.Gain) + " × " + s.Against
	}
	return []string{s.Backend, number(s.Cycles[hit]), ofHash, gain, perSecond(s.Insert), perSecond(s.Remove)}
}

func perSecond(f float64) string {
	if f == 0 {
		return none
	}
	return number(f / 1e6)
}
