// SPDX-License-Identifier: Apache-2.0

// Package svg writes drawings: elements whose texts are escaped, scales and axes.
package svg

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Drawing collects elements. Unit is the unit of x and of widths: "%" of the drawing, or "" for the drawing's own
// units, in which y and heights always are. An empty class, hint or attribute is left out.
type Drawing struct {
	Unit string
	text strings.Builder
}

// Escape makes text safe for an element or an attribute. Characters that XML cannot hold at all, such as control
// characters, become "?".
func Escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError || r >= 0xfffe && r <= 0xffff {
			return '?'
		}
		return r
	}, text))
}

// Raw adds markup as it is.
func (d *Drawing) Raw(format string, args ...any) { fmt.Fprintf(&d.text, format, args...) }

// String returns all elements.
func (d *Drawing) String() string { return d.text.String() }

// Rect draws a rectangle. The hint is its tooltip, which screen readers read, too.
func (d *Drawing) Rect(class string, x, y, width, height float64, hint string, attributes ...string) {
	place := []string{"x", d.x(x), "y", number(y), "width", d.x(width), "height", number(height)}
	d.element("rect", class, title(hint), append(attributes, place...))
}

// Line draws a line.
func (d *Drawing) Line(class string, x1, y1, x2, y2 float64) {
	d.element("line", class, "", []string{"x1", d.x(x1), "y1", number(y1), "x2", d.x(x2), "y2", number(y2)})
}

// Dot draws a disc.
func (d *Drawing) Dot(class string, x, y, r float64) {
	d.element("circle", class, "", []string{"cx", d.x(x), "cy", number(y), "r", number(r)})
}

// Label writes text; anchor is start, middle or end.
func (d *Drawing) Label(class, anchor string, x, y float64, text string, attributes ...string) {
	d.element("text", class, Escape(text), append(attributes, "x", d.x(x), "y", number(y), "text-anchor", anchor))
}

// Marker draws a path around 0, 0 with its middle at x, y.
func (d *Drawing) Marker(class, path string, x, y float64, hint string) {
	d.element("svg", class, title(hint)+`<path d="`+Escape(path)+`"/>`,
		[]string{"x", d.x(x), "y", number(y), "width", "1", "height", "1", "overflow", "visible"})
}

// Axis draws an axis along the bottom with lines across the plot. text names a tick, the last one with the unit.
func (d *Drawing) Axis(s Scale, top, bottom float64, unit string, text func(float64) string) {
	ticks := s.Ticks()
	for i, v := range ticks {
		x := s.At(v)
		d.Line("grid", x, top, x, bottom)
		anchor, end := "middle", ""
		switch i {
		case 0:
			anchor = "start"
		case len(ticks) - 1:
			anchor, end = "end", " "+unit
		}
		d.Label("tick", anchor, x, bottom+14, text(v)+end)
	}
	d.Line("base", 0, bottom, 100, bottom)
}

// element writes an element; attributes are names and values, content is markup.
func (d *Drawing) element(name, class, content string, attributes []string) {
	d.text.WriteString("<" + name)
	for pair := range slices.Chunk(append([]string{"class", class}, attributes...), 2) {
		if pair[1] != "" {
			d.text.WriteString(" " + pair[0] + `="` + Escape(pair[1]) + `"`)
		}
	}
	if content == "" {
		d.text.WriteString("/>")
		return
	}
	d.text.WriteString(">" + content + "</" + name + ">")
}

func title(hint string) string {
	if hint == "" {
		return ""
	}
	return "<title>" + Escape(hint) + "</title>"
}

func (d *Drawing) x(x float64) string { return number(x) + d.Unit }

// number has at most two decimals: smaller steps are invisible.
func number(f float64) string {
	text := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}
