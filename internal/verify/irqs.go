// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

const groupIRQ = "Interrupts and kernel network"

var irqRules = []rule{
	{id: "irq.affinity", group: groupIRQ, title: "No device's interrupt goes to workers' CPUs", workers: true,
		check:  checkIRQs,
		source: "Documentation/core-api/irq/irq-affinity.rst",
		why: "An interrupt stops a worker at once, and its softirq may run for milliseconds. On one host, moving " +
			"one network interrupt off a polling CPU reduced losses from 1 in 2,275 packets to 1 in 16 million."},
	{id: "irq.counts", group: groupIRQ, title: "Workers' CPUs take no interrupts (/proc/interrupts)", workers: true,
		check:  checkInterruptCounts,
		source: dpvsAdvice + "; proc(5)",
		fixes:  []string{"corelane explain   # shows the cause of each"},
		why:    "These are the interrupts that workers' CPUs really took, whatever the masks say."},
	{id: "softirq.counts", group: groupIRQ, title: "Workers' CPUs run no softirqs (/proc/softirqs)", workers: true,
		check:  checkSoftirqCounts,
		source: dpvsAdvice + "; proc(5)",
		fixes:  []string{"corelane explain   # shows the cause of each"},
		why:    "Softirqs run on the worker's CPU in place of the worker; NET_RX is the kernel's packet processing."},
	{id: "net.rps", group: groupIRQ, title: "RPS steers no packets to workers' CPUs", workers: true,
		check:  checkRPS,
		source: "Documentation/networking/scaling.rst: RPS",
		why:    "RPS raises an IPI and runs the kernel's receive path on each CPU of its mask."},
	{id: "net.xps", group: groupIRQ, title: "XPS names no workers' CPUs", workers: true,
		check:  checkXPS,
		source: "Documentation/networking/scaling.rst: XPS",
		why:    "A transmit queue that is mapped to a worker's CPU interrupts that CPU with its completions."},
	{id: "workqueue.mask", group: groupIRQ, title: "Unbound workqueues keep off workers' CPUs", workers: true,
		check:  checkWorkqueue,
		source: "Documentation/core-api/workqueue.rst",
		why:    "Writeback, crypto and many drivers queue work for any CPU of this mask."},
}

func checkIRQs(v *view, r *result) {
	if len(v.m.IRQs) == 0 {
		r.unknown("no interrupt could be read")
		return
	}
	to := v.in.IRQs.And(v.online).Without(v.in.Workers)
	for _, q := range v.m.IRQs {
		may, goes := q.Affinity.And(v.in.Workers), q.Effective.And(v.in.Workers)
		if q.Effective.Empty() {
			goes = may
		}
		if may.Empty() && goes.Empty() {
			continue
		}
		text := fmt.Sprintf("irq %d %s may go to CPUs %s and now goes to %s", q.Number, q.Name, q.Affinity,
			orNone(q.Effective))
		switch {
		case q.Managed:
			r.warn("%s; the kernel manages it: use fewer queues%s", text,
				ifText(!v.managedIRQ(), ", or boot with isolcpus=managed_irq")).about("irq %d", q.Number)
		case goes.Empty():
			stay := q.Effective.And(v.in.IRQs) // where it is now, if interrupts are meant to be there
			if stay.Empty() {
				stay = to
			}
			r.warn("%s; it may move to a worker's CPU", text).about("irq %d", q.Number).moveIRQ(q.Number, stay)
		default:
			r.fail("%s of %s", text, v.names(goes)).about("irq %d", q.Number).moveIRQ(q.Number, to)
		}
	}
	if len(r.items) == 0 {
		r.pass("%d interrupts go elsewhere", len(v.m.IRQs))
	}
}

// managedIRQ reports whether isolcpus=managed_irq is in force.
func (v *view) managedIRQ() bool {
	arg, err := v.cpuArg("isolcpus")
	return err == nil && slices.Contains(arg.Flags, "managed_irq")
}

