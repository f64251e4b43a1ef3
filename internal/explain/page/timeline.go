// SPDX-License-Identifier: Apache-2.0
package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/svg"
)

const (
	width    = 1000.0
	height   = 100.0
	leastBar = 0.7   // least width that can be seen
	leastNS  = 5_000 // length of a gap whose bar is lowest
	listed   = 40    // gaps in the table
)

// timeline draws each gap at its time in the window, in the colour of its cause. The height of a bar is the logarithm
// of the gap's length. Its title, which browsers show when the pointer is on it, has the details.
func timeline(gaps []explain.GapReport, window int64) template.HTML {
	var d svg.Drawing
	d.Raw(`<svg class="plot" viewBox="0 0 %g %g" preserveAspectRatio="none" role="img" aria-label="gaps in time">`,
		width, height)
	for _, g := range gaps {
		x := width * float64(g.FromNS) / float64(max(1, window))
		w := max(leastBar, width*float64(g.NS)/float64(max(1, window)))
		h := height * math.Log(float64(max(g.NS, leastNS))/leastNS*1.2) / math.Log(
			float64(max(window, 2*leastNS))/leastNS*1.2)
		text := fmt.Sprintf("%s: %s, %s at %.4f s", g.Kind, g.Culprit, length(g.NS), float64(g.FromNS)/1e9)
		d.Rect(class(g.Kind), min(x, width-leastBar), height-h, min(w, width), h, text)
	}
	d.Raw("</svg>")
	return template.HTML(d.String())
}

// longest returns the longest gaps, as a table for readers without a pointer.
func longest(gaps []explain.GapReport) []explain.GapReport {
	out := slices.Clone(gaps)
	slices.SortStableFunc(out, func(a, b explain.GapReport) int { return cmp.Compare(b.NS, a.NS) })
	return out[:min(len(out), listed)]
}
