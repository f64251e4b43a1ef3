// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"errors"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/state"
)

var workerUses = map[apiv1.WorkerRole]Use{
	apiv1.WorkerRole_WORKER_ROLE_FORWARDING:  Forwarding,
	apiv1.WorkerRole_WORKER_ROLE_ISOLATED_RX: IsolatedRx,
	apiv1.WorkerRole_WORKER_ROLE_HOST_PATH:   HostPath,
}

// node reads the workers of a node's file (docs/node-yaml.md) with the loader of `corelane apply`.
func (s *scanner) node(text string) error {
	loaded, err := state.Load(s.file, []byte(text))
	var faults state.Errors
	if errors.As(err, &faults) {
		for _, f := range faults {
			what := f.What
			if f.Field != "" {
				what = f.Field + ": " + what
			}
			s.find(Wrong, f.Line, f.Valid, "'corelane apply' refuses the file", "%s",
				strings.ReplaceAll(what, "\n", " "))
		}
		return nil
	}
	if err != nil {
		return err
	}
	on := map[uint32]uint32{}
	for _, w := range loaded.Workers {
		if other, twice := on[w.Cpu]; twice {
			s.find(Wrong, 0, "one CPU per worker", "two workers on one CPU preempt each other",
				"workers %d and %d are both on CPU %d", other, w.Id, w.Cpu)
		}
		on[w.Cpu] = w.Id
		s.add(Claim{workerUses[w.Role], cpuset.Of(int(w.Cpu)), "workers", s.file, 0})
	}
	return nil
}
