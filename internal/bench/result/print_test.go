// SPDX-License-Identifier: Apache-2.0
package result

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestDigits(t *testing.T) {
	for f, want := range map[float64]string{0: "-", math.NaN(): "-", math.Inf(1): "-", 28.24: "28.2", 0.16549: "0.165",
		2.286: "2.29", 9.996: "10.0", 99.96: "100", 999.6: "1000", 1234: "1230", 0.00012345: "0.000123", 650: "650",
		-2.286: "-2.29"} {
		if got := Digits(f); got != want {
			t.Errorf("Digits(%g) is %s, want %s", f, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "64": {64}, "1518": {1518, 1518}, "2x64+1518": {64, 64, 1518},
		"64+1518+64": {64, 1518, 64}} {
		if got := Sizes(list); got != want {
			t.Errorf("Sizes(%v) is %s, want %s", list, got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	m := with(func(m *machine) { m.far, m.run = 0, 0.05 })
	a := m.measure(1, rates{"corelane": 15e6, "ovs": 5e6, Ceiling: 28e6})
	b := m.measure(2, rates{"corelane": 18e6, "ovs": 5e6, Ceiling: 28e6})
	a.Manifest, b.Manifest = Manifest{Corelane: "1.0", Commit: "abc", Kernel: "6.1"},
		Manifest{Corelane: "1.1", Commit: "def", Kernel: "6.2"}
	b.Manifest.Settings = map[string]string{"windows": "20"}
	b.Complete = false
	for _, r := range []*Result{a, b} {
		for i := range r.Runs {
			r.Runs[i].NDR = &Search{Rate: 9e6}
			r.Runs[i].Latency = []Latency{{Load: "50% NDR", P50: 4, P99: 9}}
		}
	}
	b.Runs[0].NDR = nil
	a.Runs = append(a.Runs, Run{Scenario: "decap", Router: "ovs", Error: "it did not start"})
	b.Runs = append(b.Runs, Run{Scenario: "plain", Router: "vpp"})
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a: corelane 1.0 (abc), 2023-11-14", "b: corelane 1.1 (def), 2023-11-14", "warning: b is incomplete",
		"warning: not the same machine or settings: kernel '6.1' / '6.2'; windows none / '20'\n",
		"SCENARIO  ROUTER    FLOWS  ROUTES  BYTES  WORKERS  A MPPS  B MPPS  A/CEILING  B/CEILING    B/A  95% INTERVAL",
		"without an interval", "p99 at 50% NDR", "9.00  9.00  µs    1.000", "machines drift",
		"not compared: decap on ovs (0 flows, 0 routes,  bytes, 0 workers): not in b", "not compared: plain on vpp",
		"not in a", "3 runs compared: b is faster in 1, slower in 0, the rest (2) is noise.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no '%s' in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "NDR  "); n < 3 {
		t.Errorf("NDR of %d", n)
	}
	if c.Print(fullDisk{}) == nil {
		t.Error("a full disk is no error")
	}
}

// fullDisk is a writer on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestNothingToCompare(t *testing.T) {
	a, b := full(), full()
	b.Runs[0].Flows = 1
	if _, err := Compare(a, b); err == nil || !strings.Contains(err.Error(), "nothing to compare") {
		t.Error(err)
	}
	b = full()
	b.Runs[0].Error = "it did not start"
	if _, err := Compare(a, b); err == nil {
		t.Error("compared with a run that failed")
	}
}
