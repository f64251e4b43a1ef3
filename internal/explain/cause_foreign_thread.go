// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"strings"
)

var foreignThread = row{
	kind: ForeignThread, colour: "thread",
	means: "another thread ran on the worker's CPU",
	known: "every switch on that CPU, with the thread that came",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		ok := ev.tookCPU() && ev.id != 0 && !isSoftirqThread(ev.name) && !e.isOwn(ev.id, ev.pid)
		return culprit{name: cmp.Or(ev.name, e.nameOf(ev.id)), pid: ev.pid, tid: ev.id}, ok
	},
	describe: describeThread,
	remedy:   remedyThread,
	noRemedy: "every CPU has a worker: give this thread another CPU, or the worker",
}

func describeThread(s *scene, c *Cause) {
	c.Title = fmt.Sprintf("%s (%d) ran on CPU %d while %s wanted it", c.Name, c.TID, s.w.CPU, s.w.label())
	t, ok := s.e.Host.Threads[c.TID]
	if !ok {
		c.Why = "it has ended meanwhile: what it was allowed is no longer known"
		return
	}
	c.Why = whyThere(s.w, t.Allowed.String(), t.Cgroup, t.Owner)
	if t.Command != "" {
		c.fact(Counted, "command: %s", short(t.Command, 120))
	}
	if t.Parent != "" && !t.Kernel {
		c.fact(Counted, "started by %s", t.Parent)
	}
	if h, known := s.e.Host.Tasks[c.TID]; known && h.Ticks > 0 {
		c.fact(Counted, "it used %s of CPU time in the window", duration(h.Ticks*tickNS))
	}
}

func remedyThread(s *scene, c *Cause) {
	free := s.e.Host.Housekeeping
	t, ok := s.e.Host.Threads[c.TID]
	switch {
	case !ok:
		c.FixNote = "find out what starts it, and start it on other CPUs: taskset -c " + free + " COMMAND"
	case t.Ended:
		c.FixNote = fmt.Sprintf("it has ended meanwhile; let %s start it on other CPUs: taskset -c %s COMMAND",
			cmp.Or(t.Parent, "its parent"), free)
	case free == "": // every CPU has a worker
	case t.Kernel && strings.HasPrefix(c.Name, "kworker/"):
		c.Fix = fmt.Sprintf("echo %s > /sys/devices/virtual/workqueue/cpumask", maskOf(free))
		c.FixNote = "for unbound work; work that is bound to this CPU goes when what makes it goes (isolcpus=, " +
			"nohz_full=)"
	case t.Kernel && t.Allowed.Len() == 1:
		c.FixNote = "the kernel keeps this thread on its CPU: isolate the CPU (isolcpus=managed_irq,domain, " +
			"nohz_full=, rcu_nocbs=)"
	default:
		c.Fix = fmt.Sprintf("taskset -pc %s %d", free, c.TID)
	}
}

func whyThere(w *Worker, allowed, cgroup, owner string) string {
	var parts []string
	switch {
	case allowed == fmt.Sprint(w.CPU):
		parts = append(parts, fmt.Sprintf("it is pinned to CPU %d", w.CPU))
	case allowed != "":
		parts = append(parts, fmt.Sprintf("it may run on CPUs %s, and the worker's CPU is one of them", allowed))
	}
	if cgroup != "" {
		parts = append(parts, "control group "+cgroup)
	}
	if owner != "" {
		parts = append(parts, "owner "+owner)
	}
	return strings.Join(parts, "; ")
}
