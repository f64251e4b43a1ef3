// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Carry applies a plan: the changes that Changes finds for m, then those for threads that were started meanwhile.
// more holds additional changes, such as those of Place.
func (s *Site) Carry(ctx context.Context, m *topology.Machine, p *plan.Plan, o Options, more []Change) error {
	changes := Changes(m, p, o)
	if err := s.Apply(ctx, append(changes, more...)); err != nil || s.Root != "/" {
		return err
	}
	m, err := topology.Read(s.Root)
	if err != nil {
		return err
	}
	return s.Apply(ctx, late(changes, Changes(m, p, o)))
}

// late returns the changes of threads and processes that the first list does not contain.
func late(first, now []Change) []Change {
	type id struct {
		kind Kind
		pid  int
		tid  int
	}
	seen := map[id]bool{}
	for _, c := range first {
		seen[id{c.Kind, c.PID, c.TID}] = true
	}
	var list []Change
	for _, c := range now {
		if (c.Kind == Affinity || c.Kind == Join && c.TID == 0) && !seen[id{c.Kind, c.PID, c.TID}] {
			c.Needs = ""
			list = append(list, c)
		}
	}
	return list
}
