// SPDX-License-Identifier: Apache-2.0
package output

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const irqbalancePath = "/etc/default/irqbalance"

// irqbalance writes irqbalance's bans. Without them irqbalance avoids the CPUs of isolcpus= and nohz_full=, but not
// those of partitions.
func irqbalance(v *view) ([]File, error) {
	text := v.note() +
		"# Debian's place; RHEL: /etc/sysconfig/irqbalance. Before irqbalance 1.8: IRQBALANCE_BANNED_CPUS=" +
		v.bans().MaskWords() + "\n" + "IRQBALANCE_BANNED_CPULIST=" + v.bans().String() + "\n"
	return []File{{irqbalancePath, "settings of irqbalance", text, false}}, nil
}

// bans returns all CPUs that may not take interrupts.
func (v *view) bans() cpuset.Set { return v.all.Without(v.interruptCPUs()) }

func (v *view) interruptCPUs() cpuset.Set {
	if v.IRQs.Empty() {
		return v.host
	}
	return v.IRQs
}

// interrupts writes masks. It leaves out masks that are already right and interrupts that cannot be moved.
func interrupts(v *view) ([]File, error) {
	to := v.interruptCPUs()
	lines := []string{
		"/proc/irq/default_smp_affinity=" + to.MaskWords(),
		"/sys/devices/virtual/workqueue/cpumask=" + v.host.MaskWords(),
	}
	what := "path=value; numbers of interrupts and queues need --root"
	if v.Options.Machine != nil {
		lines, what = append(lines, v.machineMasks(to)...), "path=value"
	}
	return []File{{"", what, strings.Join(lines, "\n") + "\n", false}}, nil
}

func (v *view) machineMasks(to cpuset.Set) []string {
	var lines []string
	for _, irq := range v.Options.Machine.IRQs {
		if !irq.Managed && !irq.Affinity.Empty() && !irq.Affinity.Within(to) {
			lines = append(lines, fmt.Sprintf("/proc/irq/%d/smp_affinity_list=%s", irq.Number, to))
		}
	}
	for _, i := range v.Options.Machine.Interfaces {
		for q, mask := range i.RPS { // an empty mask turns RPS off: packets stay on the CPU of their interrupt
			if mask.Overlaps(v.isolated) {
				lines = append(lines, fmt.Sprintf("/sys/class/net/%s/queues/rx-%d/rps_cpus=%s", i.Name, q,
					to.MaskWords()))
			}
		}
		for q, mask := range i.XPS {
			if mask.Overlaps(v.isolated) {
				lines = append(lines, fmt.Sprintf("/sys/class/net/%s/queues/tx-%d/xps_cpus=%s", i.Name, q,
					mask.Without(v.isolated).MaskWords()))
			}
		}
	}
	return lines
}
