// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

var ownThread = row{
	kind: OwnThread, colour: "own",
	means: "one of corelaned's own threads, or another worker, ran on the worker's CPU",
	known: "every context switch on that CPU, and corelaned's plan of its threads",
	claim: func(e *Evidence, _ *Worker, ev event) (culprit, bool) {
		ok := ev.tookCPU() && ev.id != 0 && !isSoftirqThread(ev.name) && e.isOwn(ev.id, ev.pid)
		return culprit{name: cmp.Or(ev.name, e.nameOf(ev.id)), pid: e.Daemon, tid: ev.id}, ok
	},
	limits: limits{share: 0.005}, // corelaned places its threads on other CPUs, so this is a mistake
	describe: func(s *scene, c *Cause) {
		describeThread(s, c)
		if t := s.e.ownThread(c.TID); t != nil {
			c.Title = fmt.Sprintf("corelaned's own thread %s (%d, %s) ran on CPU %d while %s waited for it", t.Name,
				t.TID, t.Role, s.w.CPU, s.w.label())
			c.fact(Counted, "it is planned on CPUs %s and may run on %s; corelaned moved it back %d times in the "+
				"window", t.Planned, t.Allowed, t.MovedBack)
		}
	},
	remedy:   remedyOwnThread,
	noRemedy: foreignThread.noRemedy,
}

// remedyOwnThread follows corelaned's plan of its threads.
func remedyOwnThread(s *scene, c *Cause) {
	remedyThread(s, c)
	t := s.e.ownThread(c.TID)
	if t == nil || t.Planned == "" {
		return
	}
	if !inList(t.Planned, s.w.CPU) {
		c.Fix, c.FixNote = fmt.Sprintf("taskset -pc %s %d", t.Planned, c.TID), ""
		if t.Allowed != "" && !inList(t.Allowed, s.w.CPU) {
			c.Fix, c.FixNote = "", "corelaned has moved it back; stop what moves it (TuneD, numad, taskset)"
		}
		return
	}
	c.Fix, c.FixNote = "", ""
	other := "two workers share the CPU; move one of them:"
	if t.Role == "service" || t.Role == "control" {
		c.FixNote = fmt.Sprintf("corelaned's plan puts it on the worker's CPU: start corelaned with other --%s-cpus",
			t.Role)
		other = c.FixNote + ", or move the worker:"
	}
	if free := without(s.e.Host.Housekeeping, t.Planned); free != "" {
		c.FixNote, c.Fix = other, fmt.Sprintf("corelane worker set %d --cpu %s", s.w.ID, firstOf(free))
	}
}

func (e *Evidence) ownThread(tid int) *OwnThreadState {
	if i := slices.IndexFunc(e.Threads, func(t OwnThreadState) bool { return t.TID == tid }); i >= 0 {
		return &e.Threads[i]
	}
	return nil
}

func (e *Evidence) isOwn(tid, pid int) bool {
	return pid == e.Daemon && pid != 0 || e.ownThread(tid) != nil
}
