// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"testing"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/output"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// In a container only its own threads change, however much of the host it could write, and nothing is written for the
// host's next boot.
func TestContainerChangesOnlyItsThreads(t *testing.T) {
	for _, name := range []string{"container", "container-host"} {
		m := topologytest.Machine(t, name)
		p, err := plan.Make(m, plan.Request{Forwarding: 1})
		if err != nil {
			t.Fatal(err)
		}
		own, threads := plan.Plan{CPUs: p.CPUs}, 0
		for _, c := range Changes(m, p, Options{Cgroups: true, StopIrqbalance: true}) {
			switch c.Kind {
			case Affinity, Worker:
				threads++
				if !set(c.New).Within(own.Of(plan.Roles...)) {
					t.Errorf("%s: %s: CPUs %s", name, c.What(), c.New)
				}
			case Note:
			default:
				t.Errorf("%s: %s is changed", name, c.What())
			}
		}
		if threads == 0 {
			t.Errorf("%s: no thread moves", name)
		}
		files, missing := Lasting(m, p)
		if len(files) != 1 || files[0].Path != "/etc/default/corelane" || missing != nil {
			t.Errorf("%s: %v, %v", name, files, missing)
		}
		if args, err := MissingArguments(m, p); args != nil || err != nil {
			t.Errorf("%s: %v, %v", name, args, err)
		}
		for _, f := range output.Formats() {
			_, err := output.Write(f.Name, p, output.Options{Machine: m, VCPUs: 1})
			switch f.Name {
			case "corelaned", "node", "container", "dpvs":
				if err != nil {
					t.Errorf("%s: %s: %v", name, f.Name, err)
				}
			case "libvirt": // the plan has no guests
			default:
				if !input.Is(err) {
					t.Errorf("%s: %s is exported for the whole host", name, f.Name)
				}
			}
		}
	}
}
