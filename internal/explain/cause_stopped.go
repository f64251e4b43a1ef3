// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var stopped = row{
	kind: Stopped, colour: "held",
	means: "a signal, a debugger or the freezer stopped the worker",
	known: "the thread's state when it left the CPU, and the sender of the signal",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		if ev.left(kernel.WhyFrozen) {
			return culprit{name: "freezer"}, true
		}
		return culprit{name: "signal"}, ev.left(kernel.WhyStopped)
	},
	counters: countStoppedLoops,
	limits:   limits{longest: longGap / 10},
	describe: describeStopped,
	remedy:   remedyStopped,
	noRemedy: "find out what stops it: a process that got SIGSTOP continues after kill -CONT, a traced one when the " +
		"debugger detaches, a frozen one when its control group is thawed (cgroup.freeze, freezer.state)",
}

func describeStopped(s *scene, c *Cause) {
	c.Title = fmt.Sprintf("%s was stopped by a %s", s.w.label(), c.Name)
	c.Why = "SIGSTOP, a debugger or a terminal stops all threads of a process"
	if c.Name == "freezer" {
		c.Title = fmt.Sprintf("%s was stopped by the freezer of its control group", s.w.label())
		c.Why, c.ofFreezer = "the freezer of a control group stops all threads of its processes", true
		if who := topSum(s.e, isFreezer); who != nil {
			c.Name, c.PID, c.TID = freezing+who.Name, who.PID, who.ID
			c.fact(Seen, "%s (thread %d of process %d) froze or thawed control groups %d times", who.Name, who.ID,
				who.PID, who.Count)
			c.Title += fmt.Sprintf(": %s (%d)", who.Name, who.ID)
		}
		if s.e.Host.Thaw != "" {
			c.fact(Counted, "the group is still frozen (%s)", s.e.Host.Thaw)
		}
		return
	}
	if pid, name := tracerOf(s); pid != 0 {
		c.Name, c.PID, c.TID = name, pid, pid
		c.Title = fmt.Sprintf("%s (%d) traces the process, and stopped %s", name, pid, s.w.label())
		c.Why = "a debugger or tracer stops a thread when it attaches, and at each event that it traces"
	} else if sender := topSum(s.e, isStopSignal); sender != nil {
		c.Name, c.PID, c.TID = sender.Name, sender.PID, sender.ID
		c.Title = fmt.Sprintf("%s (%d) stopped the process, and %s with it", sender.Name, sender.ID, s.w.label())
		c.fact(Seen, "%s (thread %d of process %d) sent %s %d times", sender.Name, sender.ID, sender.PID,
			signalName(int(sender.Why)), sender.Count)
	}
	if state := s.e.Host.Worker[s.w.TID].State; isStopped(state) {
		c.fact(Counted, "it is still stopped (state %s)", state)
	}
	if s.e.Trace == nil {
		c.fact(Inferred, "a loop took so long although the worker did not wait for its CPU: it was stopped or "+
			"frozen, or it waited in the kernel")
	}
}

func remedyStopped(s *scene, c *Cause) {
	tracer, name := tracerOf(s)
	did := isStopSignal
	switch {
	case c.ofFreezer:
		did = isFreezer
	case tracer != 0:
		did = func(k *kernel.Sum) bool { return tracedBy(k, s.w) }
	}
	switch {
	case c.PID != 0 && !s.e.alive(c.PID):
		c.FixNote = hasEnded(strings.TrimPrefix(c.Name, freezing), c.PID)
	case c.ofFreezer:
		c.FixNote = "find out what freezes the group (docker pause, systemctl freeze, checkpoints)"
	case s.e.mayEnd(tracer):
		c.FixNote = fmt.Sprintf("end %s; the kernel detaches it:", name)
		c.Fix = fmt.Sprintf("kill %d", tracer)
	case c.PID != 0 && tracer == 0:
		c.FixNote = fmt.Sprintf("%s (%d) sends the signals; end it or stop what makes it do so", c.Name, c.PID)
	}
	endRepeater(s.e, c, did)
	if s.e.Host.Thaw != "" {
		c.then("echo %s > %s", s.e.Host.ThawText, s.e.Host.Thaw)
	} else if isStopped(s.e.Host.Worker[s.w.TID].State) && !s.e.alive(tracer) {
		c.then("kill -CONT %d", s.e.Daemon)
	}
}

const freezing = "freezer: " // before the name of what freezes

func isFreezer(k *kernel.Sum) bool { return k.Kind == kernel.KindFreezer }

func isStopSignal(k *kernel.Sum) bool { return k.Kind == kernel.KindSignal && k.Why != sigCont }

func tracedBy(k *kernel.Sum, w *Worker) bool { return k.Kind == kernel.KindTraced && k.Worker == w.TID }

// tracerOf returns the process that traces the worker now, or that did in the window; 0: none is known.
func tracerOf(s *scene) (pid int, name string) {
	if t := topSum(s.e, func(k *kernel.Sum) bool { return tracedBy(k, s.w) }); t != nil {
		return t.PID, t.Name
	}
	if t := s.e.Host.Worker[s.w.TID].Tracer; t != 0 {
		return t, s.e.nameOf(t)
	}
	return 0, ""
}

// countStoppedLoops counts the time of long loops in which the worker neither had its CPU nor waited for it: it was not
// ready to run.
func countStoppedLoops(a *account) {
	rest := a.takenLoops() - a.e.Host.Waited[a.w.TID]
	if a.e.Host.Cgroup.Throttled > 0 || a.w.sharesCPU() || rest < 5e6 {
		return
	}
	longest := int64(0)
	for _, l := range a.w.LongLoops {
		longest = max(longest, l.NS)
	}
	a.add(culprit{kind: Stopped, name: "signal"}, rest, 1, longest)
}

const sigCont = 18

func isStopped(state string) bool { return len(state) > 0 && (state[0] == 'T' || state[0] == 't') }

func signalName(n int) string {
	if name, ok := map[int]string{sigCont: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN",
		22: "SIGTTOU"}[n]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}
