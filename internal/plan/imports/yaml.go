// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/corelane/corelane/internal/input"
)

// entry is a key of a mapping with its value and line.
type entry struct {
	key   string
	value *yaml.Node
	line  int
}

// document parses YAML into its root node.
func (s *scanner) document(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil,
			input.Errorf(s.file, "", "is not YAML: %s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "),
				"\n", " "))
	}
	if len(doc.Content) == 0 {
		return nil, input.Errorf(s.file, "", "is empty")
	}
	return doc.Content[0], nil
}

// entries returns the entries of a mapping, or of the mapping to which an alias points; other nodes have none.
func entries(n *yaml.Node) []entry {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var list []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, entry{n.Content[i].Value, n.Content[i+1], n.Content[i].Line})
	}
	return list
}

// child returns the value of a key, or nil.
func child(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var next *yaml.Node
		for _, e := range entries(n) {
			if e.key == key {
				next = e.value
			}
		}
		if n = next; n == nil {
			return nil
		}
	}
	return n
}

func scalar(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Value
}

// kolla reads instances.yaml of contrail-ansible-deployer and globals.yml of kolla-ansible.
func (s *scanner) kolla(text string) error {
	root, err := s.document(text)
	if err != nil {
		return err
	}
	if n := child(root, "default_container_dimensions", "cpuset_cpus"); n != nil {
		s.claim(HostAffinity, "default_container_dimensions", scalar(n), list, n.Line)
	}
	for _, e := range entries(child(root, "contrail_configuration")) {
		s.variable(e.key, s.unquote(e.key, scalar(e.value), e.line), e.line)
	}
	if n := child(root, "kolla_config", "customize", "nova.conf"); n != nil {
		_ = (&scanner{s.Reading, s.file + " (nova.conf)", s.role}).ini(scalar(n))
	}
	return s.instance(root)
}

// instance reads the variables of the requested host with a vRouter, or of the only one.
func (s *scanner) instance(root *yaml.Node) error {
	var hosts []string
	var chosen *yaml.Node
	for _, e := range entries(child(root, "instances")) {
		vrouter := child(e.value, "roles", "vrouter")
		if len(entries(vrouter)) == 0 || s.role != "" && e.key != s.role {
			continue
		}
		hosts = append(hosts, e.key)
		if chosen == nil {
			chosen = vrouter
		} else if fmt.Sprint(flat(chosen)) != fmt.Sprint(flat(vrouter)) {
			return input.Errorf("--role", strings.Join(hosts, ", ")+", ...", "%s has several hosts with different CPUs",
				s.file)
		}
	}
	if chosen == nil && s.role != "" {
		return input.Errorf("--role", "a host of "+s.file, "the file has no host '%s' with a vRouter", s.role)
	}
	for _, e := range entries(chosen) {
		s.variable(e.key, s.unquote(e.key, scalar(e.value), e.line), e.line)
		s.misspelt(e.key, e.line, envKeys["container"])
	}
	return nil
}

func flat(n *yaml.Node) []string {
	var list []string
	for _, e := range entries(n) {
		list = append(list, e.key+"="+scalar(e.value))
	}
	return list
}

// juju reads a bundle or an overlay.
func (s *scanner) juju(text string) error {
	root, err := s.document(text)
	if err != nil {
		return err
	}
	for _, app := range entries(child(root, "applications")) {
		name := app.key + " " + scalar(child(app.value, "charm"))
		for _, o := range entries(child(app.value, "options")) {
			s.charmOption(name, o.key, s.unquote(o.key, scalar(o.value), o.line), o.line)
		}
	}
	return nil
}

// charmOptions lists the options about CPUs of contrail-agent, nova-compute and sysconfig.
var charmOptions = []string{"dpdk", "dpdk-coremask", "dpdk-service-coremask", "dpdk-ctrl-thread-coremask",
	"dpdk-rx-ring-sz", "dpdk-tx-ring-sz", "dpdk-yield-option",
	"cpu-dedicated-set", "cpu-shared-set", "vcpu-pin-set", "isolcpus", "cpu-range", "cpu-affinity-range",
	"irqbalance-banned-cpus", "grub-config-flags", "hugepages"}

func (s *scanner) charmOption(app, key, value string, line int) {
	switch key {
	case "dpdk":
		s.set("juju dpdk", value, line)
	case "dpdk-coremask":
		s.claim(Forwarding, key, value, taskset, line)
	case "dpdk-service-coremask":
		s.claim(Service, key, value, router, line)
	case "dpdk-ctrl-thread-coremask":
		s.claim(Control, key, value, router, line)
	case "dpdk-rx-ring-sz", "dpdk-tx-ring-sz":
		s.ringSize(key, value, line)
	case "dpdk-yield-option":
		s.set("yield", value, line)
	case "cpu-dedicated-set", "vcpu-pin-set":
		s.set(strings.ReplaceAll(key, "-", "_"), value, line)
		s.claim(Guests, key, value, exclude, line)
	case "cpu-shared-set":
		s.claim(Emulator, key, value, exclude, line)
	case "isolcpus":
		s.isolcpus(key, value, line)
	case "cpu-affinity-range":
		s.claim(HostAffinity, key, value, spaced, line)
	case "irqbalance-banned-cpus":
		s.claim(Banned, key, value, mask, line)
	case "grub-config-flags":
		_ = (&scanner{s.Reading, s.file, s.role}).grub(value)
	default:
		if strings.Contains(app, "contrail") {
			s.misspelt(key, line, charmOptions)
		}
	}
}

// kubeletKeys lists the fields of KubeletConfiguration about CPUs.
var kubeletKeys = []string{"cpuManagerPolicy", "cpuManagerPolicyOptions", "reservedSystemCPUs", "topologyManagerPolicy",
	"topologyManagerScope", "memoryManagerPolicy", "cpuManagerReconcilePeriod"}

// kubelet reads a KubeletConfiguration.
func (s *scanner) kubelet(text string) error {
	root, err := s.document(text)
	if err != nil {
		return err
	}
	for _, e := range entries(root) {
		switch e.key {
		case "reservedSystemCPUs":
			s.claim(Reserved, e.key, scalar(e.value), list, e.line)
		case "cpuManagerPolicy", "topologyManagerPolicy":
			s.set(e.key, scalar(e.value), e.line)
		case "cpuManagerPolicyOptions":
			for _, o := range entries(e.value) {
				s.set(o.key, scalar(o.value), o.line)
			}
		default:
			s.misspelt(e.key, e.line, kubeletKeys)
		}
	}
	return nil
}
