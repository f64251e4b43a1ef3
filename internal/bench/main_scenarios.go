// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"time"

	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// many is the number of routes and flows of the scenarios with a full table.
const many = 100000

// Main are the scenarios in which routers are compared: both directions of the overlays, bridged and routed, plain
// routing of both families, plain bridging, a full table, and tracked flows.
func Main() ([]scenario.Scenario, error) {
	var list []scenario.Scenario
	for _, m := range []struct {
		name string
		set  func(*scenario.Scenario)
	}{
		{"vxlan-encap", nil},
		{"vxlan-bridge-encap", nil},
		{"mplsoudp-encap", nil},
		{"vxlan-decap", nil},
		{"routed", nil},
		{"bridged", nil},
		{"bridged", func(s *scenario.Scenario) { s.Stateful = true }},
		{"routed", func(s *scenario.Scenario) { s.IPv6, s.Sizes = true, []int{78} }}, // the shortest that has room
		{"vxlan-encap", func(s *scenario.Scenario) { s.Flows, s.Routes = many, many }},
		{"routed", func(s *scenario.Scenario) { s.Flows, s.Stateful = many, true }},
		{"mplsoudp-encap", func(s *scenario.Scenario) { s.Flows, s.Stateful = many, true }},
	} {
		s, err := scenario.Find(m.name)
		if err != nil {
			return nil, err
		}
		if m.set != nil {
			m.set(&s)
		}
		list = append(list, s)
	}
	return list, nil
}

// Effort is how long a run takes, and how exact it is.
type Effort int

// Efforts.
const (
	Thorough Effort = iota // one router
	Shared                 // many routers in about a quarter of an hour
	Quick                  // only shows that everything works
)

// Set sets the options that an effort stands for.
func (o *Options) Set(e Effort) {
	o.Measure, o.Repetitions = measure.Default(), 5
	m := &o.Measure
	switch e {
	case Shared:
		m.Windows, m.TrialTime, m.Resolution, m.Repeats, m.Budget = 8, 500*time.Millisecond, 0.02, 1, 25
	case Quick:
		o.Repetitions = 2
		m.Windows, m.TrialTime, m.Resolution, m.Repeats, m.BurstLimit = 4, 200*time.Millisecond, 0.05, 1, 1<<16
	}
}
