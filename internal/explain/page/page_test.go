// SPDX-License-Identifier: Apache-2.0
package page

import (
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/browsertest"
	"github.com/corelane/corelane/internal/explain"
)

// report has a worker with gaps of every kind. Its names are hostile: threads may choose any name.
func report() *explain.Report {
	const evil = `<script>alert("x")</script>&`
	r := &explain.Report{Started: time.Unix(1e9, 0), Seconds: 10, Verdict: evil + " ran on CPU 1",
		Tracing: true, Daemon: 7, Hostname: "node", Unobserved: []string{evil}}
	w := explain.WorkerReport{ID: 0, CPU: 1, Verdict: "half of what it could",
		Model: explain.Model{PerPacket: 200, Expected: 10e6, Delivered: 5e6, Forwarding: 0.5}}
	kinds := explain.Kinds()
	for i, k := range kinds {
		w.Gaps = append(w.Gaps, explain.GapReport{FromNS: int64(i) * 390_000_000, NS: 10_000 << (i % 14), Kind: k,
			Culprit: evil})
		w.Model.Parts = append(w.Model.Parts, explain.Part{Name: evil, Kind: k, Share: 0.03, PPS: 1e5})
		r.Causes = append(r.Causes, explain.Cause{Kind: k, Title: evil, Why: evil, LostNS: 1, Share: 0.03, PPS: 1e5,
			Fix: "echo 1 > /a\necho 2 > /b", FixNote: "note",
			Evidence: []explain.Fact{{Grade: explain.Seen, Text: strings.Repeat("a long line without end ", 9)}},
			Minor:    i > 10})
	}
	w.Nodes = []explain.NodeCost{{Name: "ip4_lookup", Packets: 5, Cycles: 40, Share: 1}}
	r.Workers = []explain.WorkerReport{w, {ID: 1, Label: "worker 1", CPU: 2, Verdict: "idle"}}
	return r
}

func render(t *testing.T, r *explain.Report) string {
	var b strings.Builder
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPage(t *testing.T) {
	page := render(t, report())
	for _, bad := range []string{"<script>alert", "http://", "https://", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n := strings.Count(page, "<rect "); n != len(explain.Kinds()) {
		t.Errorf("%d bars", n)
	}
	for _, want := range []string{"echo 2 &gt; /b", "worker 1 on CPU 2", "ip4_lookup", "The longest gaps",
		"prefers-color-scheme: dark"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	render(t, &explain.Report{})
}

// Each kind has a colour, and each colour is defined for light and dark screens.
func TestColours(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(explain.StyleSheet()), "\n") {
		_, name, _ := strings.Cut(line, "var(")
		name, _, found := strings.Cut(name, ")")
		if !found || strings.Count(pageCSS, name+": ") < 2 {
			t.Errorf("%s: the style sheet does not define '%s' twice", line, name)
		}
	}
}

func TestInABrowser(t *testing.T) {
	page := render(t, report())
	layouts, console := browsertest.Browse(t, page)
	if len(console) != 1 || !strings.Contains(console[0], "measured") {
		t.Errorf("the browser's console: %q", console)
	}
	if len(layouts) != 2 || layouts[1].Width > 390 {
		t.Fatalf("%+v", layouts)
	}
	for _, l := range layouts {
		if l.Plots != 2 {
			t.Errorf("%d plots at %d pixels", l.Plots, l.Width)
		}
		for _, p := range l.Problems {
			t.Errorf("at %d pixels: %s", l.Width, p)
		}
	}
}

// However many causes there are, the page stays short.
func TestPageIsBounded(t *testing.T) {
	r := report()
	for range 5000 {
		r.Causes = append(r.Causes, explain.Cause{Kind: explain.ForeignThread, Title: "a hog"},
			explain.Cause{Kind: explain.ForeignThread, Title: "a flea", Minor: true})
		r.Workers[0].Model.Parts = append(r.Workers[0].Model.Parts, explain.Part{Name: "a hog", Share: 0.0001, PPS: 1})
	}
	page := render(t, r)
	if len(page) > 100_000 || !strings.Contains(page, "more; -o json lists them") ||
		!strings.Contains(page, "less: others") {
		t.Errorf("%d bytes", len(page))
	}
}
