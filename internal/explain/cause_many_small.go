// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

var manySmall = row{
	kind: ManySmall, colour: "many",
	means:    "many causes took the worker's CPU, each for too little time to matter by itself",
	known:    "the sum of the minor causes, by name",
	together: sumOfSmall,
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("%d short causes together took %.1f %% of %s's time", c.Times, 100*c.Share, s.w.label())
		if len(c.groups) > 0 {
			c.Name = c.groups[0].name
			c.Title += ", most of it " + c.groups[0].name
		}
		for _, g := range c.groups[:min(len(c.groups), shownGroups)] {
			c.fact(c.Grade, "%d x %s: %s together", g.n, g.name, duration(g.ns))
		}
	},
	remedy: func(s *scene, c *Cause) {
		for _, g := range c.groups {
			if free := s.e.Host.Housekeeping; g.parent != "" && free != "" {
				c.FixNote = fmt.Sprintf("make %s start them on other CPUs: taskset -c %s COMMAND", g.parent,
					free)
				return
			}
		}
	},
	noRemedy: "find out what starts them (perf trace -e sched:sched_process_exec), and start it on other CPUs; " +
		"corelane cores apply keeps a host's other threads off the workers' CPUs",
}

const shownGroups = 6

// group sums up the minor causes of one kind and name.
type group struct {
	name, parent string
	ns           int64
	n            int
}

// sumOfSmall returns what a worker lost to all minor causes together, and whether that matters. The time that the
// worker gives away itself is not included.
func sumOfSmall(e *Evidence, w *Worker, causes []*Cause) (Cause, bool) {
	sum := Cause{Kind: ManySmall, Worker: w.ID, CPU: w.CPU}
	groups := map[string]*group{}
	parentOf := func(tid int) string { // "" of the kernel's threads, which nobody can start elsewhere
		if t := e.Host.Threads[tid]; !t.Kernel {
			return t.Parent
		}
		return ""
	}
	for _, c := range causes {
		if !c.Minor || rowOf(c.Kind).voluntary {
			continue
		}
		name := fmt.Sprintf("%s %s", c.Kind, c.Name)
		g := groups[name]
		if g == nil {
			g = &group{name: name, parent: parentOf(c.TID)}
			groups[name] = g
		}
		g.ns, g.n = g.ns+c.LostNS, g.n+1
		g.parent = cmp.Or(g.parent, parentOf(c.TID))
		sum.Share, sum.PPS, sum.LostNS, sum.Longest = sum.Share+c.Share, sum.PPS+c.PPS, sum.LostNS+c.LostNS,
			max(sum.Longest, c.Longest)
		sum.Times++
		sum.Grade = c.Grade
	}
	for _, g := range groups {
		sum.groups = append(sum.groups, *g)
	}
	slices.SortFunc(sum.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.name, b.name))
	})
	return sum, sum.Share > minorShare
}
