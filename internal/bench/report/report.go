// SPDX-License-Identifier: Apache-2.0

// Package report writes a result as one HTML file without scripts, fonts or anything from the network.
package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"

	"github.com/corelane/corelane/internal/bench/result"
)

var (
	//go:embed report.html
	pageText string
	//go:embed report.css
	styleText string

	page = template.Must(template.New("report").Parse(pageText))
)

// Write writes the report of a result, which may be incomplete.
func Write(w io.Writer, r *result.Result) error {
	return page.Execute(w, build(r))
}

// view is the input of the template.
type view struct {
	Style      template.CSS
	Incomplete string // why something is missing; empty: the result is complete
	Verdict    string
	Facts      []string // what was measured, when and where
	Sections   []section
	Command    string
	Footer     string
}

// section has a heading, a text, and figures or a table.
type section struct {
	ID, Title string
	Text      string
	Bullets   []bullet
	Table     *table
	Figures   []figure
}

type bullet struct{ Head, Text string }

// figure is a plot, with its numbers as a table below it.
type figure struct {
	Title, Caption string
	Legend         []entry
	Plot           template.HTML
	Table          table
	Folded         bool // the table is long: it opens on request
}

// entry of a legend.
type entry struct {
	Mark template.HTML
	Text string
}

// table has cells of text. The first column names the row.
type table struct {
	Heads []head
	Rows  []tableRow
}

type head struct {
	Text  string
	Right bool
}

type tableRow struct {
	Cells []string
	Note  string // spans the rest of the row, instead of cells
	Group bool   // starts a group of rows
}

// Rest is the number of columns that a row's note spans.
func (t table) Rest(r tableRow) int { return len(t.Heads) - len(r.Cells) }

// Right says whether a column has numbers.
func (t table) Right(i int) bool { return t.Heads[i].Right }

// filled is the table without empty columns.
func (t table) filled() table {
	empty := func(i int) bool {
		return !slices.ContainsFunc(t.Rows, func(r tableRow) bool {
			return !r.Group && i < len(r.Cells) && r.Cells[i] != none
		})
	}
	t.Rows = slices.Clone(t.Rows)
	for i := len(t.Heads) - 1; i > 0; i-- {
		if !empty(i) {
			continue
		}
		t.Heads = slices.Delete(slices.Clone(t.Heads), i, i+1)
		for k, row := range t.Rows {
			if i < len(row.Cells) {
				t.Rows[k].Cells = slices.Delete(slices.Clone(row.Cells), i, i+1)
			}
		}
	}
	return t
}

func left(heads ...string) []head { return columns(false, heads) }

func right(heads ...string) []head { return columns(true, heads) }

func columns(right bool, heads []string) []head {
	list := make([]head, len(heads))
	for i, h := range heads {
		list[i] = head{h, right}
	}
	return list
}
