// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table aligns rows, the first of which has the heads: columns of numbers to the right, others to the left.
func table(rows [][]string) string {
	var text strings.Builder
	widths, right := layout(rows)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				line.WriteString(pad + cell + "  ")
			} else {
				line.WriteString(cell + pad + "  ")
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}

func layout(rows [][]string) (widths []int, right []bool) {
	widths, right = make([]int, len(rows[0])), make([]bool, len(rows[0]))
	for i := range right {
		right[i] = true
	}
	for n, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			_, err := strconv.ParseFloat(cell, 64)
			right[i] = right[i] && (n == 0 || err == nil || cell == "-")
		}
	}
	return widths, right
}

// Digits writes a measured figure with three significant digits; "-" is for what was not measured.
func Digits(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(f))))
	if scale := math.Pow10(decimals); math.Abs(math.Round(f*scale)) >= 1000 {
		decimals-- // 9.996 is 10.0
	}
	if decimals < 0 {
		f = math.Round(f/math.Pow10(-decimals)) * math.Pow10(-decimals)
	}
	return strconv.FormatFloat(f, 'f', max(decimals, 0), 64)
}

// fixed writes a ratio.
func fixed(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}
