// SPDX-License-Identifier: Apache-2.0
package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

const grubPath = "/etc/default/grub.d/90-corelane.cfg"

// arguments returns the kernel arguments that a plan decides, and some that avoid kernel work on polling CPUs
// (Documentation/admin-guide/kernel-parameters.txt).
func (v *view) arguments() ([]string, error) {
	var args []string
	if !v.isolated.Empty() {
		list := v.isolated.String()
		args = append(args, "isolcpus="+v.isolcpusFlags()+list, "nohz_full="+list, "rcu_nocbs="+list, "rcu_nocb_poll")
	}
	if !v.IRQs.Empty() && !v.IRQs.Equal(v.all) {
		args = append(args, "irqaffinity="+v.IRQs.String())
	}
	args = append(args, "skew_tick=1", "nmi_watchdog=0", "nosoftlockup")
	args = append(args, v.iommu()...)
	pages, err := v.hugepageArguments()
	return append(args, pages...), err
}

// iommu returns the arguments for devices of VFIO. AMD's IOMMU is on by default, and arm64 has arguments of its own.
func (v *view) iommu() []string {
	if m := v.Options.Machine; m != nil && len(m.CPUs) > 0 {
		model := m.CPUs[0].Model
		switch arm := strings.HasSuffix(m.Kernel.Release, "aarch64") || strings.HasPrefix(model, "ARM") ||
			len(m.Nodes) > 0 && slices.ContainsFunc(m.Nodes[0].Hugepages, func(h topology.Hugepages) bool {
				return h.KiB == 64 || h.KiB == 512<<10 || h.KiB == 32<<10
			}); {
		case arm:
			return []string{"iommu.passthrough=1"}
		case strings.Contains(model, "AMD"):
			return []string{"iommu=pt"}
		}
	}
	return []string{"intel_iommu=on", "iommu=pt"}
}

// isolcpusFlags returns the flags of isolcpus=. Without "domain" the scheduler still balances the CPUs until they are
// in a cgroup v2 partition; managed interrupts can be kept away at boot only. Kernels without flags take
// "managed_irq" for a CPU number and then isolate nothing.
func (v *view) isolcpusFlags() string {
	switch {
	case v.OldKernel:
		return ""
	case v.Request.Boot:
		return "managed_irq,domain,"
	}
	return "managed_irq,"
}

// hugepageArguments writes the default size first, then a pair of arguments for each size.
func (v *view) hugepageArguments() ([]string, error) {
	pages, err := v.hugepagesByNode()
	if err != nil || len(pages) == 0 {
		return nil, err
	}
	var args []string
	size := 0
	for i := 0; i < len(pages); {
		var nodes []string
		total := 0
		size = pages[i].KiB
		for ; i < len(pages) && pages[i].KiB == size; i++ {
			nodes = append(nodes, fmt.Sprintf("%d:%d", pages[i].Node, pages[i].Pages))
			total += pages[i].Pages
		}
		if len(args) == 0 {
			args = append(args, "default_hugepagesz="+topology.PageSizeText(size))
		}
		count := strings.Join(nodes, ",")
		if v.OldKernel {
			count = fmt.Sprint(total) // the kernel spreads them evenly
		}
		args = append(args, "hugepagesz="+topology.PageSizeText(size), "hugepages="+count)
	}
	return args, nil
}

// hugepagesByNode returns one request for each size and node, larger sizes first.
func (v *view) hugepagesByNode() ([]plan.HugepageRequest, error) {
	var list []plan.HugepageRequest
	for _, w := range v.Hugepages {
		switch {
		case topology.PageSizeText(w.KiB) == "":
			return nil, input.Errorf("plan: hugepages", "2048, 1048576, or another size that the machine has",
				"%d KiB is not a size of hugepages", w.KiB)
		case w.Node >= 0:
			list = append(list, w)
		case len(v.nodes()) == 0:
			return nil, input.Errorf("plan: layout", "a line 'node 0: cores 0 1' for each node",
				"pages are requested on each node, but the plan does not list nodes")
		default:
			for _, n := range v.nodes() {
				list = append(list, plan.HugepageRequest{Node: n, KiB: w.KiB, Pages: w.Pages})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b plan.HugepageRequest) int {
		return cmp.Or(cmp.Compare(b.KiB, a.KiB), cmp.Compare(a.Node, b.Node))
	})
	return list, nil
}

// nodes returns the nodes of the plan's layout.
func (v *view) nodes() []int {
	var ids []int
	for _, line := range v.Layout {
		var id int
		if n, _ := fmt.Sscanf(line, "node %d:", &id); n == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

func kernelArgs(v *view) ([]File, error) {
	args, err := v.arguments()
	return []File{{"", "append to the kernel's command line", strings.Join(args, " ") + "\n", false}}, err
}

func grub(v *view) ([]File, error) {
	args, err := v.arguments()
	text := v.note() + "# Then: update-grub, reboot.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX " +
		strings.Join(args, " ") + "\"\n"
	return []File{{grubPath, "drop-in of GRUB", text, false}}, err
}

// grubby writes one command for all arguments: grubby replaces an argument with the same name, so a second
// hugepagesz= in a command of its own would replace the first.
func grubby(v *view) ([]File, error) {
	args, err := v.arguments()
	text := "grubby --update-kernel=ALL --remove-args=\"isolcpus nohz_full rcu_nocbs irqaffinity default_hugepagesz " +
		"hugepagesz hugepages\"\n" +
		"grubby --update-kernel=ALL --args=\"" + strings.Join(args, " ") + "\"\n"
	return []File{{"", "commands for a shell; then reboot", text, false}}, err
}
