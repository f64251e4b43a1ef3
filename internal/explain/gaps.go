// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/explain/kernel"
)

// who is what a gap has in common with a cause.
type who struct {
	kind Kind
	tid  int
	name string // where there is no thread
}

func (g who) matches(c *Cause) bool {
	if g.kind != c.Kind {
		return false
	}
	switch g.kind {
	case ForeignThread, OwnThread:
		return g.tid == c.TID
	case IRQ:
		return g.tid == c.IRQ
	}
	return g.name == "" || g.name == c.Name
}

// causeOfGap says whom a gap is counted to.
func causeOfGap(e *Evidence, g kernel.Gap) who {
	switch g.Kind {
	case kernel.KindIRQ:
		return who{IRQ, g.ID, g.Name}
	case kernel.KindSoftirq:
		return who{Softirq, 0, softirqName(g.ID)}
	case kernel.KindVector:
		if g.ID == kernel.VectorTimer {
			return who{TimerTick, 0, ""}
		}
		return who{IPI, 0, ""}
	}
	switch g.Why {
	case kernel.WhyYield, kernel.WhySleep:
		return who{Yield, 0, ""}
	case kernel.WhyStopped:
		return who{Stopped, 0, "signal"}
	case kernel.WhyFrozen:
		return who{Stopped, 0, "freezer"}
	case kernel.WhyFault:
		return who{PageFaults, 0, ""}
	}
	switch {
	case g.ID == 0 && e.Host.Cgroup.Throttled > 0:
		return who{CgroupQuota, 0, ""}
	case g.ID == 0:
		return who{Gap, 0, ""}
	case isSoftirqThread(g.Name):
		return who{Softirq, 0, ""}
	case e.isOwn(g.ID, g.PID):
		return who{OwnThread, g.ID, g.Name}
	}
	return who{ForeignThread, g.ID, g.Name}
}

const maxGaps = 400 // of one worker on a page

// gapsOf a worker for a timeline: the longest, in order of time.
func gapsOf(e *Evidence, w *Worker) []GapReport {
	var out []GapReport
	if e.Trace != nil {
		for _, g := range e.Trace.Gaps {
			if g.Worker == w.TID {
				c := causeOfGap(e, g)
				out = append(out, GapReport{FromNS: g.From, NS: g.NS, Kind: c.kind, Who: gapName(e, g, c)})
			}
		}
	}
	for _, l := range w.LongLoops {
		if kind, what := ownLoop(l); kind != "" {
			out = append(out, GapReport{FromNS: l.FromNS, NS: l.NS, Kind: kind, Who: what})
		}
	}
	slices.SortFunc(out, func(a, b GapReport) int { return cmp.Compare(b.NS, a.NS) })
	out = out[:min(len(out), maxGaps)]
	slices.SortFunc(out, func(a, b GapReport) int { return cmp.Compare(a.FromNS, b.FromNS) })
	return out
}

func gapName(e *Evidence, g kernel.Gap, c who) string {
	switch {
	case c.kind == ForeignThread || c.kind == OwnThread:
		return fmt.Sprintf("%s (%d)", g.Name, g.ID)
	case c.kind == IRQ:
		return fmt.Sprintf("irq %d (%s)", g.ID, g.Name)
	case c.kind == Yield && g.ID != 0:
		return fmt.Sprintf("gave way to %s (%d)", g.Name, g.ID)
	case c.kind == IPI && g.ID < len(kernel.Vectors):
		return kernel.Vectors[g.ID]
	case c.kind == CgroupQuota:
		return e.Host.Cgroup.Path
	}
	return cmp.Or(c.name, string(c.kind))
}

// ownLoop names long loops that the worker made so itself; what the kernel did is in the gaps.
func ownLoop(l LongLoop) (Kind, string) {
	switch {
	case l.Taken:
		return "", ""
	case l.DelayNS*2 > l.NS:
		return Delay, "corelane debug delay"
	case l.IdleNS*2 > l.NS:
		return Yield, "gave its CPU away"
	case l.MessagesNS*2 > l.NS:
		return "own-work", "changes of the configuration, ageing"
	}
	return "", ""
}
