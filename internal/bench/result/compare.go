// SPDX-License-Identifier: Apache-2.0
package result

import (
	"errors"
	"fmt"
	"math"
)

// Verdicts of a Line.
const (
	Faster = "faster"
	Slower = "slower"
	Noise  = "noise" // no difference beyond chance in these two results
)

// Comparison of result b with result a.
type Comparison struct {
	A        string   `json:"a"` // what was measured: version, commit and time
	B        string   `json:"b"`
	Warnings []string `json:"warnings,omitempty"` // other possible reasons for a difference than the router
	Lines    []Line   `json:"lines"`
	Missing  []string `json:"missing,omitempty"` // runs that only one of the results has, or that failed in one
}

// Line compares one run that both results hold. Ratios are b / a.
type Line struct {
	Key
	A float64 `json:"a"` // frames per second received at saturation, median of the compared windows
	B float64 `json:"b"`
	// A as share of the ceiling of the same result; 0: not measured in both
	CeilA      float64  `json:"a_of_ceiling,omitempty"`
	CeilB      float64  `json:"b_of_ceiling,omitempty"`
	Ratio      float64  `json:"ratio"`         // b / a: of the shares of the ceiling, else of the rates
	Low        float64  `json:"low,omitempty"` // 95 % confidence interval of Ratio; 0: unknown
	High       float64  `json:"high,omitempty"`
	Resolution float64  `json:"resolution,omitempty"` // smallest difference of Ratio from 1 that counts
	Windows    string   `json:"windows"`              // which windows were compared: "near", "all", "not probed"
	Verdict    string   `json:"verdict"`
	Why        string   `json:"why,omitempty"`     // reason of the verdict, where the figures do not show it
	Singles    []Single `json:"singles,omitempty"` // single figures, without an interval
}

// Single is a figure that was measured once in a run.
type Single struct {
	Name string  `json:"name"` // "NDR", "PDR", "p99 at 50% NDR"
	Unit string  `json:"unit"` // Mpps, µs
	A    float64 `json:"a"`
	B    float64 `json:"b"`
}

// Ratio b / a.
func (s Single) Ratio() float64 { return s.B / s.A }

// Compare compares the runs that both results have. Different machines or settings give warnings.
func Compare(a, b *Result) (*Comparison, error) {
	c := &Comparison{A: a.label(), B: b.label(), Warnings: warnings(a, b)}
	best := math.Min(bestRoundTrip(a), bestRoundTrip(b))
	for i := range a.Runs {
		ra, rb := &a.Runs[i], b.find(a.Runs[i].Key())
		if why := incomparable(ra, rb); why != "" {
			c.Missing = append(c.Missing, fmt.Sprintf("%s: %s", ra.Key(), why))
			continue
		}
		c.Lines = append(c.Lines, compareRuns(pair{ra, a.ceiling(ra)}, pair{rb, b.ceiling(rb)}, best))
	}
	for i := range b.Runs {
		if key := b.Runs[i].Key(); a.find(key) == nil {
			c.Missing = append(c.Missing, fmt.Sprintf("%s: not in a", key))
		}
	}
	if len(c.Lines) == 0 {
		return nil, errors.New("nothing to compare: no run with the same scenario, router, flows, routes, frame " +
			"sizes and workers was measured in both")
	}
	return c, nil
}

func incomparable(a, b *Run) string {
	switch {
	case b == nil:
		return "not in b"
	case a.Error != "":
		return "failed in a: " + a.Error
	case b.Error != "":
		return "failed in b: " + b.Error
	case len(a.Windows) == 0:
		return "no saturated windows in a"
	case len(b.Windows) == 0:
		return "no saturated windows in b"
	}
	return ""
}

func (r *Result) find(k Key) *Run {
	for i := range r.Runs {
		if r.Runs[i].Key() == k {
			return &r.Runs[i]
		}
	}
	return nil
}

// ceiling returns the run of the ceiling that was interleaved with a run; nil for the ceiling itself.
func (r *Result) ceiling(of *Run) *Run {
	k := of.Key()
	if k.Router == Ceiling {
		return nil
	}
	k.Router = Ceiling
	if c := r.find(k); c != nil && len(c.Windows) > 0 {
		return c
	}
	return nil
}

func (r *Result) label() string {
	text := "corelane " + r.Manifest.Corelane
	if r.Manifest.Commit != "" {
		text += " (" + r.Manifest.Commit + ")"
	}
	return text + ", " + r.Started.Format("2006-01-02 15:04")
}

func singles(a, b *Run) []Single {
	var list []Single
	add := func(name, unit string, x, y float64) {
		if x > 0 && y > 0 {
			list = append(list, Single{name, unit, x, y})
		}
	}
	rate := func(s *Search) float64 {
		if s == nil {
			return 0
		}
		return s.Rate / 1e6
	}
	add("NDR", "Mpps", rate(a.NDR), rate(b.NDR))
	add("PDR", "Mpps", rate(a.PDR), rate(b.PDR))
	for _, x := range a.Latency {
		for _, y := range b.Latency {
			if x.Load == y.Load {
				add("p50 at "+x.Load, "µs", x.P50, y.P50)
				add("p99 at "+x.Load, "µs", x.P99, y.P99)
			}
		}
	}
	return list
}
