// SPDX-License-Identifier: Apache-2.0
package table

import (
	"errors"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	got := Text([][]string{{"name", "n", "note"}, {"größe", "7", "-"}, {"b", "12.5", "x"}, {"c", "-", ""}})
	const want = "name      n  note\ngröße     7  -\nb      12.5  x\nc         -\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	got := Markdown([]string{"a", "head"}, [][]string{{"größe", "1\n2"}})
	const want = "| a     | head |\n| ----- | ---- |\n| größe | 1 2  |\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// failing accepts a number of writes.
type failing int

func (f *failing) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

// A table of any length is written in blocks, and an error of the writer ends it.
func TestBlocks(t *testing.T) {
	var text strings.Builder
	w := New(&text, []bool{false, true})
	for range block {
		if err := w.Add("a", "1"); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(text.String(), "\n"); n != block {
		t.Errorf("%d rows are out after a block", n)
	}
	if err := w.Add("wider", "100"); err != nil || w.Flush() != nil ||
		!strings.HasSuffix(text.String(), "a  1\nwider  100\n") {
		t.Errorf("%v, %q", err, text.String()[max(0, text.Len()-40):])
	}
	room := failing(1)
	w = New(&room, []bool{false})
	_, _ = w.Add("a"), w.Add("b")
	if err := w.Flush(); err == nil {
		t.Error("a full writer causes no error")
	}
}
