// SPDX-License-Identifier: Apache-2.0
package flowtable

import "slices"

// against names the step that each step builds on.
var against = map[string]string{
	"chained-signatures":   "chained",
	"chained-crc":          "chained-signatures",
	"chained-batch":        "chained-crc",
	"rte_hash":             "chained",
	"corelane-single":      "chained",
	"corelane-no-prefetch": "corelane-single",
	"corelane-plain":       "chained-batch",
	"corelane-sse4.2":      "corelane-plain",
	"corelane-avx2":        "corelane-sse4.2",
	"corelane-avx512":      "corelane-avx2",
}

// Hits are the measured shares of keys that are in the table, in per cent.
var Hits = []int{100, 90, 50, 0}

// Step is a back end with its cycles for each of Hits.
type Step struct {
	Backend, Text string
	Cycles        []float64
	Against       string
	Gain          float64 // how many times as fast as that step when all keys are in the table; 0: unknown
	OfHash        []float64
	Insert        float64 // flows per second, 0: it uses the table of another step
	Remove        float64
}

// Point is a table's size and load, with all steps in their order.
type Point struct {
	Flows, Slots, Load int
	Family             string
	Steps              []Step
}

// Points of a result, in the order in which they were measured.
func (r *Result) Points() []*Point {
	var points []*Point
	for _, f := range r.Figures {
		p := last(points)
		if p == nil || p.Slots != f.Slots || p.Load != f.Load || p.Family != f.Family {
			p = &Point{Flows: f.Flows, Slots: f.Slots, Load: f.Load, Family: f.Family}
			points = append(points, p)
		}
		p.add(f)
	}
	for _, p := range points {
		p.compare()
	}
	return points
}

func last(list []*Point) *Point {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// Step returns the step of a back end, or nil.
func (p *Point) Step(backend string) *Step {
	for i := range p.Steps {
		if p.Steps[i].Backend == backend {
			return &p.Steps[i]
		}
	}
	return nil
}

func (p *Point) add(f Figure) {
	s := p.Step(f.Backend)
	if s == nil {
		p.Steps = append(p.Steps, Step{Backend: f.Backend, Text: f.Text, Cycles: make([]float64, len(Hits)),
			Against: against[f.Backend]})
		s = &p.Steps[len(p.Steps)-1]
	}
	switch f.What {
	case "insert":
		s.Insert = f.PerSecond
	case "remove":
		s.Remove = f.PerSecond
	case "lookup":
		for i, hit := range Hits {
			if hit == f.Hit {
				s.Cycles[i] = f.Cycles
			}
		}
	}
}

func (p *Point) compare() {
	order := map[string]int{}
	for i, name := range Order {
		order[name] = i
	}
	sortSteps(p.Steps, order)
	hash := p.Step("rte_hash")
	for i := range p.Steps {
		s := &p.Steps[i]
		if other := p.Step(s.Against); other != nil && s.Cycles[0] > 0 {
			s.Gain = other.Cycles[0] / s.Cycles[0]
		}
		for k := range Hits {
			if hash != nil && s.Cycles[k] > 0 {
				s.OfHash = append(s.OfHash, hash.Cycles[k]/s.Cycles[k])
			}
		}
	}
}

// Order lists the steps, from the table that routers usually have to the fastest one.
var Order = []string{"chained", "chained-signatures", "chained-crc", "chained-batch", "rte_hash", "corelane-single",
	"corelane-no-prefetch", "corelane-plain", "corelane-sse4.2", "corelane-avx2", "corelane-avx512"}

func sortSteps(steps []Step, order map[string]int) {
	slices.SortStableFunc(steps, func(a, b Step) int { return order[a.Backend] - order[b.Backend] })
}
