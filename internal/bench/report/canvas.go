// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"html/template"

	"github.com/corelane/corelane/internal/svg"
)

// canvas is a drawing of a fixed height: x is per cent of the width, y is pixels.
type canvas struct{ svg.Drawing }

func newCanvas() *canvas { return &canvas{svg.Drawing{Unit: "%"}} }

// svg closes the drawing. Screen readers read the title and the description.
func (c *canvas) svg(id string, height float64, title, description string) template.HTML {
	return template.HTML(
		fmt.Sprintf(`<svg class="plot" role="img" aria-labelledby="%s-t %s-d" width="100%%" height="%.0f">`+
			`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
			id, id, height, id, svg.Escape(title), id, svg.Escape(description), c))
}
