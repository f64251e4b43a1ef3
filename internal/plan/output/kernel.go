// SPDX-License-Identifier: Apache-2.0
package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
)

const grubPath = "/etc/default/grub.d/90-corelane.cfg"

// arguments are those of Documentation/admin-guide/kernel-parameters.txt that a plan decides, and the few that keep the
// kernel quiet on CPUs that poll.
func (v *view) arguments() ([]string, error) {
	var args []string
	if !v.isolated.Empty() {
		list := v.isolated.String()
		args = append(args, "isolcpus="+v.isolcpusFlags()+list, "nohz_full="+list, "rcu_nocbs="+list, "rcu_nocb_poll")
	}
	if !v.IRQs.Empty() && !v.IRQs.Equal(v.all) {
		args = append(args, "irqaffinity="+v.IRQs.String())
	}
	args = append(args, "skew_tick=1", "nmi_watchdog=0", "nosoftlockup", "intel_iommu=on", "iommu=pt")
	pages, err := v.hugepageArguments()
	return append(args, pages...), err
}

// isolcpusFlags: without "domain" the scheduler still balances the CPUs, until a partition of cgroup v2 takes them at run
// time; keeping managed interrupts away is possible at boot only. Kernels that know no flags take "managed_irq" for a CPU
// and then isolate none.
func (v *view) isolcpusFlags() string {
	switch {
	case v.OldKernel:
		return ""
	case v.Wishes.Boot:
		return "managed_irq,domain,"
	}
	return "managed_irq,"
}

// hugepageArguments: the default size goes first, then a pair for each size.
func (v *view) hugepageArguments() ([]string, error) {
	wishes, err := v.hugepagesByNode()
	if err != nil || len(wishes) == 0 {
		return nil, err
	}
	var args []string
	size := 0
	for i := 0; i < len(wishes); {
		var nodes []string
		total := 0
		size = wishes[i].KiB
		for ; i < len(wishes) && wishes[i].KiB == size; i++ {
			nodes = append(nodes, fmt.Sprintf("%d:%d", wishes[i].Node, wishes[i].Pages))
			total += wishes[i].Pages
		}
		if len(args) == 0 {
			args = append(args, "default_hugepagesz="+sizeText(size))
		}
		count := strings.Join(nodes, ",")
		if v.OldKernel {
			count = fmt.Sprint(total) // the kernel deals them out evenly
		}
		args = append(args, "hugepagesz="+sizeText(size), "hugepages="+count)
	}
	return args, nil
}

// hugepagesByNode has one wish for each size and node, larger sizes first.
func (v *view) hugepagesByNode() ([]plan.HugepageWish, error) {
	var list []plan.HugepageWish
	for _, w := range v.Hugepages {
		switch {
		case w.KiB != 2048 && w.KiB != 1048576:
			return nil, input.Errorf("plan: hugepages", "2048, 1048576", "no hugepage has %d KiB", w.KiB)
		case w.Node >= 0:
			list = append(list, w)
		case v.Options.Machine == nil:
			return nil, input.Errorf("plan: hugepages", "--root, or a node for each wish", "asks for pages on each node but does not say how many nodes there are")
		default:
			for _, n := range v.Options.Machine.Nodes {
				list = append(list, plan.HugepageWish{Node: n.ID, KiB: w.KiB, Pages: w.Pages})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b plan.HugepageWish) int {
		return cmp.Or(cmp.Compare(b.KiB, a.KiB), cmp.Compare(a.Node, b.Node))
	})
	return list, nil
}

func sizeText(kib int) string {
	if kib == 1048576 {
		return "1G"
	}
	return "2M"
}

func kernelArgs(v *view) ([]File, error) {
	args, err := v.arguments()
	return []File{{"", "for the end of the kernel's command line", strings.Join(args, " ") + "\n", false}}, err
}

func grub(v *view) ([]File, error) {
	args, err := v.arguments()
	text := v.note() + "# Then: update-grub, reboot.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX " + strings.Join(args, " ") + "\"\n"
	return []File{{grubPath, "drop-in of GRUB", text, false}}, err
}

// grubby replaces an argument of the same name; a second hugepagesz= would replace the first one, so those come in one go.
func grubby(v *view) ([]File, error) {
	args, err := v.arguments()
	text := "grubby --update-kernel=ALL --remove-args=\"isolcpus nohz_full rcu_nocbs irqaffinity default_hugepagesz hugepagesz hugepages\"\n" +
		"grubby --update-kernel=ALL --args=\"" + strings.Join(args, " ") + "\"\n"
	return []File{{"", "commands for a shell; then reboot", text, false}}, err
}
