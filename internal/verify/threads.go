// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
)

const (
	groupThreads = "Threads"
	vrouterSpec  = "contrail-specs: full_cpu_partitioning_support.md"
)

var threadRules = []rule{
	{id: "threads.workers", group: groupThreads, title: "Each worker runs on exactly its CPU", workers: true,
		check:  checkWorkers,
		source: vrouterSpec,
		why: "The kernel moves a worker that may run on several CPUs, and it loses its caches; a worker that " +
			"does not run forwards nothing."},
	{id: "threads.foreign", group: groupThreads, title: "No other program's thread may run on workers' CPUs",
		workers: true, check: checkForeign,
		source: vrouterSpec + "; sched_setaffinity(2)",
		why: "Each time such a thread runs, the worker waits 1 to 10 ms, in which up to thousands of packets " +
			"arrive at a ring of 1,024."},
	{id: "threads.kernel", group: groupThreads, title: "No kernel thread that can be moved may run on workers' CPUs",
		workers: true, check: checkKernelThreads,
		source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
		why: "Kernel threads preempt a worker like any others. Those bound to their CPU stay; they have no work " +
			"when nothing else runs there."},
	{id: "threads.own", group: groupThreads, title: "The data plane's other threads keep off its workers",
		check: checkOwn, workers: true,
		source: vrouterSpec + ": service lcores were not pinned",
		why: "The data plane's own service and control threads wake most often. Where nothing pins them, they run " +
			"on the forwarding CPUs."},
	{id: "threads.stacked", group: groupThreads, title: "No thread has several isolated CPUs",
		check:  checkStacked,
		source: kernelArgs + ": isolcpus=, no load balancing",
		why: "The kernel does not balance isolated CPUs: threads that may use several of them all stay on the " +
			"first. Give each thread one CPU."},
	{id: "load.worker", group: groupThreads, title: "Only workers use workers' CPUs", workers: true,
		check:  checkWorkerLoad,
		source: "proc(5): /proc/stat",
		why:    "Time that others use on these CPUs is lost for forwarding."},
}

// mayBeThere reports whether a thread may be on workers' CPUs: the workers' own threads, and those that cannot move.
func (v *view) mayBeThere(t *topology.Thread) bool {
	return t.Fixed || !t.Allowed.Overlaps(v.in.Workers) || IsWorker(t) && t.Allowed.Len() == 1
}

func checkForeign(v *view, r *result) {
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if v.mayBeThere(t) || t.Kernel || v.own[t.PID] {
			continue
		}
		v.inTheWay(r, t)
	}
	v.slices(r)
	if len(r.items) == 0 {
		if len(v.m.Threads) == 0 {
			r.unknown("no thread could be read")
			return
		}
		r.pass("checked %d threads", len(v.m.Threads))
	}
}

// inTheWay adds a thread that may run on workers' CPUs. On isolated CPUs a thread that may also run elsewhere does so,
// unless it wakes up there, so its program probably chose these CPUs itself.
func (v *view) inTheWay(r *result, t *topology.Thread) {
	i := r.fail("%s: CPUs %s belong to workers%s", describe(t), t.Allowed.And(v.in.Workers), v.ran(t))
	if v.in.Workers.And(t.Allowed).Within(v.isolated) && !t.Allowed.Within(v.in.Workers) && v.busy(t) == 0 {
		i.Verdict = Warn
	}
	i.thread(t, v.home(t))
	if i.weight = v.busy(t); t.Allowed.Within(v.in.Workers) {
		i.Pinned = true
		i.weight += 1 << 40
	}
}

// slices adds commands that keep whole slices of the host off, when too many threads are in the way to list commands.
func (v *view) slices(r *result) {
	if len(r.items) < 20 {
		return
	}
	r.fixes = append(r.fixes, "corelane cores apply {plan}   # keeps all of them off at once")
	if v.m.Cgroups.Version == 2 && !v.m.Container {
		r.fixes = append(r.fixes,
			fmt.Sprintf("systemctl set-property --runtime system.slice AllowedCPUs=%s", v.in.Host),
			fmt.Sprintf("systemctl set-property --runtime user.slice AllowedCPUs=%s", v.in.Host))
	}
}

// ran returns a text about the CPU time that a thread used.
func (v *view) ran(t *topology.Thread) string {
	ticks := v.busy(t)
	switch l := v.m.Load; {
	case ticks == 0:
		return ""
	case l != nil && l.Threads != nil && l.Seconds > 0:
		return fmt.Sprintf("; it used %s of a CPU during the check",
			percent(float64(ticks)/procfs.TicksPerSecond/l.Seconds))
	}
	return fmt.Sprintf("; it has used %.1f s of CPU time", float64(ticks)/procfs.TicksPerSecond)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func checkKernelThreads(v *view, r *result) {
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if !t.Kernel || v.mayBeThere(t) || strings.HasPrefix(t.Name, "vhost-") {
			continue // guests' vhost threads: guests.vhost
		}
		item := r.warn("%s%s", describe(t), v.ran(t)).thread(t, v.home(t))
		item.weight = v.busy(t)
	}
	if len(r.items) == 0 {
		r.pass("all kernel threads on these CPUs are bound to their CPU")
	}
}

