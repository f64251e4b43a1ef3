// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const (
	groupBoot  = "Kernel arguments"
	kernelArgs = "Documentation/admin-guide/kernel-parameters.txt"
	reboot     = "corelane cores apply {plan}   # writes the arguments for the next boot"
)

var bootRules = []rule{
	{id: "boot.isolcpus", group: groupBoot, title: "isolcpus isolates the intended CPUs",
		check:  checkIsolcpus,
		source: kernelArgs + ": isolcpus=",
		fixes:  []string{reboot},
		why: "The scheduler places any waiting thread on a CPU that is in its domains; pinning a worker does not " +
			"keep others off."},
	{id: "boot.consistent", group: groupBoot, title: "Arguments that name CPUs agree with each other",
		check:  checkConsistent,
		source: vrouterSpec + ", section 14; " + kernelArgs,
		fixes:  []string{reboot},
		why: "When arguments name different CPUs, isolation is partial: the tick, RCU or the scheduler still use " +
			"some workers' CPUs."},
	{id: "boot.nohz_full", group: groupBoot, title: "No timer tick on workers (nohz_full)", workers: true,
		check:  checkNohzFull,
		fixes:  []string{reboot},
		source: "Documentation/timers/no_hz.rst",
		why:    "The tick interrupts a worker 100 to 1000 times a second, for some microseconds each time."},
	{id: "boot.rcu_nocbs", group: groupBoot, title: "No RCU callbacks on workers (rcu_nocbs)", workers: true,
		check:  checkRcu,
		fixes:  []string{reboot},
		source: kernelArgs + ": rcu_nocbs=",
		why: "RCU callbacks run as softirqs on the CPU that queued them, unless rcuo threads on other CPUs run " +
			"them."},
	{id: "boot.watchdog", group: groupBoot, title: "No lockup watchdogs on workers (nowatchdog, nmi_watchdog=0)",
		check:  checkWatchdog,
		source: "Documentation/admin-guide/lockup-watchdogs.rst",
		why:    "The watchdogs wake a thread and raise an NMI on each CPU, including those that poll."},
	{id: "boot.irqaffinity", group: groupBoot, title: "New interrupts do not start on workers (irqaffinity)",
		workers: true, check: checkDefaultIRQ,
		source: "Documentation/core-api/irq/irq-affinity.rst",
		why:    "A device that is added later gets this mask; one interrupt takes 2 to 20 us from a worker."},
	{id: "boot.managed_irq", group: groupBoot, title: "Managed interrupts avoid workers (isolcpus=managed_irq)",
		workers: true, check: checkManaged,
		source: kernelArgs + ": isolcpus= managed_irq",
		fixes: []string{"corelane cores apply {plan}   # isolcpus=managed_irq,domain,...; takes " +
			"effect at the next boot"},
		why: "The kernel spreads the interrupts of NVMe and some network queues over all CPUs; they cannot be " +
			"moved afterwards."},
}

func checkIsolcpus(v *view, r *result) {
	arg, err := v.cpuArg("isolcpus")
	set, flags, given := arg.CPUs, arg.Flags, arg.Given
	switch {
	case err != nil:
		r.fail("%v", err)
	case given && domain(flags) && !set.And(v.online).Equal(v.m.Kernel.Isolated.And(v.online)) &&
		!v.m.Kernel.Isolated.Empty():
		r.fail("the command line isolates CPUs %s, but the kernel isolates %s (/sys/devices/system/cpu/isolated)", set,
			v.m.Kernel.Isolated)
	case given && domain(flags) && v.m.Kernel.Isolated.Empty():
		r.unknown("isolcpus=%s is on the command line, but /sys/devices/system/cpu/isolated is empty or not readable",
			set)
	}
	boot := v.m.Kernel.Isolated
	if boot.Empty() && domain(flags) {
		boot = set
	}
	if v.p != nil && v.p.Request.Boot && !v.in.Isolated.Within(boot) {
		r.fail("the plan isolates CPUs %s at boot, but CPUs %s are not isolated", v.in.Isolated,
			v.in.Isolated.Without(boot))
	}
	if !v.in.Planned || v.in.Isolated.Empty() {
		r.pass("isolated CPUs at boot: %s", orNone(boot))
		return
	}
	if extra := boot.Without(v.in.Isolated); !extra.Empty() {
		r.warn("CPUs %s are isolated at boot, but the plan gives them to the host: the scheduler does not balance "+
			"load onto them", extra)
	}
	r.pass("isolated CPUs at boot: %s; the plan: %s%s", orNone(boot), v.in.Isolated, ifText(!v.p.Request.Boot,
		", at run time"))
}

// domain reports whether isolcpus with these flags removes the CPUs from the scheduler's domains; without flags it
// does.
func domain(flags []string) bool {
	return len(flags) == 0 || slices.Contains(flags, "domain")
}

