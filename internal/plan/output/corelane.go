// SPDX-License-Identifier: Apache-2.0
package output

import (
	"fmt"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/state"
)

var workerRoles = map[plan.Role]apiv1.WorkerRole{
	plan.Forwarding: apiv1.WorkerRole_WORKER_ROLE_FORWARDING,
	plan.IsolatedRx: apiv1.WorkerRole_WORKER_ROLE_ISOLATED_RX,
	plan.HostPath:   apiv1.WorkerRole_WORKER_ROLE_HOST_PATH,
}

// node writes the list `workers` of a node's file (docs/node-yaml.md). A node's file has the whole state, so this list
// belongs into the existing file.
func node(v *view) ([]File, error) {
	s := &state.State{Workers: []*apiv1.Worker{}}
	for _, w := range v.Workers {
		role, ok := workerRoles[w.Role]
		if !ok {
			return nil, input.Errorf("plan: workers", "forwarding, isolated-rx, host-path",
				"worker %d has the role '%s'", w.ID, w.Role)
		}
		worker := &apiv1.Worker{Id: uint32(w.ID), Cpu: uint32(w.CPU), Role: role, RingSize: uint32(v.RingSize)}
		if w.Role == plan.IsolatedRx && w.Target >= 0 {
			worker.Target = fmt.Sprint(w.Target)
		}
		state.Normalize(worker)
		s.Workers = append(s.Workers, worker)
	}
	s.Sort()
	var b strings.Builder
	b.WriteString(v.note())
	err := state.Write(&b, s)
	return []File{{"", "the list 'workers' of the node's file", b.String(), false}}, err
}

// corelaned writes the daemon's options, which can set forwarding workers only; the node's file sets other workers.
func corelaned(v *view) ([]File, error) {
	var cpus []string
	for _, w := range v.Workers {
		if w.Role == plan.Forwarding {
			cpus = append(cpus, fmt.Sprint(w.CPU))
		}
	}
	options := "--worker-cpus " + strings.Join(cpus, ",") + " --service-cpus " + v.service.String() +
		" --control-cpus " + v.control.String()
	if v.RingSize > 0 {
		options += fmt.Sprintf(" --worker-ring-size %d", v.RingSize)
	}
	if v.RunToCompletion {
		options += " --run-to-completion"
	}
	text := v.note() + "CORELANED_OPTIONS=" + options + "\n"
	return []File{{"/etc/default/corelane", "settings of corelaned.service", text, false}}, nil
}
