// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"slices"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Check refuses a plan that was made for another machine, or that somebody has made wrong by hand. name is the plan's, for
// the error.
func Check(name string, m *topology.Machine, p *plan.Plan) error {
	const again = "a plan made on this machine"
	if p.Version != 1 {
		return input.Errorf(name+": version", "1", "is %d", p.Version)
	}
	if here := plan.Layout(m); !slices.Equal(here, p.Layout) {
		for i := range max(len(here), len(p.Layout)) {
			if there, own := at(p.Layout, i), at(here, i); there != own {
				return input.Errorf(name, again, "is for another machine (%s): it has '%s', this one '%s'", p.Machine, there, own)
			}
		}
	}
	if found := plan.Validate(m, p); len(found) > 0 {
		return input.Errorf(name+": "+found[0].Rule, found[0].Mend, "%s", found[0].Text)
	}
	return nil
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}
