// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const groupKnob = "Kernel settings"

var knobRules = []rule{
	{id: "knobs.thp", group: groupKnob, title: "Transparent hugepages are made on request only",
		check:  checkTHP,
		source: "Documentation/admin-guide/mm/transhuge.rst",
		why: "khugepaged moves pages and sends IPIs (TLB shootdowns) to each CPU of a process, including " +
			"workers' CPUs."},
	{id: "knobs.ksm", group: groupKnob, title: "KSM is off",
		check:  checkKSM,
		source: "Documentation/admin-guide/mm/ksm.rst",
		why:    "Merging pages splits guests' hugepages and interrupts their CPUs."},
	{id: "knobs.numa_balancing", group: groupKnob, title: "NUMA balancing is off",
		check:  checkNUMABalancing,
		source: "Documentation/admin-guide/sysctl/kernel.rst: numa_balancing",
		why: "NUMA balancing unmaps pages to see who uses them: each first access, also a worker's, is a page " +
			"fault."},
	{id: "knobs.rt_throttling", group: groupKnob, title: "Real-time throttling does not stop workers",
		check:  checkRT,
		source: "Documentation/scheduler/sched-rt-group.rst",
		why:    "A polling thread with a real-time policy is stopped for 50 ms of each second."},
	{id: "knobs.vmstat", group: groupKnob, title: "Memory statistics are collected rarely",
		check:  checkStatInterval,
		source: "Documentation/admin-guide/sysctl/vm.rst: stat_interval",
		why:    "At this interval (seconds) a work item runs on each CPU to collect its counters."},
	{id: "knobs.governor", group: groupKnob, title: "Workers' CPUs keep their clock rate", workers: true,
		check:  checkGovernor,
		source: "Documentation/admin-guide/pm/cpufreq.rst",
		why: "A governor that saves power lowers the clock between bursts, and the worker is slow when the next " +
			"burst comes."},
	{id: "knobs.clocksource", group: groupKnob, title: "Reading the time does not access a device",
		check:  checkClock,
		source: "Documentation/timers/timekeeping.rst",
		why:    "With hpet or acpi_pm each reading of the time accesses a device, which takes about a microsecond."},
}

// knob compares a setting with what it should be.
func knob(r *result, path, value string, good func(string) bool, verdict Verdict, to string) {
	switch {
	case value == "":
		r.unknown("%s is not readable: this kernel may not have it", path)
	case good(value):
		r.pass("%s is %s", path, value)
	default:
		r.add(verdict, "%s is %s", path, value).about("%s", path).write(path, to)
	}
}

func is(values ...string) func(string) bool {
	return func(s string) bool {
		for _, v := range values {
			if s == v {
				return true
			}
		}
		return false
	}
}

// chosen returns the word in brackets: "always [madvise] never".
func chosen(text string) string {
	if _, rest, found := strings.Cut(text, "["); found {
		text, _, _ = strings.Cut(rest, "]")
	}
	return text
}

func checkTHP(v *view, r *result) {
	knob(r, "/sys/kernel/mm/transparent_hugepage/enabled", chosen(v.m.Knobs.THP), is("never", "madvise"), Warn, "never")
}

func checkKSM(v *view, r *result) {
	knob(r, "/sys/kernel/mm/ksm/run", v.m.Knobs.KSM, is("0", "2"), Warn, "0")
}

func checkNUMABalancing(v *view, r *result) {
	if len(v.m.Nodes) < 2 && v.m.Knobs.NUMABalancing != "0" {
		r.pass("the machine has one node: there is nothing to balance")
		return
	}
	knob(r, "/proc/sys/kernel/numa_balancing", v.m.Knobs.NUMABalancing, is("0"), Warn, "0")
}

func checkRT(v *view, r *result) {
	realtime := 0
	for i := range v.m.Threads {
		if t := &v.m.Threads[i]; IsWorker(t) && (t.Policy == "fifo" || t.Policy == "rr" || t.Policy == "deadline") {
			realtime++
		}
	}
	if realtime == 0 {
		r.pass("no worker has a real-time policy")
		return
	}
	knob(r, "/proc/sys/kernel/sched_rt_runtime_us", v.m.Knobs.RTRuntimeUS, is("-1"), Fail, "-1")
}

func checkStatInterval(v *view, r *result) {
	knob(r, "/proc/sys/vm/stat_interval", v.m.Knobs.StatInterval, func(s string) bool {
		n, err := strconv.Atoi(s)
		return err == nil && n >= 10
	}, Warn, "10")
}

func checkGovernor(v *view, r *result) {
	known := cpuset.Set{}
	for _, id := range v.in.Workers.IDs() {
		c := v.cpu(id)
		if c == nil || c.Governor == "" {
			continue
		}
		known = known.Or(cpuset.Of(id))
		if c.Governor != "performance" {
			r.warn("CPU %d: governor %s", id, c.Governor).about("governor %d", id).
				write(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", id), "performance")
		}
	}
	switch {
	case known.Empty() && v.m.Virtual != "":
		r.pass("the hypervisor (%s) controls the clock", v.m.Virtual)
	case known.Empty():
		r.unknown("there is no cpufreq: the firmware controls the clock")
	case len(r.items) == 0:
		r.pass("the governor of CPUs %s is performance", known)
	}
}

func checkClock(v *view, r *result) {
	const path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	knob(r, path, v.m.Knobs.Clocksource, is("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"),
		Warn, "tsc")
}
