// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var timerTick = row{
	kind: TimerTick, colour: "hard-irq",
	means: "the kernel's timer interrupted the worker",
	known: "entry and exit of the timer's interrupt vector",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: "local timer"}, ev.vector(kernel.VectorTimer)
	},
	limits: limits{share: usualTicks, rate: fastestTick},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("the kernel's timer interrupted %s", s.w.label())
		c.fact(Counted, "%.0f interrupts/s", float64(c.Times)/s.e.Seconds)
		if float64(c.Times) > fastestTick*s.e.Seconds {
			c.Why = "the kernel's own tick comes at most 1000 times per second; the rest are timers of programs " +
				"(profilers such as perf, timer_create, short sleeps on this CPU)"
			for _, h := range s.e.Host.Handicaps {
				if h.Passing {
					c.fact(Counted, "%s", h.What)
				}
			}
		}
	},
	remedy: func(s *scene, c *Cause) {
		c.FixNote = "nohz_full= for this CPU on the kernel's command line stops most of these interrupts"
		if float64(c.Times) > fastestTick*s.e.Seconds {
			c.FixNote = "end the profiler, or move the program that sets these timers to other CPUs; nohz_full= " +
				"stops only the kernel's own tick"
			if h := passing(s.e); h != nil {
				c.FixNote, c.Fix = h.Remedy, h.Fix
			}
		}
	},
}

const (
	usualTicks  = 0.06 // share of a worker's time that ticks may take on a CPU that is not isolated
	fastestTick = 1500 // per second: CONFIG_HZ is at most 1000, and the kernel sets a few more timers
)
