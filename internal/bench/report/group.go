// SPDX-License-Identifier: Apache-2.0
package report

import (
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
)

// group is one scenario with one load, measured on several routers.
type group struct {
	result.Key // without a router
	Title      string
	Runs       []*result.Run
}

// groups returns the groups in order of appearance. What all of them have in common is returned once and not in their
// titles.
func groups(r *result.Result) (list []*group, common string) {
	at := map[result.Key]*group{}
	for i := range r.Runs {
		key := r.Runs[i].Key()
		key.Router = ""
		if at[key] == nil {
			at[key] = &group{Key: key}
			list = append(list, at[key])
		}
		at[key].Runs = append(at[key].Runs, &r.Runs[i])
	}
	var same []string
	for _, part := range []func(result.Key) string{flows, routes, sizes, workers} {
		if len(list) > 0 && alike(list, part) {
			same = append(same, part(list[0].Key))
			continue
		}
		for _, g := range list {
			g.Title += ", " + part(g.Key)
		}
	}
	for _, g := range list {
		g.Title = g.Scenario + g.Title
	}
	return list, strings.Join(same, ", ")
}

func alike(list []*group, part func(result.Key) string) bool {
	for _, g := range list {
		if part(g.Key) != part(list[0].Key) {
			return false
		}
	}
	return true
}

func flows(k result.Key) string   { return plural(k.Flows, "flow") }
func routes(k result.Key) string  { return plural(k.Routes, "route") }
func sizes(k result.Key) string   { return k.Sizes + "-byte frames" }
func workers(k result.Key) string { return plural(k.Workers, "worker") }

// with returns the runs of a group for which has is true.
func (g *group) with(has func(*result.Run) bool) []*result.Run {
	var list []*result.Run
	for _, run := range g.Runs {
		if run.Error == "" && has(run) {
			list = append(list, run)
		}
	}
	return list
}

func measured(run *result.Run) bool { return len(run.Windows) > 0 }

func received(run *result.Run) []float64 {
	rates := make([]float64, len(run.Windows))
	for i, w := range run.Windows {
		rates[i] = w.Received
	}
	return rates
}
