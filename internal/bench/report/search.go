// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/svg"
)

// named is a search with its name.
type named struct {
	name string
	*result.Search
}

func searchesOf(run *result.Run) []named {
	var list []named
	for _, s := range []named{{"NDR", run.NDR}, {"PDR", run.PDR}} {
		if s.Search != nil {
			list = append(list, s)
		}
	}
	return list
}

// searches shows the rates without loss, the bursts, and how they were found.
func searches(list []*group, p palette) section {
	s := section{ID: "loss", Title: "Rates without loss",
		Text: "The highest rate at which no frame is lost (NDR), or no more than an allowed share (PDR), by binary " +
			"search: " +
			"each mark is a trial, in the order of time. A trial that loses frames is repeated before it counts. " +
			"The burst is the longest one of back-to-back frames without loss."}
	has := func(run *result.Run) bool { return len(searchesOf(run)) > 0 || run.Burst != nil }
	t := table{Heads: append(left("Router"), right("NDR, Mpps", "PDR, Mpps", "Loss allowed", "Trials",
		"Burst, frames")...)}
	for i, g := range list {
		runs := g.with(has)
		if len(runs) == 0 {
			continue
		}
		t.Rows = append(t.Rows, tableRow{Cells: []string{g.Title}, Group: true})
		for _, run := range runs {
			t.Rows = append(t.Rows, lossRow(run))
		}
		if f := searchFigure(g, runs, p, fmt.Sprintf("search-%d", i)); len(f.Table.Rows) > 0 {
			s.Figures = append(s.Figures, f)
		}
	}
	if t = t.filled(); len(t.Rows) > 0 {
		s.Table = &t
	}
	return s
}

func lossRow(run *result.Run) tableRow {
	cells, trials, allowed := []string{run.Router, none, none}, 0, none
	for _, s := range searchesOf(run) {
		cells[map[string]int{"NDR": 1, "PDR": 2}[s.name]] = found(s)
		trials += len(s.Trials)
		if s.name == "PDR" {
			allowed = fmt.Sprintf("%g %%", 100*s.LossRatio)
		}
	}
	return tableRow{Cells: append(cells, allowed, count(trials), burst(run.Burst))}
}

func found(s named) string {
	switch {
	case s.Rate == 0:
		return "none"
	case s.Limited != "":
		return "≥ " + mpps(s.Rate)
	}
	return mpps(s.Rate)
}

func burst(b *result.Burst) string {
	switch {
	case b == nil:
		return none
	case b.Limit:
		return "≥ " + count(b.Frames)
	}
	return count(b.Frames)
}

const (
	stripHeight = 66.0
	stripRow    = labelHeight + stripHeight + 34
	searchInset = 7
)

// searchFigure has a strip for each search of a group's routers.
func searchFigure(g *group, runs []*result.Run, p palette, id string) figure {
	f := figure{Title: "Trials in " + g.Title, Folded: true,
		Table: table{Heads: append(append(right("Trial", "Mpps", "Frames sent", "Lost"), left("Outcome")...),
			left("Why")...)},
		Legend: []entry{{mark("ink", passed.shape), passed.text}, {mark(failed.class, failed.shape), failed.text},
			{mark(again.class, again.shape), again.text}, {mark("ink", void.shape), void.text}}}
	c, y := newCanvas(), 0.0
	var told, limited []string
	for _, run := range runs {
		for _, s := range searchesOf(run) {
			if len(s.Trials) == 0 {
				continue
			}
			name := s.name + " of " + run.Router
			told = append(told, c.strip(y, name, s, p.class(run.Router)))
			if y += stripRow; s.Limited != "" {
				limited = append(limited, name+": "+s.Limited+".")
			}
			f.Table.Rows = append(f.Table.Rows, tableRow{Cells: []string{name}, Group: true})
			f.Table.Rows = append(f.Table.Rows, s.rows()...)
		}
	}
	f.Caption = strings.Join(limited, " ")
	f.Plot = c.svg(id, y, f.Title, strings.Join(told, ". "))
	return f
}

func (s named) rows() []tableRow {
	var rows []tableRow
	for i, t := range s.Trials {
		rows = append(rows,
			tableRow{Cells: []string{fmt.Sprint(i + 1), mpps(t.Rate), count(t.Sent), count(t.Lost), s.outcome(t).text,
				t.Why}})
	}
	return rows
}

// strip draws the rates of one search's trials in the order of time.
func (c *canvas) strip(y float64, name string, s named, class string) string {
	low, high := math.Inf(1), 0.0
	for _, t := range s.Trials {
		low, high = math.Min(low, t.Rate/1e6), math.Max(high, t.Rate/1e6)
	}
	across, up := svg.Steps(len(s.Trials)+1), svg.Between(low, high)
	across.Inset = searchInset
	top := y + labelHeight + 16
	at := func(rate float64) float64 { return top + stripHeight*(1-up.At(rate)/100) }
	text := found(s) + " Mpps after " + plural(len(s.Trials), "trial")
	c.Label("name", "start", 0, y+labelHeight-5, name)
	c.Label("value", "end", 100, y+labelHeight-5, text)
	for _, v := range up.Ticks() {
		c.Line("grid", 0, at(v), 100, at(v))
		c.Label("tick", "start", 0, at(v)-3, tick(v))
	}
	if s.Rate > 0 {
		c.Line("ceiling", searchInset, at(s.Rate/1e6), 100, at(s.Rate/1e6))
	}
	for i, t := range s.Trials {
		o := s.outcome(t)
		c.Marker("marker "+o.class+" "+class, string(o.shape), across.At(float64(i+1)), at(t.Rate/1e6),
			fmt.Sprintf("trial %d: %s Mpps, %s", i+1, mpps(t.Rate), o.text))
	}
	return name + " is " + text
}

// outcome of a trial. A trial that failed with no more than the allowed loss is void: the generator did not keep the
// rate.
type outcome struct {
	text, class string
	shape       shape
}

var (
	passed = outcome{"passed", "passed", circle}
	failed = outcome{"lost frames", "failed", cross}
	again  = outcome{"lost frames again", "repeated", cross}
	void   = outcome{"rate not offered", "void", bar}
)

func (s named) outcome(t result.Trial) outcome {
	switch {
	case t.Passed:
		return passed
	case float64(t.Lost) <= s.LossRatio*float64(t.Sent):
		return void
	case t.Repeated:
		return again
	}
	return failed
}
