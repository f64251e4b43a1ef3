// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

var softirq = row{
	kind: Softirq, colour: "soft-irq",
	means: "the kernel did softirq work (network, timers, RCU) on the worker's CPU, as an interruption or in " +
		"`ksoftirqd`",
	known: "entry and exit of softirqs; the device of received packets, one in 32 sampled; packet steering; the " +
		"sender of the interrupt",
	claim: func(e *Evidence, w *Worker, ev event) (culprit, bool) {
		if ev.tookCPU() && ev.id != 0 && isSoftirqThread(ev.name) {
			return culprit{name: busiestSoftirq(e, w)}, true
		}
		return culprit{name: softirqName(ev.id)}, ev.kind == kernel.KindSoftirq
	},
	counters: func(a *account) {
		if ticks := a.e.Host.Ticks[a.w.CPU].Softirq; ticks > 0 {
			a.add(culprit{kind: Softirq, name: busiestSoftirq(a.e, a.w)}, ticks*tickNS, ticks, 0)
		}
	},
	// a higher rate matters even if each is short: entering and leaving the kernel is not in their time
	limits:   limits{rate: 5000},
	describe: describeSoftirq,
	remedy:   remedySoftirq,
	noRemedy: "find out which device or program causes this work, and keep it on other CPUs",
}

func describeSoftirq(s *scene, c *Cause) {
	e, cpu := s.e, s.w.CPU
	c.Title = fmt.Sprintf("the kernel did %s work on CPU %d in %s's time", c.Name, cpu, s.w.label())
	for _, l := range e.Host.Softirqs {
		if l.Label == c.Name && l.Counts[cpu] > 0 {
			c.fact(Counted, "this CPU did %.0f %s softirqs/s", float64(l.Counts[cpu])/e.Seconds, l.Label)
		}
	}
	if l := deviceInterrupt(e, cpu); c.Name == "BLOCK" && l != nil {
		c.Why = fmt.Sprintf("interrupt %s (%s) goes to this CPU, which then finishes the disk's requests", l.Label,
			l.Name)
	}
	if !isNetwork(c.Name) {
		return
	}
	device := receivedOn(e, cpu)
	if device != "" {
		c.fact(Seen, "most packets that the kernel received on this CPU came in on %s", device)
	}
	if sender := interrupterOf(e, cpu); sender != nil {
		c.fact(Seen, "%s (%d) interrupted this CPU %d times", sender.Name, sender.ID, sender.Count)
		c.PID, c.TID = sender.PID, sender.ID
	}
	if steering := e.Host.RPS[cpu]; len(steering) > 0 {
		c.Why = "receive packet steering sends packets of " + strings.Join(steering, ", ") + " to this CPU"
	} else if l := deviceInterrupt(e, cpu); l != nil {
		c.Why = fmt.Sprintf("interrupt %s (%s) goes to this CPU", l.Label, l.Name)
	} else if device != "" {
		c.Why = "no network interrupt and no packet steering of this network namespace leads to this CPU: the " +
			"packets come from a sender on this CPU or from a device of another namespace"
	}
}

func remedySoftirq(s *scene, c *Cause) {
	e, cpu := s.e, s.w.CPU
	if !isNetwork(c.Name) {
		if c.Name == "RCU" || c.Name == "TIMER" || c.Name == "SCHED" || c.Name == "HRTIMER" {
			c.FixNote = "this is the kernel's own work: isolate the CPU (nohz_full=, rcu_nocbs=, isolcpus=)"
		}
		if c.Name == "BLOCK" {
			c.FixNote = "complete each request of a disk on the CPU that made it; an interrupt that the kernel " +
				"manages cannot be moved:"
			c.Fix = "for f in /sys/block/*/queue/rq_affinity; do echo 2 > $f; done"
		}
		return
	}
	var fixes []string
	for _, q := range e.Host.RPS[cpu] {
		device, queue, _ := strings.Cut(q, "/")
		fixes = append(fixes, fmt.Sprintf("echo %s > /sys/class/net/%s/queues/%s/rps_cpus",
			maskOf(e.Host.Housekeeping), device, queue))
	}
	if len(fixes) > 0 {
	} else if l := deviceInterrupt(e, cpu); l != nil && e.Host.Housekeeping != "" {
		fixes = append(fixes, fmt.Sprintf("echo %s > /proc/irq/%s/smp_affinity_list", e.Host.Housekeeping, l.Label))
	} else if device := receivedOn(e, cpu); device != "" && e.Host.Housekeeping != "" {
		fixes = append(fixes, fmt.Sprintf("for f in /sys/class/net/%s/queues/rx-*/rps_cpus; do echo %s > $f; done",
			device, maskOf(e.Host.Housekeeping)))
		c.FixNote = "run this in the network namespace of " + device + ":"
	}
	c.Fix = strings.Join(fixes, "\n")
	moveAway(s, c)
}

// moveAway replaces the remedy for a thread of another program: it may run on another CPU. A worker's CPU is planned.
func moveAway(s *scene, c *Cause) {
	if s.w.Plain && !s.w.Ended && s.e.Host.Housekeeping != "" {
		c.Fix = fmt.Sprintf("taskset -pc %s %d", s.e.Host.Housekeeping, s.w.TID)
		c.FixNote = "run the thread on a CPU that does not do this work:"
	}
}

// busiestSoftirq names the softirq that did most work on the worker's CPU, by the kernel's counters.
func busiestSoftirq(e *Evidence, w *Worker) string {
	best, most := "softirq", int64(0)
	for _, l := range e.Host.Softirqs {
		n := l.Counts[w.CPU]
		if isNetwork(l.Label) { // one of them does far more work than one timer
			n *= 8
		}
		if n > most {
			best, most = l.Label, n
		}
	}
	return best
}

func isNetwork(softirq string) bool { return softirq == "NET_RX" || softirq == "NET_TX" }

func isSoftirqThread(name string) bool {
	return strings.HasPrefix(name, "ksoftirqd/") || strings.HasPrefix(name, "napi/")
}

func softirqName(n int) string {
	if n < len(kernel.Softirqs) {
		return kernel.Softirqs[n]
	}
	return fmt.Sprintf("softirq %d", n)
}

// receivedOn names the interface on which most packets came in that the kernel received on a CPU.
func receivedOn(e *Evidence, cpu int) string {
	s := topSum(e, func(s *kernel.Sum) bool { return s.Kind == kernel.KindReceived && s.CPU == cpu })
	if s == nil {
		return ""
	}
	return s.Name
}

// deviceInterrupt returns the busiest device interrupt of a CPU, nil if there is none with more than 10 per second.
func deviceInterrupt(e *Evidence, cpu int) (best *host.Line) {
	for i, l := range e.Host.Interrupts {
		n := l.Counts[cpu]
		if number(l.Label) > 0 && float64(n) > 10*e.Seconds && (best == nil || n > best.Counts[cpu]) {
			best = &e.Host.Interrupts[i]
		}
	}
	return best
}
