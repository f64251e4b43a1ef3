// SPDX-License-Identifier: Apache-2.0
package report

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/bench/result"
)

func TestReport(t *testing.T) {
	page := render(t, load(t))
	found := elements(t, page)
	selfContained(t, found)
	described(t, found)
	sections := []string{"summary", "throughput", "scale", "loss", "latency", "nodes", "limits", "machine", "notes"}
	if len(found["section"]) != len(sections) {
		t.Fatalf("%d sections", len(found["section"]))
	}
	for i, id := range sections {
		if attribute(found["section"][i], "id") != id {
			t.Errorf("section %d is %s, want %s", i, attribute(found["section"][i], "id"), id)
		}
	}
	if n := len(found["figure"]); n != 6+2+2+2+1 {
		t.Errorf("%d figures", n)
	}
	for _, want := range []string{
		`<title>Corelane benchmark: Corelane forwards`, "times ovs", "AMD EPYC 9R14", "took 11 min 42 s",
		"64-byte frames, 1 worker",
		`<th scope="row">ovs</th><td class="note" colspan="7">MPLS over UDP: this router has no such encapsulation</td>`,
		"vxlan-encap, 100,000 flows, 100,000 routes", `<td class="right">≥ 1,048,576</td>`, "1,024 of 2 MB",
		"isolcpus=managed_irq,domain,1",
		"vpp left out: vpp is not installed", "dropped by the router: rx_dropped 48,211,233",
		"the generator could not send 12 frames in time",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no '%s'", want)
		}
	}
	if strings.Contains(page, `class="banner"`) {
		t.Error("a complete result has a banner")
	}
}

