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
	known: "every context switch on that CPU, with the thread that was switched in",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		ok := ev.tookCPU() && ev.id != 0 && !isSoftirqThread(ev.name) && !e.isOwn(ev.id, ev.pid)
		return culprit{name: cmp.Or(ev.name, e.nameOf(ev.id)), pid: ev.pid, tid: ev.id}, ok
	},
	describe: describeThread,
	remedy:   remedyThread,
	noRemedy: "every CPU has a worker: keep one CPU free of workers, and move this thread there",
}

func describeThread(s *scene, c *Cause) {
	c.Title = fmt.Sprintf("%s (%d) ran on CPU %d while %s waited for it", c.Name, c.TID, s.w.CPU, s.w.label())
	t, ok := s.e.Host.Threads[c.TID]
	if !ok {
		c.Why = "the thread has ended, so its affinity is no longer known"
		return
	}
	c.Why = whyThere(s.w, t.Allowed.String(), t.Cgroup, t.Owner)
	if t.Command != "" {
		c.fact(Counted, "its command line is: %s", short(t.Command, 120))
	}
	if t.Parent != "" && !t.Kernel {
		c.fact(Counted, "it was started by %s", t.Parent)
	}
	if h, known := s.e.Host.Tasks[c.TID]; known && h.Ticks > 0 {
		c.fact(Counted, "it used %s of CPU time in the window", duration(h.Ticks*tickNS))
	}
}

func remedyThread(s *scene, c *Cause) {
	free := s.e.Host.Housekeeping
	t, ok := s.e.Host.Threads[c.TID]
	switch {
	case free == "": // every CPU has a worker
	case !ok:
		c.FixNote = "find out what starts it, and start it on other CPUs: taskset -c " + free + " COMMAND"
	case t.Ended:
		c.FixNote = fmt.Sprintf("the thread has ended; make %s start it on other CPUs: taskset -c %s COMMAND",
			cmp.Or(t.Parent, "its parent"), free)
	case t.Kernel && strings.HasPrefix(c.Name, "kworker/"):
		c.Fix = fmt.Sprintf("echo %s > /sys/devices/virtual/workqueue/cpumask", maskOf(free))
		c.FixNote = "the command moves unbound work only; work that is bound to this CPU ends when its source moves " +
			"away (isolcpus=, nohz_full=)"
	case t.Kernel && t.Allowed.Len() == 1:
		c.FixNote = "this kernel thread is bound to its CPU: isolate the CPU (isolcpus=managed_irq,domain, " +
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
		parts = append(parts, fmt.Sprintf("it may run on CPUs %s, which include the worker's CPU", allowed))
	}
	if cgroup != "" {
		parts = append(parts, "its control group is "+cgroup)
	}
	if owner != "" {
		parts = append(parts, "its owner is "+owner)
	}
	return strings.Join(parts, "; ")
}
