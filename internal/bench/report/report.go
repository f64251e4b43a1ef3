// SPDX-License-Identifier: Apache-2.0

// Package report draws a result as one HTML file that needs nothing else: no script, no font, no network.
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

// Write the report of a result, complete or not.
func Write(w io.Writer, r *result.Result) error {
	return page.Execute(w, build(r))
}

// view is what the template shows.
type view struct {
	Style      template.CSS
	Incomplete string // why not all is there; empty: all is
	Verdict    string
	Facts      []string // who measured what, when and where, in short
	Sections   []section
	Command    string
	Footer     string
}

// section has a heading and tells one thing.
type section struct {
	ID, Title string
	Text      string
	Bullets   []bullet
	Table     *table
	Figures   []figure
}

type bullet struct{ Head, Text string }

// figure is a plot with the same figures below it as a table.
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

// table of text; the first column names the row.
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
	Note  string // spans what is left of the row, instead of cells
	Group bool   // starts a group of rows
}

// Rest is how many columns a row's note spans.
func (t table) Rest(r tableRow) int { return len(t.Heads) - len(r.Cells) }

// Right tells whether a column is of numbers.
func (t table) Right(i int) bool { return t.Heads[i].Right }

// filled is the table without columns in which nothing was measured.
func (t table) filled() table {
	empty := func(i int) bool {
		return !slices.ContainsFunc(t.Rows, func(r tableRow) bool { return !r.Group && i < len(r.Cells) && r.Cells[i] != none })
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
