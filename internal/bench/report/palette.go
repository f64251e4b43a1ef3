// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"html/template"

	"github.com/corelane/corelane/internal/bench/result"
)

// shape is the path of a marker around 0, 0.
type shape string

const (
	circle  shape = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z"
	square  shape = "M-4.5 -4.5h9v9h-9z"
	diamond shape = "M0 -6l6 6l-6 6l-6 -6z"
	up      shape = "M0 -6l6 10.5h-12z"
	down    shape = "M0 6l6 -10.5h-12z"
	star    shape = "M-2 -6h4v4h4v4h-4v4h-4v-4h-4v-4h4z"
	cross   shape = "M-4 -4l8 8M4 -4l-8 8"
	bar     shape = "M-1.2 -6h2.4v12h-2.4z"
)

var shapes = []shape{circle, square, diamond, up, down, star}

// palette gives each router one colour (class r0, r1, ... of the style sheet) and one marker, everywhere in the report.
// Colours differ in lightness, too, so that they survive a black-and-white printer.
type palette map[string]int

// Routers that have the same colour in every report; others follow in order of appearance.
var known = []string{"corelane", result.Ceiling, "ovs", "linux", "vpp", "grout"}

const colours = 8 // of the style sheet

func newPalette(r *result.Result) palette {
	p := palette{}
	for i, name := range known {
		p[name] = i
	}
	for _, run := range r.Runs {
		if _, ok := p[run.Router]; !ok {
			p[run.Router] = len(p)
		}
	}
	return p
}

func (p palette) class(router string) string { return fmt.Sprintf("r%d", p[router]%colours) }

func (p palette) shape(router string) shape { return shapes[p[router]%len(shapes)] }

// legend lists routers with their markers.
func (p palette) legend(routers []string) []entry {
	var list []entry
	for _, name := range routers {
		list = append(list, entry{mark(p.class(name), p.shape(name)), name})
	}
	return list
}

// mark is a marker within a line of text.
func mark(class string, s shape) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="mark" width="14" height="14" viewBox="-7 -7 14 14" `+
		`aria-hidden="true">`+
		`<g class="%s"><path d="%s"/></g></svg>`, class, s))
}
