// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// Problem is a rule that a plan breaks.
type Problem struct {
	Rule  string     `json:"rule"`  // short and stable: "siblings", "first-core"
	CPUs  cpuset.Set `json:"cpus"`  // the CPUs concerned
	Text  string     `json:"text"`  // one sentence
	Valid string     `json:"valid"` // what the rule permits
}

func (p Problem) String() string { return p.Rule + ": " + p.Text + "; valid: " + p.Valid }

// Validate checks a plan, which may have been edited, against all rules that Make keeps. What the request of the plan
// permits (share_cores, allow_overlap, fixed sets) is not a problem.
func Validate(m *topology.Machine, p *Plan) []Problem {
	c := &checker{view: newView(m), p: p, role: map[int]Role{}}
	c.cpus()
	if len(c.found) > 0 {
		return c.found // the other rules need the roles of all CPUs
	}
	c.checkWorkers()
	c.checkTargets()
	c.checkFirstCore()
	c.checkSiblings()
	c.checkHost()
	c.checkSets()
	return c.found
}

type checker struct {
	*view
	p     *Plan
	role  map[int]Role
	found []Problem
}

func (c *checker) add(rule string, cpus cpuset.Set, valid, format string, args ...any) {
	c.found = append(c.found, Problem{rule, cpus, fmt.Sprintf(format, args...), valid})
}

// Roles in the order in which they are shown.
var Roles = []Role{Forwarding, IsolatedRx, HostPath, Service, Guests, Emulator, Housekeeping, Idle}

// cpus checks that the plan has each CPU once, with a role.
func (c *checker) cpus() {
	for _, x := range c.p.CPUs {
		one := cpuset.Of(x.ID)
		own, known := c.cpu[x.ID]
		switch {
		case c.role[x.ID] != "":
			c.add("cpu-twice", one, "one role for each CPU", "CPU %d is %s and %s", x.ID, c.role[x.ID], x.Role)
		case !known:
			c.add("cpu-unknown", one, c.usable.String(), "this machine has no CPU %d", x.ID)
		case !own.Online:
			c.add("cpu-offline", one, "bring it online, or make a new plan", "CPU %d is offline", x.ID)
		case !c.usable.Has(x.ID):
			c.add("cpu-not-ours", one, c.usable.String(), "this container may not use CPU %d", x.ID)
		case !slices.Contains(Roles, x.Role):
			c.add("role", one, fmt.Sprint(Roles), "CPU %d has the unknown role '%s'", x.ID, x.Role)
		}
		c.role[x.ID] = x.Role
	}
	for _, id := range c.usable.IDs() {
		if _, has := c.role[id]; !has {
			c.add("cpu-missing", cpuset.Of(id), "a role for each online CPU", "CPU %d has no role", id)
		}
	}
}

// checkWorkers checks that CPUs and workers match.
func (c *checker) checkWorkers() {
	on := map[int]int{}
	for i, w := range c.p.Workers {
		one := cpuset.Of(w.CPU)
		if w.ID != i {
			c.add("worker-id", one, fmt.Sprint(i), "worker %d is at position %d of the list", w.ID, i)
		}
		if !w.Role.worker() {
			c.add("worker-role", one, "forwarding, isolated-rx, host-path", "worker %d has role '%s'", w.ID, w.Role)
		}
		if role, has := c.role[w.CPU]; !has || role != w.Role {
			c.add("worker-cpu", one, fmt.Sprintf("a CPU of role %s", w.Role),
				"worker %d (%s) is on CPU %d, but the role of this CPU is '%s'", w.ID, w.Role, w.CPU, role)
		}
		if other, twice := on[w.CPU]; twice {
			c.add("worker-twice", one, "one worker on a CPU", "workers %d and %d are both on CPU %d", other, w.ID,
				w.CPU)
		}
		if own, known := c.cpu[w.CPU]; known && own.Node != w.Node {
			c.add("worker-node", one, fmt.Sprint(own.Node), "worker %d is listed on node %d, but its CPU is on node "+
				"%d", w.ID, w.Node, own.Node)
		}
		on[w.CPU] = w.ID
	}
	for _, id := range c.usable.IDs() {
		if _, has := on[id]; c.role[id].worker() && !has {
			c.add("worker-missing", cpuset.Of(id), "a worker on it, or another role",
				"CPU %d is %s, but has no worker", id, c.role[id])
		}
	}
}

