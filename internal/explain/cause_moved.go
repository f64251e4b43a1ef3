// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/kernel"
)

var moved = row{
	kind: Moved, colour: "held",
	means: "the worker was moved off its CPU",
	known: "each migration, each system call that changed its affinity, and corelaned's count of moves that it undid",
	claim: func(_ *Evidence, w *Worker, ev event) (culprit, bool) {
		return culprit{name: "affinity"}, ev.left(kernel.WhyMoved) && !w.Plain // other programs may run on any CPU
	},
	counters: func(a *account) {
		if a.w.Moved > 0 || a.movedBack() > 0 {
			a.add(culprit{kind: Moved, name: "affinity"}, 0, int64(max(a.w.Moved, uint64(a.movedBack()))), 0)
		}
	},
	always:    countWaitElsewhere,
	holdsBack: func(*Cause, *Model) bool { return true },
	// corelaned pins each worker to its CPU, so any move is a mistake
	limits:   limits{minor: func(*scene, *Cause, bool) bool { return false }},
	describe: describeMoved,
	remedy: func(s *scene, c *Cause) {
		if s.confined() {
			both := s.e.Host.Cpuset.Or(cpuset.Of(s.w.CPU))
			c.FixNote = "give the control group the worker's CPU, too:"
			c.Fix = fmt.Sprintf("echo %s > %s\ntaskset -pc %d %d", both, s.e.Host.CpusetFile, s.w.CPU, s.w.TID)
			return
		}
		endRepeater(s.e, c, func(k *kernel.Sum) bool { return movedBy(s.e, k, s.w.TID) })
		if c.Fix == "" && c.PID != 0 && !s.e.alive(c.PID) {
			c.FixNote = hasEnded(c.Name, c.PID)
		}
		if c.Fix != "" || s.w.LastCPU != s.w.CPU || s.w.Affinity != fmt.Sprint(s.w.CPU) {
			c.then("taskset -pc %d %d", s.w.CPU, s.w.TID)
		}
	},
	noRemedy: "corelaned moves it back within a second; stop what moves it, such as TuneD, numad, cpuset changes " +
		"of a container manager or taskset",
}

// countWaitElsewhere corrects the time that a move cost. A moved worker polls on the other CPU, so only its wait for
// that CPU is lost: its total run-queue wait minus the wait for its own CPU.
func countWaitElsewhere(a *account) {
	c := a.byKey[culprit{kind: Moved, name: "affinity"}.key()]
	if c == nil || a.e.Trace == nil {
		return
	}
	waited := a.e.Host.Waited[a.w.TID]
	for _, s := range a.e.Trace.Sums {
		if s.Worker == a.w.TID && s.Kind == kernel.KindGap && s.Why == kernel.WhyTaken {
			waited -= s.NS
		}
	}
	c.elsewhere, c.LostNS = c.LostNS, min(max(0, waited), c.LostNS)
}

func describeMoved(s *scene, c *Cause) {
	w := s.w
	c.Title = fmt.Sprintf("%s was moved off its CPU %d", w.label(), w.CPU)
	if c.elsewhere > 0 {
		c.fact(c.Grade, "it was on other CPUs for %s, and polled there whenever it could run", duration(c.elsewhere))
	}
	movers := moversOf(s.e, w.TID)
	if len(movers) > shownMembers {
		c.fact(Seen, "%d threads changed its affinity", len(movers))
	}
	for i, mover := range movers[:min(len(movers), shownMembers)] {
		c.fact(Seen, "%s (thread %d of process %d) changed its affinity %d times", mover.Name, mover.ID, mover.PID,
			mover.Count)
		if i == 0 {
			c.Name, c.PID, c.TID = mover.Name, mover.PID, mover.ID
			c.Title = fmt.Sprintf("%s (%d) moved %s off its CPU %d", mover.Name, mover.ID, w.label(), w.CPU)
		}
	}
	for _, t := range s.e.Threads {
		if t.TID == w.TID && t.MovedBack > 0 {
			c.fact(Counted, "corelaned moved it back %d times", t.MovedBack)
		}
	}
	c.fact(Counted, "its affinity is now CPU %s, and it last ran on CPU %d", w.Affinity, w.LastCPU)
	if s.confined() {
		c.Name = s.e.Host.CpusetFile
		c.Title = fmt.Sprintf("the control group of the process does not have CPU %d of %s", w.CPU, w.label())
		c.Why = fmt.Sprintf("%s allows CPUs %s only", s.e.Host.CpusetFile, s.e.Host.Cpuset)
	} else if c.TID == 0 {
		c.Why = "no thread was seen to change its affinity: the cpuset of its control group changed, or it was moved " +
			"before the window began"
	}
}

// moversOf are the threads that changed the affinity of a worker; corelaned itself only moves it back.
func moversOf(e *Evidence, tid int) (out []kernel.Sum) {
	if e.Trace == nil {
		return nil
	}
	for i := range e.Trace.Sums {
		if s := &e.Trace.Sums[i]; movedBy(e, s, tid) {
			out = append(out, *s)
		}
	}
	return out
}

func movedBy(e *Evidence, s *kernel.Sum, tid int) bool {
	return s.Kind == kernel.KindAffinity && s.Worker == tid && !e.isOwn(s.ID, s.PID)
}

// confined says whether the control group of the process lacks the worker's CPU.
func (s *scene) confined() bool {
	return s.e.Host.CpusetFile != "" && !s.e.Host.Cpuset.Empty() && !s.e.Host.Cpuset.Has(s.w.CPU)
}

func (a *account) movedBack() uint32 {
	if t := a.e.ownThread(a.w.TID); t != nil {
		return t.MovedBack
	}
	return 0
}
