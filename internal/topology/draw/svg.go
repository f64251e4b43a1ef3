// SPDX-License-Identifier: Apache-2.0
package draw

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/svg"
	"github.com/corelane/corelane/internal/topology"
)

// Sizes in the picture, in pixels.
const (
	svgBox, svgGap, svgRow = 46, 8, 28 // width of a CPU, gap between cores, height of a CPU
	svgLine                = 20        // height of a line of text
	svgWidth               = 1000
	svgEdge                = 16
)

// SVG draws the map as a picture without scripts and fonts.
func SVG(m *topology.Machine, marks Marks) string {
	d := &svgMap{marks: marks, y: svgEdge}
	d.text(svgEdge, "bold", fmt.Sprintf("%s: %s", m.Hostname, count(len(m.CPUs), "CPU")))
	for _, n := range layout(m) {
		d.y += svgGap
		d.text(svgEdge, "normal", n.title)
		for _, c := range n.caches {
			d.cache(c)
		}
	}
	d.y += svgGap
	d.legend()
	for _, line := range speeds(m) {
		d.text(svgEdge, "normal", line)
	}
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, svgWidth, d.y+svgEdge, d.String())
}

// strokes are the widths of a core's frame: the faster the core, the wider.
var strokes = map[string]string{slow: "0.4", normal: "1", favoured: "2.5"}

type svgMap struct {
	svg.Drawing
	marks Marks
	y     int // position of the next element
}

func (d *svgMap) text(x int, weight, text string) {
	d.y += svgLine
	d.Label("", "", float64(x), float64(d.y-6), text, "font-weight", weight)
}

// cache draws cores from left to right. The CPUs of a core are side by side in one frame.
func (d *svgMap) cache(c cache) {
	x := svgEdge
	for _, k := range c.cores {
		wide := len(k.cpus) * svgBox
		if x > svgEdge && x+wide+svgEdge > svgWidth {
			x, d.y = svgEdge, d.y+svgRow+svgGap
		}
		for i, id := range k.cpus {
			d.cpu(x+i*svgBox, id)
		}
		d.Rect("", float64(x), float64(d.y), float64(wide), svgRow, "", "fill", "none", "stroke", "#455a64",
			"stroke-width", strokes[bracketsOf(k.speed)])
		x += wide + svgGap
	}
	d.y += svgRow + svgGap
}

func (d *svgMap) cpu(x, id int) {
	mark := d.marks[id]
	d.Rect("", float64(x), float64(d.y), svgBox, svgRow, fmt.Sprintf("CPU %d: %s", id, mark.Name), "fill", mark.Color)
	d.Label("", "middle", float64(x+svgBox/2), float64(d.y+svgRow-9), fmt.Sprintf("%d %c", id, mark.Letter),
		"pointer-events", "none")
}

func (d *svgMap) legend() {
	for _, mark := range legend {
		set := d.marks.with(mark)
		if set.Empty() {
			continue
		}
		d.Rect("", svgEdge, float64(d.y), svgLine, svgLine-2, "", "fill", mark.Color)
		list := set.String()
		if len(list) > 90 {
			list = list[:strings.LastIndex(list[:90], ",")] + ",..."
		}
		d.text(svgEdge+4, "normal", fmt.Sprintf("%c    %s: %s (%s)", mark.Letter, mark.Name, list,
			count(set.Len(), "CPU")))
	}
}