// checkTargets checks that receiving workers serve one forwarding worker each.
func (c *checker) checkTargets() {
	served := map[int]int{}
	for _, w := range c.p.Workers {
		one := cpuset.Of(w.CPU)
		if w.Role != IsolatedRx {
			if w.Target != -1 {
				c.add("target", one, "-1", "worker %d (%s) receives for worker %d, but only isolated-rx workers "+
					"receive for another", w.ID, w.Role, w.Target)
			}
			continue
		}
		if w.Target < 0 || w.Target >= len(c.p.Workers) || c.p.Workers[w.Target].Role != Forwarding {
			c.add("target", one, "the id of a forwarding worker",
				"worker %d receives for worker %d, which is not a forwarding worker", w.ID, w.Target)
			continue
		}
		if other, twice := served[w.Target]; twice {
			c.add("target", one, "one isolated-rx worker per forwarding worker",
				"workers %d and %d both receive for worker %d", other, w.ID, w.Target)
		}
		served[w.Target] = w.ID
	}
	if n := len(c.p.Of(Forwarding).IDs()); len(served) > 0 && len(served) < n {
		c.add("target", c.p.Of(IsolatedRx), "none, or one for each",
			"only %d of %d forwarding workers have an isolated-rx worker", len(served), n)
	}
}

func (c *checker) checkFirstCore() {
	first := c.first()
	if first == nil || c.p.Request.AllowOverlap {
		return
	}
	for _, id := range first.cpus.IDs() {
		if r := c.role[id]; r != Housekeeping && r != Idle {
			c.add("first-core", cpuset.Of(id), "housekeeping, or the option allow_overlap",
				"CPU %d (%s) is on the machine's first core, which has kernel work "+
					"that cannot move", id, r)
		}
	}
}

// checkSiblings checks that a worker's siblings are idle, except for its partner and what share_cores permits.
func (c *checker) checkSiblings() {
	if c.p.Request.AllowOverlap {
		return
	}
	pairs := map[[2]int]bool{}
	for _, w := range c.p.Workers {
		if w.Role == IsolatedRx && w.Target >= 0 && w.Target < len(c.p.Workers) {
			pairs[[2]int{w.CPU, c.p.Workers[w.Target].CPU}] = true
			pairs[[2]int{c.p.Workers[w.Target].CPU, w.CPU}] = true
		}
	}
	for _, core := range c.cores {
		ids := core.cpus.IDs()
		for i, a := range ids {
			for _, b := range ids[i+1:] {
				if !mayShare(c.role[a], c.role[b], c.p.Request.ShareCores) ||
					c.unpaired(a, b) && !pairs[[2]int{a, b}] {
					c.add("siblings", cpuset.Of(a, b), "beside a worker: idle, its isolated-rx worker, or with the "+
						"option share_cores another worker",
						"CPU %d (%s) and CPU %d (%s) are siblings of one core: each slows the other down", a,
						c.role[a], b, c.role[b])
				}
			}
		}
	}
}

// unpaired reports whether a receiving and a forwarding worker are not partners, so that they may not share a core.
func (c *checker) unpaired(a, b int) bool {
	return !c.p.Request.ShareCores && c.role[a].worker() && c.role[b].worker()
}

// checkHost checks that the host has enough CPUs.
func (c *checker) checkHost() {
	host := c.p.Of(Housekeeping)
	if c.p.Request.AllowOverlap {
		return
	}
	if host.Empty() {
		c.add("housekeeping", host, "at least the first core, or the option allow_overlap",
			"no CPU is left for the host")
		return
	}
	for _, node := range c.nodes {
		all := cpuset.Set{}
		for _, core := range c.of(node) {
			all = all.Or(core.cpus)
		}
		if c.p.Request.HousekeepingCPUs.Empty() && !host.Overlaps(all) && c.planned(all) {
			c.add("housekeeping", all, "one core of each node, or the option housekeeping_cpus",
				"node %d has no CPU for its kernel threads and interrupts", node)
		}
	}
}

// planned reports whether the planner chose CPUs of a node: not all were chosen by hand.
func (c *checker) planned(node cpuset.Set) bool {
	w := c.p.Request
	fixed := cpuset.Set{}
	for _, x := range w.all() {
		fixed = fixed.Or(*x.fixed)
	}
	for _, core := range c.cores {
		if core.cpus.Within(node) && !core.cpus.Overlaps(fixed) {
			return true
		}
	}
	return false
}

// checkSets checks the sets that are derived from the roles.
func (c *checker) checkSets() {
	p := c.p
	if want := isolatedOf(p); !p.Isolated.Equal(want) {
		c.add("isolated", p.Isolated.Without(want).Or(want.Without(p.Isolated)),
			"'"+want.String()+"', according to the roles", "isolated is '%s'", p.Isolated)
	}
	host := p.Of(Housekeeping)
	switch {
	case p.IRQs.Empty():
		c.add("irqs", host, host.String()+", or some of them", "no CPU takes interrupts")
	case !p.IRQs.Within(host) && !host.Empty():
		c.add("irqs", p.IRQs.Without(host), host.String()+", or some of them",
			"CPU %s is to take interrupts, but is not for housekeeping", p.IRQs.Without(host))
	case !p.IRQs.Within(c.usable):
		c.add("irqs", p.IRQs.Without(c.usable), c.usable.String(), "CPU %s is to take interrupts, but does not exist",
			p.IRQs.Without(c.usable))
	}
}
