// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/explain/host"
)

var foreignThread = row{
	kind: ForeignThread, colour: "thread",
	means: "another thread ran on the worker's CPU",
	known: "every context switch on that CPU, with the thread that was switched in",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		ok := ev.tookCPU() && ev.id != 0 && !isSoftirqThread(ev.name) && !e.isOwn(ev.id, ev.pid)
		return culprit{name: cmp.Or(ev.name, e.nameOf(ev.id)), pid: ev.pid, tid: ev.id}, ok
	},
	keysOf:   keysOfThread,
	describe: describeThread,
	remedy:   remedyThread,
	noRemedy: "every CPU has a worker: keep one CPU free of workers, and move this thread there",
}

// keysOfThread returns the process of a thread, its command under its parent, its service or container, and the parent
// if that took time too.
func keysOfThread(a *account, c *Cause) []string {
	if len(c.members) == 0 {
		return []string{fmt.Sprint("thread ", c.TID)}
	}
	m := c.members[0]
	name, _, _ := strings.Cut(m.name, "/") // the kernel's workers: "kworker/1:1"
	keys := []string{fmt.Sprint("process ", m.pid), fmt.Sprint("command ", name, " of ", m.parentName)}
	if g := a.e.Host.Threads[m.tid].Cgroup; isUnit(g) && g != a.e.Host.Worker[a.w.TID].Cgroup {
		keys = append(keys, "group "+g)
	}
	if m.parent > kthreadd && a.took[taker{c.Kind, m.parent}] {
		keys = append(keys, fmt.Sprint("process ", m.parent))
	}
	return keys
}

// isUnit says whether a control group is a service, a container or a guest: its threads have one purpose. Those of a
// user's session have many.
func isUnit(group string) bool {
	return strings.Count(group, "/") > 1 && !strings.HasPrefix(group, "/user.slice")
}

func describeThread(s *scene, c *Cause) {
	c.Title = fmt.Sprintf("%s ran on CPU %d while %s waited for it", c.who(), s.w.CPU, s.w.label())
	if c.Threads > 0 {
		c.fact(c.Grade, "they are %d threads of %d processes", c.Threads, len(c.processes()))
		for _, m := range c.members[:min(len(c.members), shownMembers)] {
			c.fact(c.Grade, "%s (%d) took %s", m.name, m.tid, duration(m.ns))
		}
		if g := s.e.Host.Threads[c.TID].Cgroup; isUnit(g) {
			c.fact(c.Grade, "they belong to %s", g)
		}
		if pid, name := c.starter(); pid != 0 {
			c.fact(c.Grade, "most of them were started by %s (%d)", name, pid)
		}
	}
	t, ok := s.e.Host.Threads[c.TID]
	s.precedence(&t, c)
	if !ok {
		c.Why = "the thread has ended, so its affinity is no longer known"
		return
	}
	c.Why = whyThere(s.w, t.Allowed.String(), t.Cgroup, t.Owner)
	if t.Command != "" {
		c.fact(Counted, "its command line is: %s", short(t.Command, 120))
	}
	if t.Parent != "" && !t.Kernel && c.Threads == 0 {
		c.fact(Counted, "it was started by %s", t.Parent)
	}
	if h, known := s.e.Host.Tasks[c.TID]; known && h.Ticks > 0 {
		c.fact(Counted, "it used %s of CPU time in the window", duration(h.Ticks*tickNS))
	}
}

const shownMembers = 3

// policies of sched(7) by number, with what they do to others.
var policies = map[int]string{1: "SCHED_FIFO: it runs whenever it is ready",
	2: "SCHED_RR: it runs whenever it is ready", 6: "SCHED_DEADLINE: it runs before all others"}

const (
	schedIdle   = 5
	usualShares = 100 // cpu.weight; cpu.shares has 1024
)

// precedence says why a thread gets more of the CPU than the worker.
func (s *scene) precedence(t *host.Thread, c *Cause) {
	if policy := policies[t.Policy]; policy != "" {
		c.fact(Counted, "it is a real-time thread, %s", policy)
	}
	w, known := s.e.Host.Worker[s.w.TID]
	switch {
	case !known:
	case w.Policy == schedIdle && t.Policy != schedIdle:
		c.fact(Counted, "%s has policy SCHED_IDLE, so it gets what others leave: chrt -o -p 0 %d", s.w.label(), s.w.TID)
	case w.Nice > t.Nice:
		c.fact(Counted, "%s has nice %d and the other %d: renice -n 0 -p %d", s.w.label(), w.Nice, t.Nice, s.w.TID)
	}
	if g := s.e.Host.Cgroup; g.Shares > 0 && g.Shares < usualShares {
		c.fact(Counted, "its control group %s has only %d shares of a CPU", g.Path, g.Shares)
	}
}

