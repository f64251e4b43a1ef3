// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/corelane/corelane/internal/input"
)

// roleKeys lists the known parameters of a TripleO role with their old names, and then common parameters that do not
// concern CPUs or memory.
var roleKeys = []string{"KernelArgs", "TunedProfileName", "IsolCpusList", "HostIsolatedCoreList", "NovaVcpuPinSet",
	"NovaComputeCpuDedicatedSet", "NovaComputeCpuSharedSet",
	"OvsPmdCoreList", "NeutronDpdkCoreList", "OvsDpdkCoreList", "HostCpusList", "ContrailSettings",
	"ContrailDpdkOptions", "ExtraSysctlSettings",
	"OvsDpdkSocketMemory", "OvsDpdkMemoryChannels", "NovaReservedHostMemory", "NovaPCIPassthrough",
	"ContrailSriovNumVFs", "KernelDisableIPv6", "NovaLibvirtRxQueueSize",
	"NovaLibvirtTxQueueSize", "VhostuserSocketGroup", "ContrailDpdkImage", "DdpPackage"}

// tripleo reads an environment file, its parameters alone, or a NIC template with the vRouter's cpu_list.
func (s *scanner) tripleo(text string) error {
	root, err := s.document(text)
	if err != nil {
		return err
	}
	s.cpuLists(root, 0)
	params := root
	if p := child(root, "parameter_defaults"); p != nil {
		params = p
	}
	role, name, err := s.chooseRole(params)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for _, e := range entries(role) {
		given[e.key] = true
		s.parameter(e)
		if !slices.Contains(roleKeys, e.key) && name != "" {
			s.unknown(e.key, e.line, roleKeys, Note)
		}
	}
	for _, e := range entries(params) { // for all roles, unless the role overrides it
		if params != role && !given[e.key] {
			s.parameter(e)
			s.misspelt(e.key, e.line, roleKeys[:14])
		}
	}
	return nil
}

// chooseRole finds the parameters of one kind of host.
func (s *scanner) chooseRole(params *yaml.Node) (*yaml.Node, string, error) {
	var names []string
	found := map[string]*yaml.Node{}
	for _, e := range entries(params) {
		if name, ok := strings.CutSuffix(e.key, "Parameters"); ok && len(entries(e.value)) > 0 {
			names = append(names, name)
			found[name] = e.value
		}
	}
	want := strings.TrimSuffix(s.role, "Parameters")
	switch {
	case want != "" && found[want] == nil:
		return nil, "", input.Errorf("--role", strings.Join(names, ", "), "%s has no parameters for the role '%s'",
			s.file, want)
	case want != "":
		return found[want], want, nil
	case len(names) == 0:
		return params, "", nil
	case len(names) == 1:
		return found[names[0]], names[0], nil
	}
	for _, name := range []string{"ContrailDpdk", "ComputeOvsDpdk", "ComputeDpdk"} {
		if found[name] != nil {
			return found[name], name, nil
		}
	}
	return nil, "", input.Errorf("--role", strings.Join(names, ", "), "%s has several roles, each with CPUs of its own",
		s.file)
}

// parameter is a parameter of a role.
func (s *scanner) parameter(e entry) {
	value, line := scalar(e.value), e.line
	switch e.key {
	case "KernelArgs":
		s.arguments(e.key, s.unquote(e.key, value, line), line)
		s.set(e.key, value, line)
	case "TunedProfileName":
		s.set(e.key, s.unquote(e.key, value, line), line)
	case "IsolCpusList", "HostIsolatedCoreList":
		s.claim(TunedIsolated, e.key, value, list, line)
	case "NovaVcpuPinSet":
		s.set("vcpu_pin_set", value, line)
		s.claim(Guests, e.key, commas(e.value), exclude, line)
	case "NovaComputeCpuDedicatedSet":
		s.set("cpu_dedicated_set", value, line)
		s.claim(Guests, e.key, commas(e.value), exclude, line)
	case "NovaComputeCpuSharedSet":
		s.claim(Emulator, e.key, commas(e.value), exclude, line)
	case "OvsPmdCoreList", "NeutronDpdkCoreList":
		s.set("ovs", value, line)
		s.claim(Forwarding, e.key, value, list, line)
	case "OvsDpdkCoreList", "HostCpusList":
		s.claim(Service, e.key, value, list, line)
	case "ContrailDpdkOptions":
		s.routerOptions(e.key, s.unquote(e.key, value, line), line)
	case "ContrailSettings":
		for _, v := range entries(e.value) {
			s.variable(v.key, s.unquote(v.key, scalar(v.value), v.line), v.line)
			s.misspelt(v.key, v.line, envKeys["container"])
		}
	case "ExtraSysctlSettings":
		if n := child(e.value, "vm.nr_hugepages", "value"); n != nil {
			s.set("vm.nr_hugepages", n.Value, n.Line)
		}
	}
}

// commas joins a value: lists of Nova are one string or a YAML list.
func commas(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.SequenceNode {
		return scalar(n)
	}
	var parts []string
	for _, item := range n.Content {
		parts = append(parts, item.Value)
	}
	return strings.Join(parts, ",")
}

// cpuLists finds the workers' CPUs in NIC templates: cpu_list of contrail_vrouter_dpdk.
func (s *scanner) cpuLists(n *yaml.Node, depth int) {
	if n == nil || depth > 50 || n.Kind == yaml.AliasNode {
		return
	}
	if n.Kind == yaml.MappingNode && scalar(child(n, "type")) == "contrail_vrouter_dpdk" {
		if c := child(n, "cpu_list"); c != nil {
			s.claim(Forwarding, "cpu_list", scalar(c), taskset, c.Line)
		}
	}
	for _, c := range n.Content {
		s.cpuLists(c, depth+1)
	}
}
