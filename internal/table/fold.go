// SPDX-License-Identifier: Apache-2.0
package table

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const narrowest = 20 // to which a column of text is wrapped

// Fit makes tables that are wider than a screen narrower: columns of text are wrapped, and if that is not enough, some
// columns follow in a second table, behind the first column. 0: as wide as they are.
func (t *Writer) Fit(columns int) *Writer {
	t.fit = columns
	return t
}

func total(widths []int) int {
	sum := -2
	for _, w := range widths {
		sum += w + 2
	}
	return sum
}

// fold writes rows that are wider than the screen.
func (t *Writer) fold() error {
	widths := slices.Clone(t.widths)
	for total(widths) > t.fit {
		widest := -1 // of the columns of text; the first one names the row
		for i := 1; i < len(widths); i++ {
			if !t.right[i] && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		next := narrowest // all of the wide columns shrink together
		for i := 1; i < len(widths); i++ {
			if i != widest && !t.right[i] && widths[i] < widths[widest] {
				next = max(next, widths[i])
			}
		}
		if next == widths[widest] {
			next--
		}
		widths[widest] = max(next, widths[widest]-(total(widths)-t.fit))
	}
	for from := 1; from < len(widths) || from == 1; {
		to, width := from, widths[0]
		for to < len(widths) && (to == from || width+2+widths[to] <= t.fit) {
			width += 2 + widths[to]
			to++
		}
		if from > 1 {
			if _, err := t.w.Write([]byte("\n")); err != nil {
				return err
			}
		}
		if err := t.part(widths, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// part writes the first column and a range of the others.
func (t *Writer) part(widths []int, from, to int) error {
	pick := append([]int{0}, make([]int, to-from)...)
	for i := range to - from {
		pick[1+i] = from + i
	}
	var own []int
	var right []bool
	for _, i := range pick {
		own, right = append(own, widths[i]), append(right, t.right[i])
	}
	var rows [][]string
	for _, row := range t.rows {
		cells := make([][]string, len(pick))
		lines := 1
		for n, i := range pick {
			cells[n] = Wrap(row[i], own[n])
			lines = max(lines, len(cells[n]))
		}
		for line := range lines {
			out := make([]string, len(pick))
			for n := range pick {
				if line < len(cells[n]) {
					out[n] = cells[n][line]
				}
			}
			rows = append(rows, out)
		}
	}
	return t.write(rows, own, right)
}

// Wrap breaks a text at spaces and behind commas, and words that are longer than a line anywhere.
func Wrap(text string, width int) []string {
	var lines []string
	for utf8.RuneCountInString(text) > width {
		runes := []rune(text)
		at := width
		for at > 0 && runes[at] != ' ' && runes[at-1] != ',' {
			at--
		}
		if at == 0 {
			at = width
		}
		lines = append(lines, string(runes[:at]))
		text = strings.TrimLeft(string(runes[at:]), " ")
	}
	return append(lines, text)
}
