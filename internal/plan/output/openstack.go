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

const novaPath = "/etc/nova/nova.conf.d/90-corelane.conf"

// nova writes cpu_dedicated_set for guests with hw:cpu_policy=dedicated, and cpu_shared_set for their emulator
// threads (with hw:emulator_threads_policy=share) and for unpinned guests. Nova accepts either these or the old
// option.
func nova(v *view) ([]File, error) {
	reserved, err := v.reservedPages()
	if err != nil {
		return nil, err
	}
	text := v.note()
	if v.OldNova || len(reserved) > 0 {
		text += "[DEFAULT]\n"
	}
	for _, r := range reserved { // the option may be repeated
		text += "reserved_huge_pages = " + r + "\n"
	}
	if v.OldNova {
		text += "vcpu_pin_set = " + v.guests.String() + "\n"
	} else {
		text += "[compute]\n"
	}
	if !v.OldNova && !v.guests.Empty() {
		text += "cpu_dedicated_set = " + v.guests.String() + "\n"
	}
	if !v.OldNova {
		text += "cpu_shared_set = " + v.emulators().String() + "\n"
	} else if v.guests.Empty() {
		return nil, input.Errorf("plan", "a request with guests",
			"the plan has no CPUs for guests, and an empty vcpu_pin_set means all CPUs")
	}
	return []File{{novaPath, "options of nova-compute", text, false}}, nil
}

// defaultMemory is what corelaned takes without --memory, in MiB.
const defaultMemory = 512

// reservedPages returns the hugepages that the router takes, which Nova would sell to guests otherwise: those of the
// default size on each node with workers.
func (v *view) reservedPages() ([]string, error) {
	pages, err := v.hugepagesByNode()
	if err != nil || len(pages) == 0 {
		return nil, err
	}
	size, at := pages[0].KiB, map[int]bool{}
	var list []string
	for _, w := range v.Workers {
		has := func(p plan.HugepageRequest) bool { return p.KiB == size && p.Node == w.Node }
		if at[w.Node] || !slices.ContainsFunc(pages, has) {
			continue
		}
		at[w.Node] = true
		count := (cmp.Or(v.Memory, defaultMemory)*1024 + size - 1) / size
		list = append(list, fmt.Sprintf("node:%d,size:%d,count:%d", w.Node, size, count))
	}
	slices.Sort(list)
	return list, nil
}

// pairs writes lines of YAML. Values are quoted, because 0,10 is a number in YAML 1.1.
func pairs(indent string, list ...string) string {
	var b strings.Builder
	for i := 0; i < len(list); i += 2 {
		if list[i+1] != "" {
			fmt.Fprintf(&b, "%s%s: %q\n", indent, list[i], list[i+1])
		}
	}
	return b.String()
}

// role writes the parameters of a role of TripleO. IsolCpusList is for TuneD only; isolcpus= must be given too.
func (v *view) role(name string, more ...string) (string, error) {
	args, err := v.arguments()
	list := []string{"KernelArgs", strings.Join(args, " "), "TunedProfileName", "cpu-partitioning", "IsolCpusList",
		v.isolated.String()}
	if v.OldNova {
		list = append(list, "NovaVcpuPinSet", v.guests.String())
	} else {
		list = append(list, "NovaComputeCpuDedicatedSet", v.guests.String(), "NovaComputeCpuSharedSet",
			v.emulators().String())
	}
	text := v.note() + "parameter_defaults:\n  " + name + ":\n" + pairs("    ", append(list, more...)...)
	reserved, rerr := v.reservedPages()
	if len(reserved) > 0 {
		text += fmt.Sprintf("    NovaReservedHugePages: [%s]\n", `"`+strings.Join(reserved, `", "`)+`"`)
	}
	return text, cmp.Or(err, rerr)
}

func tripleo(v *view) ([]File, error) {
	text, err := v.role("ContrailDpdkParameters")
	if err != nil {
		return nil, err
	}
	text += "    ContrailSettings:\n" + pairs("      ", "SERVICE_CORE_MASK", v.service.String(),
		"DPDK_CTRL_THREAD_MASK", v.control.String())
	text += fmt.Sprintf("    ContrailDpdkOptions: %q\n", v.routerArguments())
	nic := v.note() + "# Into the role's NIC template, at the vRouter's interface.\n- type: contrail_vrouter_dpdk\n  " +
		"name: vhost0\n" +
		pairs("  ", "cpu_list", each(v.workers))
	return []File{
		{"environments/contrail/contrail-services.yaml", "parameters of the role", text, false},
		{"network/config/contrail/contrail-dpdk-nic-config.yaml", "the workers' CPUs, in the NIC template", nic, false},
	}, nil
}

// tripleoOvs writes the role for OVS, where OvsDpdkCoreList has the control path's threads.
func tripleoOvs(v *view) ([]File, error) {
	workers := v.Of(plan.Forwarding, plan.IsolatedRx)
	text, err := v.role("ComputeOvsDpdkParameters", "OvsPmdCoreList", workers.String(), "OvsDpdkCoreList",
		v.service.String())
	return []File{{"environments/ovs-dpdk.yaml", "parameters of the role", text, false}}, err
}
