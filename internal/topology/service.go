// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/corelane/corelane/internal/cpuset"
)

// services reads the settings of programs that move threads and interrupts. A program that is not installed is not
// trouble.
func (r *reader) services() {
	s := &r.m.Services
	r.tuned()
	r.irqbalance()
	s.SystemdAffinity = r.systemdAffinity()
	s.Kubelet = r.kubelet()
	s.Nova = r.firstOf(novaFiles, novaKeys)
	s.VRouter = r.firstOf(vrouterFiles, vrouterKeys)
}

// Paths of Nova's settings: of a package, of TripleO's container and of Kolla's.
var novaFiles = []string{
	"etc/nova/nova.conf", "var/lib/config-data/puppet-generated/nova_libvirt/etc/nova/nova.conf",
	"etc/kolla/nova-compute/nova.conf",
}

// Keys by section; the name in Services.Nova is the key.
var novaKeys = map[string][]string{
	"DEFAULT": {"vcpu_pin_set", "reserved_host_cpus"},
	"compute": {"cpu_dedicated_set", "cpu_shared_set"},
	"libvirt": {"cpu_power_management", "cpu_power_management_strategy"},
}

// Paths of a vRouter's settings: TripleO's interface file, and the environment of its containers.
var vrouterFiles = []string{"etc/sysconfig/network-scripts/ifcfg-vhost0", "etc/contrail/common_vrouter.env"}

var vrouterKeys = map[string][]string{
	"": {"CPU_LIST", "CPU_CORE_MASK", "SERVICE_CORE_MASK", "DPDK_CTRL_THREAD_MASK", "DPDK_COMMAND_ADDITIONAL_ARGS"},
}

// firstOf reads keys from the existing files of a list; the first file that has a key wins.
func (r *reader) firstOf(files []string, keys map[string][]string) map[string]string {
	found := map[string]string{}
	for _, file := range files {
		text, _ := r.text(file, maybe)
		for _, s := range parseSettings(text) {
			if _, known := found[s.key]; !known && slices.Contains(keys[s.section], s.key) {
				found[s.key] = s.value
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// irqbalance reads whether irqbalance runs and which CPUs it is told to avoid (irqbalance(1), environment variables).
func (r *reader) irqbalance() {
	s := &r.m.Services
	for i := range r.m.Threads {
		if t := &r.m.Threads[i]; t.PID == t.TID && t.Name == "irqbalance" {
			s.Irqbalance = true
		}
	}
	for _, file := range []string{"etc/sysconfig/irqbalance", "etc/default/irqbalance"} {
		text, _ := r.text(file, maybe)
		for _, set := range parseSettings(text) {
			var bans cpuset.Set
			var err error
			switch {
			case set.key == "IRQBALANCE_BANNED_CPULIST" && set.value != "-":
				bans, err = cpuset.Parse(set.value)
			case set.key == "IRQBALANCE_BANNED_CPUS" && set.value != "":
				bans, err = cpuset.ParseMask(set.value)
			}
			if err != nil {
				r.trouble(file, "%s: %v", set.key, err)
			}
			s.IrqbalanceBans = s.IrqbalanceBans.Or(bans)
		}
	}
}

// systemdAffinity reads CPUAffinity= of the manager (systemd-system.conf(5)): drop-ins follow the main file, sorted
// by name; a drop-in in /etc hides those with the same name in /run and /usr/lib.
func (r *reader) systemdAffinity() cpuset.Set {
	files := map[string]string{}
	for _, dir := range []string{"usr/lib/systemd", "run/systemd", "etc/systemd"} {
		for _, name := range r.list(dir+"/system.conf.d", "*.conf", maybe) {
			files[name] = path.Join(dir, "system.conf.d", name)
		}
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	order := []string{"etc/systemd/system.conf"}
	for _, name := range names {
		order = append(order, files[name])
	}
	var all cpuset.Set
	for _, file := range order {
		text, _ := r.text(file, maybe)
		for _, s := range parseSettings(text) {
			if s.section != "Manager" || s.key != "CPUAffinity" {
				continue
			}
			set, err := systemdSet(s.value)
			switch {
			case err != nil:
				r.trouble(file, "CPUAffinity: %v", err)
			case set.Empty():
				all = set
			default:
				all = all.Or(set)
			}
		}
	}
	return all
}

// systemdSet parses a list with spaces or commas: "0 10-11,20".
func systemdSet(text string) (cpuset.Set, error) {
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' })
	return cpuset.Parse(strings.Join(words, ","))
}

// Keys of a KubeletConfiguration that decide where pods run.
var kubeletKeys = []string{
	"cpuManagerPolicy", "cpuManagerPolicyOptions", "reservedSystemCPUs", "topologyManagerPolicy",
	"topologyManagerScope", "cpuCFSQuota", "kubeReserved", "systemReserved",
}

// kubelet reads kubelet's settings and the assignments of its CPU manager, as "state.defaultCpuSet" and
// "state.exclusive".
func (r *reader) kubelet() map[string]string {
	found := map[string]string{}
	for _, file := range []string{"var/lib/kubelet/config.yaml", "etc/kubernetes/kubelet.conf",
		"etc/kubernetes/kubelet/kubelet-config.json"} {
		settings, ok := value(r, file, maybe, parseKubelet)
		if ok {
			for key, v := range settings {
				found[key] = v
			}
		}
	}
	state, ok := value(r, "var/lib/kubelet/cpu_manager_state", maybe, parseCPUManager)
	if ok {
		found["state.policyName"], found["state.defaultCpuSet"] = state.PolicyName, state.DefaultCPUSet
		if given := state.given(); !given.Empty() {
			found["state.exclusive"] = given.String()
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// parseKubelet returns the known keys of a KubeletConfiguration, and none for a file of another kind: on most hosts
// kubelet.conf is a kubeconfig.
func parseKubelet(text string) (map[string]string, error) {
	var all map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("is not YAML: %w", err)
	}
	found := map[string]string{}
	if all["kind"] != "KubeletConfiguration" {
		return found, nil
	}
	for _, key := range kubeletKeys {
		switch v := all[key].(type) {
		case nil:
		case string:
			found[key] = v
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			found[key] = string(text)
		}
	}
	return found, nil
}

// cpuManager is the checkpoint of the kubelet's CPU manager (pkg/kubelet/cm/cpumanager/state, version 2).
type cpuManager struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"` // pod, container
}

func parseCPUManager(text string) (s cpuManager, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := cpuset.Parse(s.DefaultCPUSet); err != nil {
		return s, err
	}
	for _, containers := range s.Entries {
		for _, cpus := range containers {
			if _, err := cpuset.Parse(cpus); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// given returns the CPUs of all containers.
func (s cpuManager) given() cpuset.Set {
	var all cpuset.Set
	for _, containers := range s.Entries {
		for _, cpus := range containers {
			set, _ := cpuset.Parse(cpus) // checked by parseCPUManager
			all = all.Or(set)
		}
	}
	return all
}
