// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
)

const own = "corelane"

// verdict is the result in one sentence, about Corelane or else the first router.
func verdict(r *result.Result, list []*group) string {
	name := own
	subject := of(r, list, own)
	for i := 0; len(subject) == 0 && i < len(r.Runs); i++ {
		name = r.Runs[i].Router
		subject = of(r, list, name)
	}
	if len(subject) == 0 {
		return "Nothing was measured."
	}
	text := fmt.Sprintf("%s%s forwards %s Mpps", strings.ToUpper(name[:1]), name[1:], over(subject, rate, mpps))
	if len(subject) == 1 {
		text += " in " + subject[0].group.Title
	} else {
		text += fmt.Sprintf(" in %d measurements", len(subject))
	}
	if name != result.Ceiling && reached(subject, share) {
		text += fmt.Sprintf(": %s of this machine's ceiling", over(subject, share, ratio))
	}
	return text + beside(r, list, subject) + "."
}

// entrant is a router in one group.
type entrant struct {
	group   *group
	run     *result.Run
	summary result.Summary
}

func of(r *result.Result, list []*group, router string) []entrant {
	var found []entrant
	for _, g := range list {
		for _, run := range g.with(measured) {
			if run.Router == router {
				found = append(found, entrant{g, run, r.Summary(run)})
			}
		}
	}
	return found
}

func rate(e entrant) float64  { return e.summary.Median }
func share(e entrant) float64 { return e.summary.Ratio }

func reached(list []entrant, figure func(entrant) float64) bool {
	for _, e := range list {
		if !(figure(e) > 0) {
			return false
		}
	}
	return true
}

func over(list []entrant, figure func(entrant) float64, text func(float64) string) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, e := range list {
		low, high = math.Min(low, figure(e)), math.Max(high, figure(e))
	}
	return span(low, high, text)
}

// beside compares the subject with the other routers that do real work: its rate as a multiple of theirs.
func beside(r *result.Result, list []*group, subject []entrant) string {
	var parts []string
	seen := map[string]bool{subject[0].run.Router: true, result.Ceiling: true}
	for _, run := range r.Runs {
		if seen[run.Router] {
			continue
		}
		seen[run.Router] = true
		if factor := against(subject, of(r, list, run.Router)); factor != "" {
			parts = append(parts, factor+" times "+run.Router)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}

func against(subject, other []entrant) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range subject {
		for _, o := range other {
			if s.group == o.group && rate(o) > 0 {
				factor := rate(s) / rate(o)
				if share(s) > 0 && share(o) > 0 {
					factor = share(s) / share(o)
				}
				low, high = math.Min(low, factor), math.Max(high, factor)
			}
		}
	}
	if low > high {
		return ""
	}
	return span(low, high, times)
}