// The table has the figures of the result, and the drawing has them at the right places.
func TestFiguresAreRight(t *testing.T) {
	run := func(router string, rates ...float64) result.Run {
		r := result.Run{Scenario: "x", Router: router, Flows: 1, Routes: 1, FrameSizes: []int{64}, Workers: 1}
		for i, rate := range rates {
			r.Windows = append(r.Windows, result.Window{Repetition: i, Seconds: 1, Received: rate})
		}
		return r
	}
	r := &result.Result{Version: 1, Complete: true, Runs: []result.Run{run(result.Ceiling, 20e6, 20e6, 20e6),
		run(own, 10e6, 8e6, 9e6)}}
	r.Runs[1].Latency = []result.Latency{{Load: "50% NDR", Rate: 4e6, P50: 10, P90: 20, P99: 50, P999: 80, Max: 100}}
	r.Runs[1].Nodes = []result.Node{{Name: "port_rx", CyclesPerPacket: 25, PacketsPerCall: 32},
		{Name: "port_tx", CyclesPerPacket: 75, PacketsPerCall: 32}}
	page := render(t, r)
	for _, want := range []string{
		"Corelane forwards 9.00 Mpps in x: 0.45 of this machine&#39;s ceiling.</h1>",
		`<tr><th scope="row">corelane</th><td class="right">9.00</td><td class="right">8.20</td><td class="right">9.80</td><td class="right">3</td>` +
			"<td class=\"right\">0.45</td><td class=\"right\">0.40\u00a0to\u00a00.50</td></tr>",
		`<rect class="bar r0" x="0%" y="68" width="45%" height="20"><title>corelane: median 9.00 Mpps`, // of 20
		`<line class="ceiling" x1="100%" y1="0" x2="100%"`,
		`<line class="range" x1="41%" y1="78" x2="49%" y2="78"/>`,
		`<line class="curve r0" x1="0%" y1="26" x2="100%" y2="26"/>`, // 10 to 100 us, logarithmic
		`<rect class="segment n0" x="0%" y="18" width="25%"`,
		`<rect class="segment n1" x="25%" y="18" width="75%"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no '%s'", want)
		}
	}
}

func TestPartialResults(t *testing.T) {
	whole := load(t)
	for name, r := range map[string]*result.Result{
		"nothing":      {},
		"only a start": {Started: time.Now(), Runs: []result.Run{{Scenario: "x", Router: own, FrameSizes: []int{64}}}},
		"only an error": {Runs: []result.Run{{Scenario: "x", Router: own, FrameSizes: []int{64},
			Error: "it did not start"}}},
		"odd figures": {Runs: []result.Run{{Scenario: "x", Router: own, FrameSizes: []int{64}, Flows: 1,
			Windows: []result.Window{{}}, NDR: &result.Search{}, PDR: &result.Search{Trials: []result.Trial{{}},
				Limited: "the generator"}, Latency: []result.Latency{{Load: "saturation"}}, Burst: &result.Burst{},
			Nodes: []result.Node{{}, {Name: "a", CyclesPerPacket: math.SmallestNonzeroFloat64}}}}},
		"interrupted": {Version: 1, Started: whole.Started, Runs: whole.Runs[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			page := render(t, r)
			found := elements(t, page)
			selfContained(t, found)
			described(t, found)
			if !strings.Contains(page, `<p class="banner" role="alert"><strong>Incomplete.</strong>`) {
				t.Error("no banner")
			}
			if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
				t.Error("a figure that is not a number")
			}
		})
	}
}

func TestHostileNames(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)> ' & </svg></style>{{.}}`
	r := load(t)
	run := &r.Runs[1]
	run.Scenario, run.Router, run.RouterVersion, run.Bottleneck.Why = evil, evil, evil, evil
	run.Nodes[0].Name, run.Latency[0].Load, run.NDR.Trials[0].Why, run.NDR.Limited, run.Drops = evil, evil, evil, evil,
		[]result.DropCounter{{Reason: evil}}
	r.Runs[2].Error = evil
	m := &r.Manifest
	m.CPU, m.Host, m.KernelArgs, m.Corelane, m.Settings = evil, evil, evil, evil, map[string]string{evil: evil}
	r.Command, r.Notes = evil, []string{evil}
	page := render(t, r)
	found := elements(t, page)
	selfContained(t, found)
	if n := strings.Count(page, "&lt;script&gt;"); n < 20 {
		t.Errorf("the names are there %d times", n)
	}
}

func TestVerdicts(t *testing.T) {
	run := func(scenario, router string, rate float64) result.Run {
		r := result.Run{Scenario: scenario, Router: router, Flows: 1, Routes: 1, FrameSizes: []int{64}, Workers: 1}
		if rate == 0 {
			r.Error = "no"
			return r
		}
		r.Windows = []result.Window{{Seconds: 1, Received: rate}}
		return r
	}
	for want, runs := range map[string][]result.Run{
		"Nothing was measured.":             {run("a", own, 0)},
		"Corelane forwards 15.0 Mpps in a.": {run("a", own, 15e6)},
		"Ovs forwards 5.00 Mpps in a.":      {run("a", own, 0), run("a", "ovs", 5e6)},
		"Testpmd forwards 28.0 Mpps in a.":  {run("a", result.Ceiling, 28e6)},
		"Corelane forwards 15.0 Mpps in a, 3.0 times ovs.": {run("a", "ovs", 5e6), run("a", own, 15e6),
			run("b", "ovs", 9e6)},
		"Corelane forwards 14.0 Mpps in a: 0.50 of this machine's ceiling, 2.0 times ovs.": {run("a", result.Ceiling,
			28e6), run("a", "ovs", 7e6),
			run("a", own, 14e6)},
		"Corelane forwards 7.00 to 14.0 Mpps in 2 measurements: 0.25 to 0.50 of this machine's ceiling.": {run("a",
			result.Ceiling, 28e6),
			run("a", own, 14e6), run("b", own, 7e6), run("b", result.Ceiling, 28e6)},
		"Corelane forwards 7.00 to 14.0 Mpps in 2 measurements.": {run("a", result.Ceiling, 28e6), run("a", own, 14e6),
			run("b", own, 7e6)},
	} {
		r := &result.Result{Runs: runs}
		list, _ := groups(r)
		if got := strings.ReplaceAll(verdict(r, list), "\u00a0", " "); got != want {
			t.Errorf("'%s', want '%s'", got, want)
		}
	}
}

// A trial without loss that did not pass is void: the generator was late.
func TestOutcomes(t *testing.T) {
	s := named{"PDR", &result.Search{LossRatio: 1e-4}}
	for want, trial := range map[outcome]result.Trial{
		passed: {Passed: true, Sent: 1e6, Lost: 90, Repeated: true},
		failed: {Sent: 1e6, Lost: 101},
		again:  {Sent: 1e6, Lost: 101, Repeated: true},
		void:   {Sent: 1e6, Lost: 100},
	} {
		if got := s.outcome(trial); got != want {
			t.Errorf("%+v: %s, want %s", trial, got.text, want.text)
		}
	}
}

func TestColumnsWithoutFiguresGo(t *testing.T) {
	in := table{Heads: left("a", "b", "c", "d"), Rows: []tableRow{{Cells: []string{"group"}, Group: true},
		{Cells: []string{none, none, "1", none}},
		{Cells: []string{"x"}, Note: "why"}, {Cells: []string{"y", none, none, none}}}}
	out := in.filled()
	if len(out.Heads) != 2 || out.Heads[1].Text != "c" || strings.Join(out.Rows[1].Cells, " ") != none+" 1" ||
		out.Rest(out.Rows[2]) != 1 || len(in.Heads) != 4 {
		t.Errorf("%+v", out)
	}
}

func TestNodesStandInOrder(t *testing.T) {
	run := func(names ...string) stack {
		r := &result.Run{}
		for _, n := range names {
			r.Nodes = append(r.Nodes, result.Node{Name: n})
		}
		return stack{nil, r}
	}
	got := strings.Join(namesOf([]stack{run("rx", "encap", "tx"), run("rx", "decap", "lookup", "tx"),
		run("lookup", "tx", "last")}), " ")
	if got != "rx decap lookup encap tx last" {
		t.Error(got)
	}
}

// full is a writer on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestWriteFails(t *testing.T) {
	if err := Write(full{}, load(t)); err == nil {
		t.Error("a full disk is no error")
	}
}
