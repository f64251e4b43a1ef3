// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Check refuses a plan that was made for another machine or that breaks a rule. The error contains name, the plan's.
func Check(name string, m *topology.Machine, p *plan.Plan) error {
	if err := p.Fits(m); err != nil {
		return err
	}
	if err := Inside(name, m, p); err != nil {
		return err
	}
	if found := plan.Validate(m, p); len(found) > 0 {
		return input.Errorf(name+": "+found[0].Rule, found[0].Valid, "%s", found[0].Text)
	}
	return nil
}

// Inside refuses the plan of a container on its host. The error contains name, the plan's.
func Inside(name string, m *topology.Machine, p *plan.Plan) error {
	if !p.Container || m.Container {
		return nil
	}
	return input.Errorf(name, "a plan that was made on this host",
		"it was made in a container: it knows neither the host's other CPUs nor its programs")
}