func (i *Item) moveIRQ(number int, to cpuset.Set) {
	if !to.Empty() {
		i.write(fmt.Sprintf("/proc/irq/%d/smp_affinity_list", number), to.String())
	}
}

// perSecond lists the rows that grew on a CPU, the fastest first.
func perSecond(rows map[string]int64, seconds float64) (text string, most float64) {
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return int(rows[b] - rows[a]) })
	var parts []string
	for _, key := range keys {
		if rate := float64(rows[key]) / seconds; rate >= 0.05 {
			most = max(most, rate)
			parts = append(parts, fmt.Sprintf("%s %.1f/s", key, rate))
		}
	}
	return strings.Join(parts[:min(len(parts), 6)], ", "), most
}

func checkInterruptCounts(v *view, r *result) {
	v.counts(r, func(c *topology.CPULoad) map[string]int64 { return c.Interrupts }, "/proc/interrupts")
}

func checkSoftirqCounts(v *view, r *result) {
	v.counts(r, func(c *topology.CPULoad) map[string]int64 { return c.Softirqs }, "/proc/softirqs")
}

// quietRate is what remains on a CPU with all boot arguments: about one interrupt of each kind per second.
const quietRate = 10

func (v *view) counts(r *result, rows func(*topology.CPULoad) map[string]int64, path string) {
	l := v.m.Load
	for _, id := range v.in.Workers.IDs() {
		c := l.Of(id)
		if c == nil || rows(c) == nil || l.Seconds <= 0 {
			r.unknown("%s has no counts of CPU %d", path, id)
			continue
		}
		text, most := perSecond(rows(c), l.Seconds)
		span := fmt.Sprintf("in %.1f s%s", l.Seconds, ifText(l.SinceBoot,
			" since boot, so the present rate is not known"))
		if most > quietRate {
			r.warn("CPU %d: %s (%s)", id, text, span)
		} else {
			r.pass("CPU %d: %s (%s)", id, orNone(text), span)
		}
	}
}

func checkRPS(v *view, r *result) {
	v.steering(r, "rx", "rps_cpus", Fail, func(i topology.Interface) []cpuset.Set { return i.RPS })
}

func checkXPS(v *view, r *result) {
	v.steering(r, "tx", "xps_cpus", Warn, func(i topology.Interface) []cpuset.Set { return i.XPS })
}

func (v *view) steering(r *result, queue, file string, verdict Verdict, masks func(topology.Interface) []cpuset.Set) {
	for _, i := range v.m.Interfaces {
		for n, cpus := range masks(i) {
			if !cpus.Overlaps(v.in.Workers) {
				continue
			}
			r.add(verdict, "%s, queue %s-%d: CPUs %s, which include workers' CPUs %s", i.Name, queue, n, cpus,
				cpus.And(v.in.Workers)).
				about("%s %s/%s-%d", file, i.Name, queue, n).
				write(fmt.Sprintf("/sys/class/net/%s/queues/%s-%d/%s", i.Name, queue, n, file),
					cpus.Without(v.in.Workers).MaskWords())
		}
	}
	if len(r.items) == 0 {
		r.pass("looked at %d interfaces", len(v.m.Interfaces))
	}
}

func checkWorkqueue(v *view, r *result) {
	switch mask := v.m.Knobs.WorkqueueMask; {
	case mask.Empty():
		r.unknown("/sys/devices/virtual/workqueue/cpumask is not readable")
	case mask.Overlaps(v.in.Workers):
		r.warn("/sys/devices/virtual/workqueue/cpumask is CPUs %s, which include workers' CPUs %s", mask,
			mask.And(v.in.Workers)).
			about("workqueue mask").writeMask("/sys/devices/virtual/workqueue/cpumask", v.in.Host)
	default:
		r.pass("/sys/devices/virtual/workqueue/cpumask is CPUs %s", mask)
	}
}
