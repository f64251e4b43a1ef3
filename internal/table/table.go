// SPDX-License-Identifier: Apache-2.0

// Package table writes tables of text.
package table

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Writer writes rows in aligned columns. It computes the widths from a block of rows at a time, so that its memory does
// not depend on the number of rows.
type Writer struct {
	w      io.Writer
	right  []bool
	widths []int
	rows   [][]string
	fit    int // columns of the screen; 0: the table may be as wide as it is
}

const block = 1024

// New makes a Writer with one column per element of right, which says whether its cells are aligned to the right.
func New(w io.Writer, right []bool) *Writer {
	return &Writer{w: w, right: right, widths: make([]int, len(right))}
}

// Add a row with a cell for each column.
func (t *Writer) Add(row ...string) error {
	t.rows = append(t.rows, row)
	if len(t.rows) == block {
		return t.Flush()
	}
	return nil
}

// Flush writes the rows that were added.
func (t *Writer) Flush() error {
	for _, row := range t.rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var err error
	if t.fit == 0 || total(t.widths) <= t.fit {
		err = t.write(t.rows, t.widths, t.right)
	} else {
		err = t.fold()
	}
	t.rows = t.rows[:0]
	return err
}

func (t *Writer) write(rows [][]string, widths []int, right []bool) error {
	var line strings.Builder
	for _, row := range rows {
		line.Reset()
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
			line.WriteString("  ")
		}
		if _, err := io.WriteString(t.w, strings.TrimRight(line.String(), " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Text is a table whose first row is the header. Columns of numbers are aligned to the right, others to the left.
func Text(rows [][]string) string {
	right := make([]bool, len(rows[0]))
	for i := range right {
		right[i] = true
		for _, row := range rows[1:] {
			_, err := strconv.ParseFloat(row[i], 64)
			right[i] = right[i] && (err == nil || row[i] == "-")
		}
	}
	var text strings.Builder
	t := New(&text, right)
	for _, row := range rows {
		_ = t.Add(row...) // a strings.Builder takes everything
	}
	_ = t.Flush()
	return text.String()
}

// Markdown is a table in Markdown whose columns line up. A line break in a cell would end the table: it becomes a
// space.
func Markdown(heads []string, rows [][]string) string {
	rule := make([]string, len(heads))
	for i := range heads {
		width := utf8.RuneCountInString(heads[i])
		for _, row := range rows {
			width = max(width, utf8.RuneCountInString(row[i]))
		}
		rule[i] = strings.Repeat("-", width)
	}
	var text strings.Builder
	for _, row := range append([][]string{heads, rule}, rows...) {
		for i, cell := range row {
			pad := strings.Repeat(" ", len(rule[i])-utf8.RuneCountInString(cell))
			text.WriteString("| " + strings.ReplaceAll(cell, "\n", " ") + pad + " ")
		}
		text.WriteString("|\n")
	}
	return text.String()
}
