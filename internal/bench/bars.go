// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
)

type bar struct {
	scenario      string
	flows, routes int
	share         float64
	of            string // the scenario of Corelane that it is a share of; "": of the ceiling in the same one
}

// bars are the shares that Corelane reaches at least, with one worker and frames of 64 bytes, on CPUs that are near to
// each other: 90th percentile of its windows over that of the ceiling's, or over its own in another scenario.
var bars = []bar{
	{"routed", 1000, 1, 0.85, ""},
	{"routed", many, many, 0.65, ""},
	{"vxlan-bridge-encap", 1000, 1, 0.62, ""},
	{"vxlan-encap", 1000, 1, 0.65, ""},
	{"mplsoudp-encap", 1000, 1, 0.65, ""},
	{"mplsogre-encap", 1000, 1, 0.65, ""},
	{"geneve-encap", 1000, 1, 0.65, ""},
	{"vxlan-bridge-decap", 1000, 1, 0.57, ""},
	{"vxlan-decap", 1000, 1, 0.57, ""},
	{"mplsoudp-decap", 1000, 1, 0.57, ""},
	{"routed, stateful", 1000, 1, 0.62, ""},
	{"routed, stateful", many, 1, 0.58, ""},
	{"routed, stateful", 1000000, 1, 0.50, ""},
	{"mplsoudp-encap, stateful", 1000, 1, 0.56, ""},
	{"mplsoudp-encap, stateful", many, 1, 0.52, ""},
	{"mplsoudp-encap, stateful", 1000000, 1, 0.46, ""},
	{"mplsoudp-decap, stateful", many, 1, 0.47, ""},
	{"bridged, stateful", 1000, 1, 0.85, "bridged"},
}

// barOf returns the bar of a run, nil if none is set for it.
func barOf(run *result.Run) *bar {
	if run.Router != "corelane" || run.Workers != 1 || !slices.Equal(run.FrameSizes, []int{64}) {
		return nil
	}
	for i := range bars {
		if b := &bars[i]; b.scenario == run.Scenario && b.flows == run.Flows && b.routes == run.Routes {
			return b
		}
	}
	return nil
}

// Missed returns a sentence for each row of Corelane that is below its bar, and for whatever keeps rows from being
// judged. No sentence: there are rows with a bar, and all reach it.
func Missed(r *result.Result) []string {
	var missed []string
	judged := 0
	for i := range r.Runs {
		run := &r.Runs[i]
		bar := barOf(run)
		if bar == nil {
			continue
		}
		judged++
		whole := quietWhole(r, run, bar)
		switch share := r.Summary(run).Quiet / whole; {
		case run.Error != "" || whole == 0:
			missed = append(missed, fmt.Sprintf("%s was not measured together with %s", run.Key(),
				cmp.Or(bar.of, result.Ceiling)))
		case !(share >= bar.share):
			missed = append(missed, fmt.Sprintf("%s has %.2f of %s, less than %.2f", run.Key(), share,
				cmp.Or(bar.of, "the ceiling"), bar.share))
		}
	}
	if judged == 0 {
		missed = append(missed, "no row has a bar")
	}
	if trips := roundTrips(r.Runs); len(trips) > 0 && stat.Median(trips) > farNs {
		missed = append(missed, fmt.Sprintf("a cache line takes %.0f ns between the CPUs, and shares are comparable "+
			"up to %d ns", stat.Median(trips), farNs))
	}
	return missed
}

// quietWhole is the 90th percentile of the windows that a run is judged by, 0 without any.
func quietWhole(r *result.Result, run *result.Run, b *bar) float64 {
	want := run.Key()
	if b.of == "" {
		want.Router = result.Ceiling
	} else {
		want.Scenario = b.of
	}
	for i := range r.Runs {
		if c := &r.Runs[i]; c.Key() == want && len(c.Windows) > 0 {
			return r.Summary(c).Quiet
		}
	}
	return 0
}

// farNs is the round trip of a cache line from which on the rings between the CPUs limit all routers.
const farNs = 250

// roundTrips lists those of all windows that were probed.
func roundTrips(runs []result.Run) []float64 {
	var list []float64
	for _, r := range runs {
		for _, w := range r.Windows {
			if w.RoundTrip > 0 {
				list = append(list, w.RoundTrip)
			}
		}
	}
	return list
}
