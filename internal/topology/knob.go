// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// knobs reads settings that not every kernel has.
func (r *reader) knobs() {
	k := &r.m.Knobs
	k.WorkqueueMask, _ = value(r, "sys/devices/virtual/workqueue/cpumask", maybe, cpuset.ParseMask)
	k.DefaultIRQAffinity, _ = value(r, "proc/irq/default_smp_affinity", maybe, cpuset.ParseMask)
	thp, _ := r.text("sys/kernel/mm/transparent_hugepage/enabled", maybe)
	k.THP = chosen(thp)
	for name, to := range map[string]*string{
		"sys/kernel/mm/ksm/run":                                           &k.KSM,
		"proc/sys/kernel/numa_balancing":                                  &k.NUMABalancing,
		"proc/sys/kernel/nmi_watchdog":                                    &k.NMIWatchdog,
		"proc/sys/kernel/sched_rt_runtime_us":                             &k.RTRuntimeUS,
		"proc/sys/kernel/timer_migration":                                 &k.TimerMigration,
		"proc/sys/vm/stat_interval":                                       &k.StatInterval,
		cpuDir + "/smt/control":                                           &k.SMT,
		"sys/devices/system/clocksource/clocksource0/current_clocksource": &k.Clocksource,
	} {
		*to, _ = r.text(name, maybe)
	}
}

// chosen returns the word in brackets: "always [madvise] never".
func chosen(text string) string {
	_, after, ok := strings.Cut(text, "[")
	word, _, closed := strings.Cut(after, "]")
	if !ok || !closed {
		return ""
	}
	return word
}
