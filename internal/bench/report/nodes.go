// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/svg"
)

const (
	nodeColours = 12  // of the style sheet
	leastLabel  = 4   // per cent of the width that a number in a segment needs
	perLetter   = 1.1 // more for each letter of a name
	mostStacks  = 8   // bars of a figure, columns of its table
)

// stack is one bar: the nodes of a router in one measurement.
type stack struct {
	group *group
	run   *result.Run
}

// nodes draws the cost of each node of a router's graph, for routers that report it.
func nodes(r *result.Result, list []*group) section {
	s := section{ID: "nodes", Title: "Cycles per packet, by node",
		Text: "Where a router's forwarding thread spends its time at saturation, in cycles of the time stamp " +
			"counter, " +
			"for routers that report it."}
	byRouter := map[string][]stack{}
	largest := 0.0
	for _, g := range list {
		for _, run := range g.with(func(run *result.Run) bool { return len(run.Nodes) > 0 }) {
			byRouter[run.Router] = append(byRouter[run.Router], stack{g, run})
			largest = math.Max(largest, total(run))
		}
	}
	for _, run := range r.Runs {
		for stacks := range slices.Chunk(byRouter[run.Router], mostStacks) {
			s.Figures = append(s.Figures,
				nodeFigure(stacks, svg.Linear(largest), fmt.Sprintf("nodes-%d", len(s.Figures))))
		}
		delete(byRouter, run.Router)
	}
	return s
}

func total(run *result.Run) float64 {
	sum := 0.0
	for _, n := range run.Nodes {
		sum += n.CyclesPerPacket
	}
	return sum
}

// namesOf returns the names of the nodes of all bars, each once. A node that only some bars have is next to its
// neighbours there.
func namesOf(stacks []stack) []string {
	var names []string
	for _, st := range stacks {
		at := 0
		for _, n := range st.run.Nodes {
			if i := slices.Index(names, n.Name); i >= 0 {
				at = i + 1
				continue
			}
			names = slices.Insert(names, at, n.Name)
			at++
		}
	}
	return names
}

const (
	stackHeight = 28.0
	stackRow    = labelHeight + stackHeight + 10
)

func nodeFigure(stacks []stack, s svg.Scale, id string) figure {
	router, names := stacks[0].run.Router, namesOf(stacks)
	c, bottom := newCanvas(), stackRow*float64(len(stacks))
	c.Axis(s, 0, bottom, "cycles", tick)
	var told []string
	for i, st := range stacks {
		told = append(told, c.stack(s, stackRow*float64(i), label(i), st, names))
	}
	return figure{Title: router, Caption: "The number in a segment is the node's in the table.",
		Table: nodeTable(stacks, names), Plot: c.svg(id, bottom+axisHeight, "Cycles per packet of "+router,
			strings.Join(told, ". "))}
}

// label is the letter of a bar and of its column in the table.
func label(i int) string { return string(rune('A' + i)) }

func (c *canvas) stack(s svg.Scale, y float64, name string, st stack, names []string) string {
	c.Label("name", "start", 0, y+labelHeight-5, fmt.Sprintf("%s  %s: %s", name, st.group.Title, number(total(st.run))))
	at, told := 0.0, []string{}
	for _, n := range st.run.Nodes {
		text := fmt.Sprintf("%s %s cycles", n.Name, number(n.CyclesPerPacket))
		told = append(told, text)
		c.segment(s.At(at), y+labelHeight, s.At(at+n.CyclesPerPacket)-s.At(at), slices.Index(names, n.Name), n.Name,
			fmt.Sprintf("%s, %s packets per call", text, number(n.PacketsPerCall)))
		at += n.CyclesPerPacket
	}
	return fmt.Sprintf("%s: %s; together %s", st.group.Title, strings.Join(told, ", "), number(at))
}

// segment draws a part of a stacked bar, with as much of its label as fits.
func (c *canvas) segment(x, y, width float64, i int, name, hint string) {
	class := fmt.Sprintf("n%d", i%nodeColours)
	c.Rect("segment "+class, x, y, width, stackHeight, hint)
	if width < leastLabel {
		return
	}
	c.Raw(`<svg class="%s" x="%.2f%%" y="%.1f" width="%.2f%%" height="%.0f"><text class="inside" x="5" y="18">%d`,
		class, x, y, width, stackHeight, i+1)
	if width >= leastLabel+perLetter*float64(len(name)) {
		c.Raw(`<tspan class="wide"> %s</tspan>`, svg.Escape(name))
	}
	c.Raw(`</text></svg>`)
}

// nodeTable has a row for each node and a column for each bar.
func nodeTable(stacks []stack, names []string) table {
	t := table{Heads: append(right("No."), left("Node")...)}
	for i := range stacks {
		t.Heads = append(t.Heads, head{label(i), true})
	}
	row := func(number, name string, figure func(*result.Run) string) {
		cells := []string{number, name}
		for _, st := range stacks {
			cells = append(cells, figure(st.run))
		}
		t.Rows = append(t.Rows, tableRow{Cells: cells})
	}
	for i, name := range names {
		row(fmt.Sprint(i+1), name, func(run *result.Run) string {
			k := slices.IndexFunc(run.Nodes, func(n result.Node) bool { return n.Name == name })
			if k < 0 {
				return ""
			}
			return number(run.Nodes[k].CyclesPerPacket)
		})
	}
	row("", "All", func(run *result.Run) string { return number(total(run)) })
	row("", "Packets per call, median of the nodes", func(run *result.Run) string {
		var list []float64
		for _, n := range run.Nodes {
			list = append(list, n.PacketsPerCall)
		}
		return number(stat.Median(list))
	})
	return t
}
