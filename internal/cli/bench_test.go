// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/corelane/corelane/internal/bench"
	results "github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
)

func benchResult() *results.Result {
	run := func(router string, rate float64) results.Run {
		r := results.Run{Scenario: "vxlan-encap", Router: router, Flows: 1000, Routes: 1, FrameSizes: []int{64},
			Workers: 1, NDR: &results.Search{Rate: rate / 2}, PDR: &results.Search{LossRatio: 1e-4, Rate: rate,
				Limited: "the generator"},
			Latency: []results.Latency{{Load: "10% NDR", P50: 1, P90: 1, P99: 2, P999: 2, Max: 2},
				{Load: "50% NDR", P50: 3.25, P90: 4, P99: 12.5, P999: 13, Max: 14}},
			Bottleneck: results.Bottleneck{Component: "router", Why: "it was busy"}}
		for repetition := range 3 {
			for i := range 4 {
				r.Windows = append(r.Windows, results.Window{Repetition: repetition, At: float64(i), Seconds: 0.2,
					Received: rate, RoundTrip: 100})
			}
		}
		return r
	}
	return &results.Result{Version: results.Version, Complete: true,
		Runs: []results.Run{run("corelane", 15e6), run("testpmd", 30e6),
			{Scenario: "vxlan-encap", Router: "ovs", Flows: 1000, Routes: 1, FrameSizes: []int{64}, Workers: 1,
				Error: "none of 2000 frames came back"}}}
}

func TestBenchTable(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	if err := a.benchEnd(benchResult(), bench.Files{JSON: "a.json", HTML: "a.html"}); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"SCENARIO FLOWS ROUTES ROUTER MPPS QUIET OF CEILING (SPREAD) NDR PDR P50 US P99 US LIMITED BY",
		"vxlan-encap 1000 1 corelane 15.0 15.0 0.50 (0.50 to 0.50, near) 7.50 15.0* 3.25 12.5 router",
		"vxlan-encap 1000 1 testpmd 30.0 30.0 - - 15.0 30.0* 3.25 12.5 router",
		"vxlan-encap 1000 1 ovs - - - - - - - - failed",
		"vxlan-encap on ovs (1000 flows, 1 route, 64 bytes, 1 worker): failed: none of 2000 frames came back",
		"vxlan-encap on corelane (1000 flows, 1 route, 64 bytes, 1 worker): limited by the router: it was busy",
		"Result: a.json", "Report: a.html",
	} {
		found := false
		for _, line := range lines {
			found = found || line == want
		}
		if !found {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

func TestBenchResultFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := results.Save(path, benchResult()); err != nil {
		t.Fatal(err)
	}
	if r := run(fixture(t), "", "bench", "compare", path, path); r.code != 0 || !strings.Contains(r.stdout, "noise") {
		t.Errorf("%+v", r)
	}
	if r := run(fixture(t), "", "bench", "report", path); r.code != 0 || !strings.Contains(r.stdout, "<html") {
		t.Errorf("%d %.200s %s", r.code, r.stdout, r.stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"version": 1`), []byte(`"version": 99`), 1),
		0o644); err != nil {
		t.Fatal(err)
	}
	if r := run(fixture(t), "", "bench", "report", path); r.code != 2 || !strings.Contains(r.stderr, "version: 99") ||
		strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestBenchList(t *testing.T) {
	n := len(scenario.List())
	for _, args := range [][]string{{"bench", "list", "--no-headers"}, {"bench", "list", "-o", "json"}} {
		r := run(fixture(t), "", args...)
		if r.code != 0 || strings.Count(r.stdout, "\n") != n || !strings.Contains(r.stdout, "vxlan-encap") {
			t.Errorf("%v: %d of %d lines: %s", args, strings.Count(r.stdout, "\n"), n, r.stdout)
		}
	}
	for _, args := range [][]string{{"bench", "run", "vxlan-encapsulation"},
		{"bench", "peers", "vxlan-encap", "vxlan-encapsulation"}} {
		r := run(fixture(t), "", args...)
		if r.code != 2 || !strings.HasPrefix(r.stderr, "scenario: 'vxlan-encapsulation' is unknown; similar: "+
			"vxlan-encap,") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// at is a clock that is moved by hand.
type at struct{ time.Time }

func (c *at) now() time.Time { return c.Time }

func TestBenchProgress(t *testing.T) {
	var out bytes.Buffer
	clock := &at{time.Unix(1000, 0)}
	p := newBenchProgress(&out)
	p.now = clock.now
	p.Begin(100 * time.Second)
	p.Step("first", 40*time.Second)
	clock.Time = clock.Add(80 * time.Second) // twice as long as planned
	p.Step("second", 60*time.Second)
	p.Note("a peer is missing")
	p.end()
	want := "[  0 %, 1:40 left] first\n[ 40 %, 2:00 left] second\nnote: a peer is missing\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	clock.Time = clock.Add(30 * time.Second)
	if line := p.line(200); line != "[##############......]  70 %  1:00 left  second" {
		t.Errorf("%q", line)
	}
	for columns := range 60 {
		if n := utf8.RuneCountInString(p.line(columns)); n >= max(columns, 1) {
			t.Errorf("%d columns: a line of %d", columns, n)
		}
	}
	clock.Time = clock.Add(time.Hour) // late: not more than all, not less than nothing
	if line := p.line(200); line != "[####################] 100 %  0:00 left  second" {
		t.Errorf("%q", line)
	}
}
