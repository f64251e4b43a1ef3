// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/explain/kernel"
)

var yield = row{
	kind: Yield, colour: "held",
	means: "the worker gave the CPU away: idle policy yield, sleep or interrupt",
	known: "its system calls, and the threads that ran meanwhile",
	claim: func(_ *Evidence, w *Worker, ev event) (culprit, bool) {
		asked := ev.kind == kernel.KindSyscall && isIdleCall(ev.id) && w.sharesCPU()
		// other programs sleep when they have nothing to do
		left := ev.left(kernel.WhyYield, kernel.WhySleep) && !w.Plain
		return culprit{name: w.Idle}, asked || left
	},
	counters: func(a *account) {
		if a.w.sharesCPU() && a.w.Voluntary > 0 {
			idle := int64(float64(a.w.IdleCycles) / max(1, a.w.HzTSC) * 1e9)
			a.add(culprit{kind: Yield, name: a.w.Idle}, idle, int64(max(a.w.Voluntary, a.w.SystemCalls)), 0)
		}
	},
	loop:      func(l *LongLoop) (int64, string) { return l.IdleNS, "gave its CPU away" },
	voluntary: true,
	limits: limits{minor: func(s *scene, c *Cause, lossy bool) bool {
		few := s.w.queued() == 0 && float64(s.w.Packets) < fewPackets*s.e.Seconds
		if s.w.idle() || (few || s.w.wokenByPackets()) && !lossy {
			return true
		}
		if s.m.saturated() {
			return c.Share < minorShare
		}
		_, others := othersOf(s.e, s.w)
		return !lossy && c.Longest < longGap && float64(others) <= sharedShare*float64(s.e.ns())
	}},
	describe: describeYield,
	remedy: func(s *scene, c *Cause) {
		if s.w.sharesCPU() || s.w.wokenByPackets() {
			c.Fix = fmt.Sprintf("corelane worker set %d --idle spin", s.w.ID)
			c.FixNote = "let the worker spin, and keep other threads off its CPU:"
		}
	},
	noRemedy: "use a device that needs no system calls (memif, vhost, dpdk), or give the port a worker of its own",
}

const fewPackets = 100 // per second: neighbours and guests without any load send some

const sharedShare = 0.05 // share of the window that other threads may have while the worker gives its CPU away

func describeYield(s *scene, c *Cause) {
	w := s.w
	c.Title = fmt.Sprintf("%s gave its CPU %d away: idle policy %s", w.label(), w.CPU, w.Idle)
	c.Why = fmt.Sprintf("with idle policy %s it lets other threads run whenever a poll brings no packets", w.Idle)
	if w.Idle == "sleep" {
		c.Why = fmt.Sprintf("with idle policy sleep it sleeps for up to %d us when polls bring no packets, and "+
			"then waits for the kernel to wake it", w.SleepMaxUS)
	}
	if w.wokenByPackets() {
		c.Title = fmt.Sprintf("%s slept: idle policy interrupt", w.label())
		c.Why = "with idle policy interrupt it sleeps when polls bring no packets, until a packet wakes it"
	} else if !w.sharesCPU() {
		c.Title = fmt.Sprintf("%s waited in system calls", w.label())
		c.Why = "it polls a device that is served by system calls (tap, af_packet)"
	}
	c.fact(Counted, "%d system calls and %d voluntary switches", w.SystemCalls, w.Voluntary)
	if t, ns := othersOf(s.e, w); t != nil {
		c.fact(Seen, "meanwhile other threads ran for %s, most of it %s (%d)", duration(ns), t.Name, t.ID)
		c.Title += fmt.Sprintf("; %s (%d) ran meanwhile", t.Name, t.ID)
	}
}

// wokenByPackets says whether the worker sleeps only until a packet comes.
func (w *Worker) wokenByPackets() bool { return w.Idle == "interrupt" }

// othersOf returns the time of all threads that ran while the worker gave its CPU away, and the one with most of it.
func othersOf(e *Evidence, w *Worker) (best *kernel.Sum, ns int64) {
	if e.Trace == nil {
		return nil, 0
	}
	for i, s := range e.Trace.Sums {
		if s.Worker == w.TID && s.Kind == kernel.KindThread && s.ID != 0 &&
			(s.Why == kernel.WhyYield || s.Why == kernel.WhySleep) {
			ns += s.NS
			if best == nil || s.NS > best.NS {
				best = &e.Trace.Sums[i]
			}
		}
	}
	return best, ns
}

func isIdleCall(number int) bool {
	return number == unix.SYS_SCHED_YIELD || number == unix.SYS_CLOCK_NANOSLEEP || number == nrNanosleep
}

const nrNanosleep = 35 // x86-64; newer C libraries use clock_nanosleep for it
