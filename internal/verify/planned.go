// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
)

const groupPlan = "Plan"

var planRules = []rule{
	{id: "plan.roles", group: groupPlan, title: "Every CPU of the plan has one role",
		check:  checkRoles,
		source: "corelane plan",
		fixes: []string{"{make}   # makes a new " +
			"plan"},
		why: "A plan edited by hand may give a CPU two roles, or give a worker a CPU of the host."},
	{id: "plan.machine", group: groupPlan, title: "The plan matches this machine",
		check:  checkMachine,
		source: "corelane plan",
		fixes: []string{"{make}   # makes a new " +
			"plan"},
		why: "CPUs that were added, removed or renumbered after the plan was made have no role or a wrong one."},
}

func checkRoles(v *view, r *result) {
	if v.p == nil {
		r.pass("no plan was given")
		return
	}
	role := map[int]plan.Role{}
	for _, c := range v.p.CPUs {
		if old, twice := role[c.ID]; twice {
			r.fail("CPU %d is %s and %s", c.ID, old, c.Role)
		}
		role[c.ID] = c.Role
	}
	var taken cpuset.Set
	for _, w := range v.p.Workers {
		if taken.Has(w.CPU) {
			r.fail("CPU %d has two workers", w.CPU)
		}
		if taken = taken.Or(cpuset.Of(w.CPU)); role[w.CPU] != w.Role {
			r.fail("worker %d (%s) has CPU %d, but the role of this CPU is %s", w.ID, w.Role, w.CPU,
				orNone(role[w.CPU]))
		}
	}
	if both := v.p.Of(plan.Housekeeping).And(v.p.Isolated); !both.Empty() && !v.p.Request.AllowOverlap {
		r.fail("CPUs %s belong to the host, but are isolated", both)
	}
	if open := taken.Without(v.p.Isolated); !open.Empty() && !v.p.Request.AllowOverlap {
		r.fail("the plan does not isolate workers' CPUs %s", open)
	}
	if bad := v.p.IRQs.And(taken); !bad.Empty() && !v.p.Request.AllowOverlap {
		r.fail("the plan lets workers' CPUs %s take interrupts", bad)
	}
	r.pass("%d CPUs, %d workers", len(v.p.CPUs), len(v.p.Workers))
}

func checkMachine(v *view, r *result) {
	if v.p == nil {
		r.pass("no plan was given")
		return
	}
	var ids []int
	for _, c := range v.p.CPUs {
		ids = append(ids, c.ID)
	}
	have := cpuset.Of(ids...)
	if gone := have.Without(v.online); !gone.Empty() {
		r.fail("CPUs %s of the plan are offline%s or do not exist", gone,
			ifText(v.m.Container, ", do not belong to this container")).about("plan cpus gone")
	}
	if more := v.online.Without(have); !more.Empty() && !v.m.Container {
		r.warn("CPUs %s are online, but not in the plan", more).about("plan cpus more")
	}
	if err := v.p.Fits(v.m); v.p.Topology != "" && err != nil {
		r.warn("%v", err).about("plan fingerprint")
	} else if v.p.Machine != "" && v.m.Hostname != "" && v.p.Machine != v.m.Hostname {
		r.warn("the plan was made on %s, but this machine is %s", v.p.Machine, v.m.Hostname)
	}
	r.pass("CPUs %s", v.online)
}
