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
	leastBar = 0.7   // wide, to be seen
	leastNS  = 5_000 // a bar without height
	listed   = 40    // gaps in the table
)

// timeline draws each gap where it was in the window, the higher the longer it took (logarithmic), in the colour of its
// cause. What it was stands in its title, which browsers show when it is pointed at.
func timeline(gaps []explain.GapReport, window int64) template.HTML {
	var d svg.Drawing
	d.Raw(`<svg class="plot" viewBox="0 0 %g %g" preserveAspectRatio="none" role="img" aria-label="gaps in time">`, width, height)
	for _, g := range gaps {
		x := width * float64(g.FromNS) / float64(max(1, window))
		w := max(leastBar, width*float64(g.NS)/float64(max(1, window)))
		h := height * math.Log(float64(max(g.NS, leastNS))/leastNS*1.2) / math.Log(float64(max(window, 2*leastNS))/leastNS*1.2)
		text := fmt.Sprintf("%s: %s, %s at %.4f s", g.Kind, g.Who, length(g.NS), float64(g.FromNS)/1e9)
		d.Rect(class(g.Kind), min(x, width-leastBar), height-h, min(w, width), h, text)
	}
	d.Raw("</svg>")
	return template.HTML(d.String())
}

// longest gaps, for those who cannot point.
func longest(gaps []explain.GapReport) []explain.GapReport {
	out := slices.Clone(gaps)
	slices.SortStableFunc(out, func(a, b explain.GapReport) int { return cmp.Compare(b.NS, a.NS) })
	return out[:min(len(out), listed)]
}
