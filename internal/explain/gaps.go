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
		if who, ok := classifyLoop(&l); ok {
			out = append(out, GapReport{FromNS: l.FromNS, NS: l.NS, Kind: who.kind, Culprit: who.name})
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
	case rowOf(who.kind).voluntary && ran != 0:
		return fmt.Sprintf("gave its CPU to %s (%d)", name, ran)
	}
	return cmp.Or(who.name, string(who.kind))
}
