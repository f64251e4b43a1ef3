// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"time"

	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// many is the number of routes and flows of the scenarios with a full table.
const many = 100000

// Main are the scenarios that routers are compared in: both directions of the overlays, plain routing, and a full
// table.
func Main() ([]scenario.Scenario, error) {
	var list []scenario.Scenario
	for _, m := range []struct {
		name          string
		flows, routes int
	}{{"vxlan-encap", 0, 0}, {"mplsoudp-encap", 0, 0}, {"vxlan-decap", 0, 0}, {"routed", 0, 0},
		{"vxlan-encap", many, many}} {
		s, err := scenario.Find(m.name)
		if err != nil {
			return nil, err
		}
		if m.flows > 0 {
			s.Flows, s.Routes = m.flows, m.routes
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
	Shared                 // many routers in about ten minutes
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