func checkOwn(v *view, r *result) {
	others := 0
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if !v.own[t.PID] || t.Kernel || IsWorker(t) {
			continue
		}
		if others++; t.Allowed.Overlaps(v.in.Workers) {
			i := r.fail("%s: CPUs %s belong to workers%s", describe(t), t.Allowed.And(v.in.Workers), v.ran(t)).
				thread(t, v.home(t))
			i.weight = v.busy(t)
		}
	}
	switch {
	case len(r.items) > 0 && v.in.Service.Empty():
		r.fixes = append(r.fixes, "corelane plan make   # with fewer workers: no CPU is left for these threads")
	case len(r.items) > 0:
		r.fixes = append(r.fixes, fmt.Sprintf("# permanently: corelaned --service-cpus %s --control-cpus %[1]s; in a "+
			"vRouter: SERVICE_CORE_MASK=0x%s "+
			"DPDK_CTRL_THREAD_MASK=0x%[2]s",
			v.in.Service, v.in.Service.Mask()))
	case len(v.own) == 0:
		r.unknown("no data plane is running")
	default:
		r.pass("%d service and control threads run on other CPUs", others)
	}
}

func checkWorkers(v *view, r *result) {
	var there cpuset.Set
	free := v.in.Workers.Without(v.taken())
	move := func(t *topology.Thread) cpuset.Set {
		to := free.And(t.Allowed)
		if to.Empty() {
			to = free
		}
		if !to.Empty() {
			to = cpuset.Of(to.First())
		}
		free, there = free.Without(to), there.Or(to)
		return to
	}
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if !IsWorker(t) || !t.Allowed.Overlaps(v.in.Workers) && v.in.Planned && t.Process != "corelaned" {
			continue
		}
		switch {
		case t.Allowed.Len() != 1:
			r.fail("%s: the thread has %d CPUs instead of one", describe(t), t.Allowed.Len()).thread(t, move(t))
			continue
		case !v.in.Workers.Has(t.Allowed.First()):
			i, to := r.fail("%s: this is not a worker's CPU in %s", describe(t), v.in.From), move(t)
			i.thread(t, to)
			if at := strings.LastIndex(t.Name, "-"); to.Empty() && t.Process == "corelaned" {
				i.Command = "corelane worker del " + t.Name[at+1:]
			}
			continue
		case there.Overlaps(t.Allowed):
			r.fail("%s: another worker has this CPU", describe(t)).thread(t, move(t))
			continue
		case t.LastCPU != t.Allowed.First():
			r.warn("%s: the thread has not yet run on its CPU", describe(t)).thread(t, cpuset.Set{})
		default:
			r.pass("%s (%d) is on CPU %s", threadName(t), t.TID, t.Allowed)
		}
		there = there.Or(t.Allowed)
	}
	switch missing := v.in.Workers.Without(there); {
	case len(v.own) == 0:
		r.unknown("no data plane is running; its workers should be on CPUs %s", v.in.Workers)
	case !missing.Empty():
		item := r.fail("no worker runs on CPUs %s (%s)", missing, v.names(missing))
		for _, cpu := range missing.IDs() {
			item.Command += ifText(item.Command != "", "\n") + fmt.Sprintf("corelane worker add --cpu %d", cpu)
		}
	}
}

// taken returns the CPUs to which workers are pinned.
func (v *view) taken() (cpus cpuset.Set) {
	for i := range v.m.Threads {
		if w := &v.m.Threads[i]; IsWorker(w) && w.Allowed.Len() == 1 {
			cpus = cpus.Or(w.Allowed)
		}
	}
	return cpus
}

func checkStacked(v *view, r *result) {
	byCPUs := map[string][]*topology.Thread{}
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		free := !t.Kernel && !t.Fixed && !v.guests[t.PID] // guests: guests.vcpus and guests.emulator
		if free && t.Allowed.Len() > 1 && t.Allowed.Within(v.isolated) {
			byCPUs[t.Allowed.String()] = append(byCPUs[t.Allowed.String()], t)
		}
	}
	for _, group := range byCPUs {
		for _, t := range group {
			i := r.warn("%s: all of these CPUs are isolated", describe(t)).thread(t, cpuset.Set{})
			if i.weight = v.busy(t); len(group) > 1 {
				i.Verdict = Fail
				i.Text += fmt.Sprintf("; %d threads may use these CPUs and share one", len(group))
			}
			i.Command = fmt.Sprintf("taskset -pc %d %d   # or any other one of its CPUs", t.Allowed.First(), t.TID)
		}
	}
	if len(r.items) == 0 {
		r.pass("isolated CPUs now: %s", orNone(v.isolated))
	}
}

// busyShare returns the used share of a CPU's time.
func (v *view) busyShare(id int) (share float64, known bool) {
	c := v.m.Load.Of(id)
	if c == nil {
		return 0, false
	}
	busy := c.User + c.System + c.Irq + c.Softirq
	if all := busy + c.Idle + c.Steal; all > 0 {
		return float64(busy) / float64(all), true
	}
	return 0, false
}

func checkWorkerLoad(v *view, r *result) {
	l := v.m.Load
	if l == nil {
		r.unknown("/proc/stat could not be read")
		return
	}
	for _, id := range v.in.Workers.IDs() {
		c := l.Of(id)
		if c == nil {
			r.unknown("/proc/stat has no counts of CPU %d", id)
			continue
		}
		all := float64(max(1, c.User+c.System+c.Irq+c.Softirq+c.Idle+c.Steal))
		verdict := Pass
		if noise := float64(c.Irq+c.Softirq) / all; noise > 0.01 {
			verdict = Warn
		}
		steal := float64(c.Steal) / all
		if steal > 0.005 {
			verdict = Warn
		}
		text := ifText(steal > 0.005, "; the hypervisor took the CPU away: this cannot be fixed on this machine")
		r.add(verdict, "CPU %d in %.1f s%s: interrupts %s, softirqs %s, steal %.1f %%%s", id, l.Seconds,
			ifText(l.SinceBoot, " since boot"), percent(float64(c.Irq)/all), percent(float64(c.Softirq)/all), 100*steal,
			text)
	}
}