func checkConsistent(v *view, r *result) {
	sets := map[string]cpuset.Set{}
	names := []string{"isolcpus", "nohz_full", "rcu_nocbs"}
	var first string
	for _, name := range names {
		arg, err := v.cpuArg(name)
		if err != nil {
			r.fail("%v", err)
		} else if arg.Given && !arg.CPUs.Empty() {
			sets[name] = arg.CPUs.And(v.online)
			if first == "" {
				first = name
			}
		}
	}
	for _, name := range names {
		set, given := sets[name]
		if given && !set.Equal(sets[first]) {
			r.fail("%s=%s differs from %s=%s", name, set, first, sets[first])
		}
	}
	tuned := v.m.Kernel.All("tuned.non_isolcpus")
	if len(tuned) > 0 {
		mask, err := cpuset.ParseMask(tuned[len(tuned)-1])
		switch rest := v.online.Without(sets[first]); {
		case err != nil:
			r.fail("tuned.non_isolcpus: %v", err)
		case first != "" && !mask.And(v.online).Equal(rest):
			r.fail("tuned.non_isolcpus=%s means CPUs %s, but %s leaves CPUs %s", tuned[len(tuned)-1], mask, first, rest)
		}
	}
	var seen []string
	for _, name := range names {
		if set, given := sets[name]; given {
			seen = append(seen, fmt.Sprintf("%s=%s", name, set))
		}
	}
	if len(tuned) > 0 {
		seen = append(seen, "tuned.non_isolcpus="+tuned[len(tuned)-1])
	}
	if len(seen) == 0 {
		seen = []string{"no argument names CPUs"}
	}
	r.pass("%s", strings.Join(seen, " "))
}

func checkNohzFull(v *view, r *result) {
	arg, _ := v.cpuArg("nohz_full")
	switch missing := v.in.Workers.Without(v.m.Kernel.NohzFull); {
	case missing.Empty():
		r.pass("nohz_full: CPUs %s", v.m.Kernel.NohzFull)
	case arg.Given && v.in.Workers.Within(arg.CPUs):
		r.warn("nohz_full=%s is on the command line, but not in effect with kernel %s: "+
			"/sys/devices/system/cpu/nohz_full lacks CPUs %s", arg.CPUs,
			v.m.Kernel.Release, missing)
	default:
		r.warn("CPUs %s of workers have the tick; nohz_full: %s", missing, orNone(v.m.Kernel.NohzFull))
	}
}

func checkRcu(v *view, r *result) {
	arg, _ := v.cpuArg("rcu_nocbs")
	set := arg.CPUs.Or(v.m.Kernel.NohzFull) // nohz_full implies it
	if missing := v.in.Workers.Without(set); !missing.Empty() {
		r.warn("CPUs %s of workers run RCU callbacks; rcu_nocbs: %s", missing, orNone(set))
		return
	}
	r.pass("rcu_nocbs covers CPUs %s", v.in.Workers)
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if t.Kernel && strings.HasPrefix(t.Name, "rcuo") && !t.Fixed && t.Allowed.Overlaps(v.in.Workers) {
			r.warn("%s", describe(t)).thread(t, v.in.Host)
		}
	}
}

func checkWatchdog(v *view, r *result) {
	switch v.m.Knobs.NMIWatchdog {
	case "0":
		r.pass("kernel.nmi_watchdog = 0")
	case "":
		if v.hasArg("nowatchdog") || strings.Contains(strings.Join(v.m.Kernel.All("nmi_watchdog"), ","), "0") {
			r.pass("switched off on the command line")
		} else {
			r.unknown("/proc/sys/kernel/nmi_watchdog is not readable; a kernel without this file has no NMI watchdog")
		}
	default:
		r.warn("kernel.nmi_watchdog = %s",
			v.m.Knobs.NMIWatchdog).about("kernel.nmi_watchdog").write("/proc/sys/kernel/nmi_watchdog", "0")
	}
}

func checkDefaultIRQ(v *view, r *result) {
	switch mask := v.m.Knobs.DefaultIRQAffinity; {
	case mask.Empty():
		r.unknown("/proc/irq/default_smp_affinity is not readable")
	case mask.Overlaps(v.in.Workers):
		to := v.in.IRQs.And(v.online)
		r.warn("/proc/irq/default_smp_affinity is CPUs %s, which include workers' CPUs %s", mask,
			mask.And(v.in.Workers)).
			about("default_smp_affinity").writeMask("/proc/irq/default_smp_affinity", to)
	default:
		r.pass("/proc/irq/default_smp_affinity is CPUs %s", mask)
	}
}

func checkManaged(v *view, r *result) {
	has := v.managedIRQ()
	for _, q := range v.m.IRQs {
		if !q.Managed || !q.Effective.Overlaps(v.in.Workers) {
			continue
		}
		if has && q.Affinity.Within(v.in.Isolated) {
			r.warn("managed irq %d %s may go only to CPUs %s: managed_irq does not help a queue with isolated CPUs "+
				"only; use fewer queues", q.Number,
				q.Name, q.Affinity)
		} else {
			r.warn("managed irq %d %s goes to CPU %s", q.Number, q.Name, q.Effective)
		}
	}
	r.pass("managed_irq is %sgiven", ifText(!has, "not "))
}

// orNone returns a value's text, or "none".
func orNone(value any) string {
	if text := fmt.Sprint(value); text != "" {
		return text
	}
	return "none"
}

func ifText(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
