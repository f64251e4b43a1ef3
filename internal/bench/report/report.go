// SPDX-License-Identifier: Apache-2.0

// Package report draws a result as one HTML file that needs nothing else: no script, no network.
package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/corelane/corelane/internal/bench/result"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"mpps": func(rate float64) string { return result.Digits(rate / 1e6) },
}).Parse(pageText))

// Write the report of a result, complete or not.
func Write(w io.Writer, r *result.Result) error {
	return page.Execute(w, build(r))
}
