// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var timerTick = row{
	kind: TimerTick, colour: "hard-irq",
	means: "the kernel's timer interrupts it",
	known: "interrupt vectors",
	claim: func(_ *Evidence, _ *Worker, ev event) (culprit, bool) {
		return culprit{name: "local timer"}, ev.vector(kernel.VectorTimer)
	},
	limits: limits{share: usualTicks},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("the kernel's timer interrupted %s", s.w.label())
		c.fact(Counted, "%.0f interrupts/s", float64(c.Times)/s.e.Seconds)
		if float64(c.Times) > fastestTick*s.e.Seconds {
			c.Why = "the kernel's own tick comes at most 1000 times a second: timers of programs make the rest " +
				"(profilers such as perf, timer_create, " +
				"short sleeps on this CPU)"
		}
	},
	remedy: func(s *scene, c *Cause) {
		c.FixNote = "nohz_full= for this CPU on the kernel's command line ends most of it"
		if float64(c.Times) > fastestTick*s.e.Seconds {
			c.FixNote = "end the profiler, or keep the program that sets these timers on other CPUs; nohz_full= " +
				"ends the kernel's own tick only"
		}
	},
}

const (
	usualTicks  = 0.06 // of a worker's time: the kernel's own accounting on a CPU that is not isolated
	fastestTick = 1500 // per second: CONFIG_HZ is 1000 at most, and a few timers of its own are usual
)
