// SPDX-License-Identifier: Apache-2.0

// Package page writes a report of internal/explain as one HTML page without scripts, which needs no network.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/explain"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	pages = template.Must(template.New("page").Funcs(template.FuncMap{
		"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
		"rate":    explain.Packets,
		"length":  length,
		"at":      func(ns int64) string { return fmt.Sprintf("%.3f s", float64(ns)/1e9) },
		"lines":   func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") },
		"note":    func() string { return explain.TableNote },
		"inc":     func(i int) int { return i + 1 },
	}).Parse(pageHTML))
)

// view is what the template shows.
type view struct {
	*explain.Report
	Style   template.CSS
	Facts   []string
	Serious []explain.Cause
	Minor   []explain.Cause
	More    int // causes that are not shown
	Workers []worker
	Legend  []explain.Kind
}

type worker struct {
	explain.WorkerReport
	Timeline template.HTML
	Bar      []segment
	Longest  []explain.GapReport
	Marks    []string
}

// segment of the bar that shows where a worker's time went.
type segment struct {
	Name  string
	Class string
	Share float64
	Width template.CSS
}

// Write writes the page.
func Write(w io.Writer, r *explain.Report) error {
	v := view{Report: r, Style: template.CSS(explain.StyleSheet() + pageCSS)}
	v.Facts = append(v.Facts, r.Hostname, fmt.Sprintf("process %d", r.Daemon), r.Started.Format(time.DateTime),
		fmt.Sprintf("%.1f s", r.Seconds))
	if !r.Tracing {
		v.Facts = append(v.Facts, "without kernel events: the evidence is weaker")
	}
	for _, c := range r.Causes {
		list := &v.Serious
		if c.Minor {
			list = &v.Minor
		}
		if len(*list) == mostShown {
			v.More++
			continue
		}
		*list = append(*list, c)
	}
	for i := range r.Workers {
		v.Workers = append(v.Workers, workerOf(r, &r.Workers[i]))
	}
	v.Legend = legend(r)
	return pages.Execute(w, &v)
}

const mostShown = 20 // causes that matter, and others

func workerOf(r *explain.Report, w *explain.WorkerReport) worker {
	out := worker{WorkerReport: *w, Timeline: timeline(w.Gaps, int64(r.Seconds*1e9)), Bar: bar(&w.Model),
		Longest: longest(w.Gaps)}
	for i := range 5 {
		out.Marks = append(out.Marks, fmt.Sprintf("%.3g s", r.Seconds*float64(i)/4))
	}
	return out
}

const thin = 0.002 // share of the bar: a narrower segment cannot be seen

// bar has the same parts as the table, in their order.
func bar(m *explain.Model) (out []segment) {
	add := func(name, class string, share float64) {
		if share >= thin {
			out = append(out, segment{name, class, share, template.CSS(fmt.Sprintf("width:%.3f%%", 100*share))})
		}
	}
	add("forwarding", "forwarding", m.Forwarding)
	for _, p := range m.Shown() {
		if p.Kind == "" { // the sum of those that are too small to be shown
			add("many small causes", class(explain.ManySmall), p.Share)
		} else {
			add(p.Name, class(p.Kind), p.Share)
		}
	}
	return out
}

// legend lists the kinds that any timeline shows, in the order of the causes.
func legend(r *explain.Report) (out []explain.Kind) {
	seen := map[explain.Kind]bool{}
	for _, w := range r.Workers {
		for _, g := range w.Gaps {
			seen[g.Kind] = true
		}
	}
	for _, c := range r.Causes {
		if seen[c.Kind] {
			out = append(out, c.Kind)
			delete(seen, c.Kind)
		}
	}
	return out
}

// class returns the class of a kind in the style sheet. Kinds are lower-case words with hyphens.
func class(k explain.Kind) string { return "k-" + string(k) }

func length(ns int64) string {
	if ns >= 1e6 {
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.1f µs", float64(ns)/1e3)
}
