// SPDX-License-Identifier: Apache-2.0
package svg

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestElements(t *testing.T) {
	for want, draw := range map[string]func(*Drawing){
		`<rect class="a" fill="red" x="1.5%" y="2" width="30%" height="0.33"><title>&lt;b&gt;</title></rect>`: func(
			d *Drawing) {
			d.Rect("a", 1.5, 2, 30, 1.0/3, "<b>", "fill", "red")
		},
		`<line x1="0%" y1="0" x2="100%" y2="1"/>`:  func(d *Drawing) { d.Line("", -0.0001, 0, 100, 1) },
		`<circle class="c" cx="1%" cy="2" r="3"/>`: func(d *Drawing) { d.Dot("c", 1, 2, 3) },
		`<text class="&#34;&gt;" x="1%" y="2" text-anchor="end">a &amp; b</text>`: func(d *Drawing) {
			d.Label(`">`, "end", 1, 2, "a & b")
		},
		`<svg class="m" x="1%" y="2" width="1" height="1" overflow="visible"><title>h</title><path d="M0 0"/></svg>`: func(d *Drawing) {
			d.Marker("m", "M0 0", 1, 2, "h")
		},
	} {
		d := &Drawing{Unit: "%"}
		if draw(d); d.String() != want {
			t.Errorf("%s, want %s", d, want)
		}
	}
}

func TestAxis(t *testing.T) {
	d := &Drawing{}
	d.Axis(Linear(2), 0, 10, "Mpps", func(v float64) string { return number(v) })
	if n := strings.Count(d.String(), `class="grid"`); n != 5 ||
		!strings.Contains(d.String(), `text-anchor="end">2 Mpps</text>`) {
		t.Errorf("%d lines: %s", n, d)
	}
}

// Whatever a text holds, the drawing stays well formed and the text stays text.
func FuzzText(f *testing.F) {
	f.Add(`"><script>alert(1)</script>`)
	f.Add("a\x00b\xff\ufffe")
	f.Fuzz(func(t *testing.T, text string) {
		d := &Drawing{}
		d.Rect(text, 0, 0, 1, 1, text, "fill", text)
		d.Label(text, "start", 0, 0, text)
		names := 0
		in := xml.NewDecoder(strings.NewReader("<svg>" + d.String() + "</svg>"))
		in.Strict = true
		for {
			token, err := in.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if _, ok := token.(xml.StartElement); ok {
				names++
			}
		}
		if names > 4 {
			t.Errorf("%q makes %d elements: %s", text, names, d)
		}
	})
}
