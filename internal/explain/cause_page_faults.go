// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var pageFaults = row{
	kind: PageFaults, colour: "memory",
	means: "the worker touched memory that was not mapped",
	known: "page faults of its thread",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		waited := ev.left(kernel.WhyFault) // in a fault, which is an event of its own
		return culprit{name: "page faults", partOf: waited}, waited || ev.kind == kernel.KindFault
	},
	counters: func(a *account) {
		if t, ok := a.e.Host.Tasks[a.w.TID]; ok && t.Minor+t.Major > 0 {
			a.add(culprit{kind: PageFaults, name: "page faults"}, (t.Minor+t.Major)*a.e.Host.FaultNS, t.Minor+t.Major,
				0)
		}
	},
	grade: func(e *Evidence) Grade {
		if e.Trace != nil && untimedFaults(e) {
			return Inferred // the faults are counted, and one costs what was measured
		}
		return watched(e)
	},
	limits: limits{rate: 1000},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("%s touched memory that was not mapped", s.w.label())
		c.fact(Counted, "%.0f faults/s", float64(c.Times)/s.e.Seconds)
		for _, h := range s.e.Host.Handicaps {
			c.fact(Counted, "%s", h.What)
		}
		c.Why = "memory of the process was reclaimed, write-protected or never touched before; usual reasons are " +
			"missing hugepages, KSM, NUMA balancing, clear_refs and swapping"
	},
	remedy: func(s *scene, c *Cause) {
		c.FixNote = "run corelaned with hugepages, and end what unmaps its memory"
		if c.Fix = strings.Join(s.e.Host.Unmapping, "\n"); c.Fix != "" {
			c.FixNote = "run corelaned with hugepages, and switch off what unmaps its memory:"
		}
	},
}

// nsOf returns the time of a sum. Page faults that were counted but not timed take what one costs on this machine.
func nsOf(e *Evidence, s *kernel.Sum) int64 {
	if s.Kind == kernel.KindFault && untimedFaults(e) {
		return s.Count * e.Host.FaultNS
	}
	return s.NS
}

func untimedFaults(e *Evidence) bool { return slices.Contains(e.Trace.Missing, kernel.FaultTime) }
