// SPDX-License-Identifier: Apache-2.0
package table

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A table fits the screen: texts are wrapped first, then columns follow in further tables.
func TestFit(t *testing.T) {
	rows := [][]string{
		{"NAME", "CPUS", "N", "WHY"},
		{"guests", "1-3,9-15,33-35,41-47", "7", "on node 0, sharing the last-level cache with workers"},
		{"idle", "4", "1", "a sibling"},
	}
	for width, want := range map[int]string{
		0: "NAME    CPUS                  N  WHY\n" +
			"guests  1-3,9-15,33-35,41-47  7  on node 0, sharing the last-level cache with workers\n" +
			"idle    4                     1  a sibling\n",
		60: "NAME    CPUS                  N  WHY\n" +
			"guests  1-3,9-15,33-35,41-47  7  on node 0, sharing the\n" +
			"                                 last-level cache with\n" +
			"                                 workers\n" +
			"idle    4                     1  a sibling\n",
		40: "NAME    CPUS                  N\n" +
			"guests  1-3,9-15,33-35,41-47  7\n" +
			"idle    4                     1\n" +
			"\n" +
			"NAME    WHY\n" +
			"guests  on node 0, sharing\n" +
			"        the last-level cache\n" +
			"        with workers\n" +
			"idle    a sibling\n",
	} {
		var text strings.Builder
		w := New(&text, []bool{false, false, true, false}).Fit(width)
		for _, row := range rows {
			if err := w.Add(row...); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil || text.String() != want {
			t.Errorf("%d columns, %v:\n%s\nwant:\n%s", width, err, text.String(), want)
		}
	}
}

// However many columns there are, no line is wider than the screen, and no cell is lost.
func TestFitMany(t *testing.T) {
	right := make([]bool, 40)
	row := make([]string, len(right))
	for i := range row {
		right[i], row[i] = i%3 == 0, strings.Repeat(string(rune('a'+i%26)), 1+7*i%60)
	}
	var text strings.Builder
	w := New(&text, right).Fit(80)
	_ = w.Add(row...)
	_ = w.Flush()
	for line := range strings.Lines(text.String()) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("%q", line)
		}
	}
	joined := strings.NewReplacer("\n", "", " ", "").Replace(text.String())
	for i, cell := range row {
		if !right[i] && i > 0 && strings.Count(joined, cell[:1]) < len(cell) {
			t.Errorf("%q is missing", cell)
		}
	}
}