// settings are the kernel's threads that one setting ends, with the command.
var settings = map[string]string{"ksmd": "echo 0 > /sys/kernel/mm/ksm/run"}

func remedyThread(s *scene, c *Cause) {
	free := s.e.Host.Housekeeping
	t, ok := s.e.Host.Threads[c.TID]
	switch {
	case ok && t.Kernel && settings[c.Name] != "":
		c.FixNote, c.Fix = "a setting of the kernel makes this thread run; switch it off:", settings[c.Name]
	case free == "": // every CPU has a worker
	case ok && t.Kernel && c.isUnboundWork():
		c.Fix = fmt.Sprintf("echo %s > /sys/devices/virtual/workqueue/cpumask", maskOf(free))
		c.FixNote = "the command moves unbound work only; work that is bound to this CPU ends when its source moves " +
			"away (isolcpus=, nohz_full=)"
	case ok && t.Fixed:
		c.FixNote = "this kernel thread is bound to its CPU: isolate the CPU (isolcpus=managed_irq,domain, " +
			"nohz_full=, rcu_nocbs=)"
	case c.Threads > 0:
		remedyGroup(s, c, free)
	case !ok:
		c.FixNote = "find out what starts it, and start it on other CPUs: taskset -c " + free + " COMMAND"
	case t.Ended && t.Kernel:
		c.FixNote = hasEnded(c.Name, c.TID)
	case t.Ended:
		c.FixNote = fmt.Sprintf("the thread has ended; make %s start it on other CPUs: taskset -c %s COMMAND",
			cmp.Or(t.Parent, "its parent"), free)
	case !s.mayRun(&t):
		c.FixNote = fmt.Sprintf("%s (%d) may no longer run on CPU %d: nothing is to do", c.Name, c.TID, s.w.CPU)
	default:
		c.Fix = fmt.Sprintf("taskset -pc %s %d", free, c.TID)
	}
}

// isUnboundWork says whether a workqueue's thread that is not bound to one CPU is among the cause's threads.
func (c *Cause) isUnboundWork() bool {
	return strings.HasPrefix(c.Name, unboundWork) ||
		slices.ContainsFunc(c.members, func(m member) bool { return strings.HasPrefix(m.name, unboundWork) })
}

const unboundWork = "kworker/u"

// mayRun says whether a thread may run on the worker's CPU, as far as its affinity is known.
func (s *scene) mayRun(t *host.Thread) bool { return t.Allowed.Empty() || t.Allowed.Has(s.w.CPU) }

// inWay says whether a process is still there, and one of its threads may run on the worker's CPU.
func (s *scene) inWay(c *Cause, pid int) bool {
	if !s.e.alive(pid) {
		return false
	}
	ids := []int{pid}
	for _, m := range c.members {
		if m.pid == pid && s.e.alive(m.tid) {
			ids = append(ids, m.tid)
		}
	}
	return slices.ContainsFunc(ids, func(tid int) bool {
		t := s.e.Host.Threads[tid]
		return s.mayRun(&t) && !t.Fixed
	})
}

const mostOfIt = 0.9 // of a group's time: to move those that have it is enough

// remedyGroup moves the processes of a group that are still there, and the process that starts them, whose children
// inherit its CPUs.
func remedyGroup(s *scene, c *Cause, free string) {
	var pids []string
	starter, name := c.starter()
	for _, pid := range c.processes() {
		if pid != starter && s.inWay(c, pid) { // the starter comes first, if it has to be moved
			pids = append(pids, fmt.Sprint(pid))
		}
	}
	living := int64(0)
	for _, m := range c.members {
		if s.e.alive(m.pid) && m.pid != starter {
			living += m.ns
		}
	}
	all := float64(living) > mostOfIt*float64(c.LostNS)
	switch {
	case all && len(pids) == 0:
		c.FixNote = fmt.Sprintf("they may no longer run on CPU %d: nothing is to do", s.w.CPU)
	case all && len(pids) == 1:
		c.Fix = fmt.Sprintf("taskset -apc %s %s", free, pids[0])
	case all:
		c.Fix = fmt.Sprintf("for pid in %s; do taskset -apc %s $pid; done", strings.Join(pids, " "), free)
	case !s.e.mayEnd(starter):
		c.FixNote = "find out what starts them, and start it on other CPUs: taskset -c " + free + " COMMAND"
	case !s.inWay(c, starter):
		c.FixNote = fmt.Sprintf("%s (%d) starts them on this CPU although it runs on others itself: make it start "+
			"them elsewhere (taskset -c %s COMMAND), or end it", name, starter, free)
	default:
		c.FixNote = "move what starts them; what it starts from then on inherits its CPUs:"
		c.Fix = fmt.Sprintf("for pid in %s; do taskset -apc %s $pid; done",
			strings.Join(append([]string{fmt.Sprint(starter)}, pids...), " "), free)
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
