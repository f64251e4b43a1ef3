// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

const maxGaps = 400 // per worker

// gapsOf returns the longest gaps of a worker for the timeline, in order of time.
func gapsOf(e *Evidence, w *Worker) []GapReport {
	var out []GapReport
	if e.Trace != nil {
		for i := range e.Trace.Gaps {
			g := &e.Trace.Gaps[i]
			if g.Worker != w.TID {
				continue
			}
			if who, ok := classify(e, w, eventOfGap(g)); ok {
				out = append(out, GapReport{FromNS: g.From, NS: g.NS, Kind: who.kind,
					Culprit: gapText(who, g.ID, g.Name)})
			}
		}
	}
	for _, l := range w.LongLoops {
		if kind, what := classifyLoop(&l); kind != "" {
			out = append(out, GapReport{FromNS: l.FromNS, NS: l.NS, Kind: kind, Culprit: what})
		}
	}
	slices.SortFunc(out, func(a, b GapReport) int { return cmp.Compare(b.NS, a.NS) })
	out = out[:min(len(out), maxGaps)]
	slices.SortFunc(out, func(a, b GapReport) int { return cmp.Compare(a.FromNS, b.FromNS) })
	return out
}

// gapText names the culprit, or the thread to which the worker gave its CPU.
func gapText(who culprit, ran int, name string) string {
	switch {
	case who.tid != 0:
		return fmt.Sprintf("%s (%d)", who.name, who.tid)
	case who.kind == Yield && ran != 0:
		return fmt.Sprintf("gave its CPU to %s (%d)", name, ran)
	}
	return cmp.Or(who.name, string(who.kind))
}

// classifyLoop says what made a loop of the worker long, if that was the worker itself. What the kernel did is in the
// recorded gaps.
func classifyLoop(l *LongLoop) (Kind, string) {
	switch {
	case l.Taken:
		return "", ""
	case l.DelayNS*2 > l.NS:
		return Delay, "corelane debug delay"
	case l.IdleNS*2 > l.NS:
		return Yield, "gave its CPU away"
	case l.MessagesNS*2 > l.NS:
		return OwnWork, "configuration changes, ageing"
	}
	return "", ""
}
