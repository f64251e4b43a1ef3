// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"html/template"
	"strings"
)

// canvas is a drawing of a fixed height: x is per cent of the width, y is pixels.
type canvas struct{ text strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.text, format, args...) }

func escape(s string) string { return template.HTMLEscapeString(s) }

// tip is shown when the pointer rests on a shape, and read to those who cannot see it.
func tip(text string) string { return "<title>" + escape(text) + "</title>" }

func (c *canvas) rect(class string, x, y, width, height float64, hint string) {
	c.add(`<rect class="%s" x="%.2f%%" y="%.1f" width="%.2f%%" height="%.1f">%s</rect>`, class, x, y, width, height, tip(hint))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.add(`<line class="%s" x1="%.2f%%" y1="%.1f" x2="%.2f%%" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (c *canvas) dot(class string, x, y, r float64) {
	c.add(`<circle class="%s" cx="%.2f%%" cy="%.1f" r="%.1f"/>`, class, x, y, r)
}

// label is text; anchor is start, middle or end.
func (c *canvas) label(class, anchor string, x, y float64, text string) {
	c.add(`<text class="%s" x="%.2f%%" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, escape(text))
}

// marker draws one of the shapes with its middle at x, y.
func (c *canvas) marker(class string, s shape, x, y float64, hint string) {
	c.add(`<svg class="%s" x="%.2f%%" y="%.1f" width="1" height="1" overflow="visible">%s<path d="%s"/></svg>`, class, x, y, tip(hint), s)
}

// axis along the bottom with lines across the plot.
func (c *canvas) axis(s scale, top, bottom float64, unit string, text func(float64) string) {
	ticks := s.ticks()
	for i, v := range ticks {
		x := s.at(v)
		c.line("grid", x, top, x, bottom)
		anchor, end := "middle", ""
		switch i {
		case 0:
			anchor = "start"
		case len(ticks) - 1:
			anchor, end = "end", " "+unit
		}
		c.label("tick", anchor, x, bottom+14, text(v)+end)
	}
	c.line("base", 0, bottom, 100, bottom)
}

// svg closes the drawing. The title and the description stand for it where it cannot be seen.
func (c *canvas) svg(id string, height float64, title, description string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="plot" role="img" aria-labelledby="%s-t %s-d" width="100%%" height="%.0f">`+
		`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
		id, id, height, id, escape(title), id, escape(description), c.text.String()))
}
