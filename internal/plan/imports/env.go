// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"regexp"
	"slices"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// envKeys lists the known variables: of vRouter's containers, ifcfg-vhost0, TuneD, irqbalance and corelaned.
var envKeys = map[string][]string{
	"container": {"CPU_CORE_MASK", "SERVICE_CORE_MASK", "DPDK_CTRL_THREAD_MASK", "DPDK_COMMAND_ADDITIONAL_ARGS",
		"CPU_LIST", "HUGE_PAGES", "HUGE_PAGES_DIR", "DPDK_MEM_PER_SOCKET", "DPDK_UIO_DRIVER", "AGENT_MODE",
		"NIC_OFFLOAD_ENABLE", "DPDK_ENABLE_VLAN_FWRD", "PHYSICAL_INTERFACE", "VROUTER_GATEWAY"},
	"tuned": {"isolated_cores", "no_balance_cores", "isolated_cores_assert_check"},
	"irqbalance": {"IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS", "IRQBALANCE_ARGS", "IRQBALANCE_ONESHOT",
		"OPTIONS", "ENABLED", "ONESHOT"},
	"corelaned": {"CORELANED_OPTIONS", "HUGEPAGES_MB"},
}

var assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=(.*)$`)

// env reads lines of KEY=VALUE. Environments of containers have many other keys; files of one tool have only its keys.
func (s *scanner) env(text string) error {
	format := s.Formats[len(s.Formats)-1]
	for line, l := range lines(text) {
		m := assignment.FindStringSubmatch(l)
		if m == nil {
			s.find(Note, line, "", "it is ignored", "this line is not KEY=VALUE")
			continue
		}
		s.variable(m[1], s.unquote(m[1], m[2], line), line)
		if !slices.Contains(envKeys[format], m[1]) && (format != "container" || nearest(m[1], envKeys[format]) != "") {
			s.unknown(m[1], line, envKeys[format], Warning)
		}
	}
	return nil
}

// variable reads a variable from any kind of file.
func (s *scanner) variable(key, value string, line int) {
	switch key {
	case "CPU_CORE_MASK":
		s.claim(Forwarding, key, value, taskset, line)
	case "CPU_LIST":
		s.claim(Forwarding, key, value, taskset, line)
	case "SERVICE_CORE_MASK":
		s.claim(Service, key, value, router, line)
	case "DPDK_CTRL_THREAD_MASK":
		s.claim(Control, key, value, router, line)
	case "DPDK_COMMAND_ADDITIONAL_ARGS":
		s.routerOptions(key, value, line)
	case "isolated_cores":
		s.claim(TunedIsolated, key, value, list, line)
	case "no_balance_cores":
		s.claim(Isolcpus, key, value, list, line)
	case "IRQBALANCE_BANNED_CPULIST":
		s.claim(Banned, key, value, list, line)
	case "IRQBALANCE_BANNED_CPUS":
		s.claim(Banned, key, value, mask, line)
	case "CORELANED_OPTIONS":
		s.routerOptions(key, value, line)
	case "AGENT_MODE", "HUGE_PAGES", "DPDK_MEM_PER_SOCKET", "HUGEPAGES_MB":
		s.set(key, value, line)
	}
}

// routerOptions reads command-line options of vRouter and of corelaned, which accepts vRouter's options.
func (s *scanner) routerOptions(key, text string, line int) {
	words := strings.Fields(strings.NewReplacer("=", " ", `\`, "").Replace(text))
	for i := range words {
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		key := key + " " + words[i]
		switch words[i] {
		case "--worker-cpus":
			s.claim(Forwarding, key, value, option, line)
		case "--service-cpus":
			s.claim(Service, key, value, option, line)
		case "--control-cpus":
			s.claim(Control, key, value, option, line)
		case "--service_core_mask":
			s.claim(Service, key, value, router, line)
		case "--dpdk_ctrl_thread_mask":
			s.claim(Control, key, value, router, line)
		case "--vr_dpdk_rx_ring_sz", "--vr_dpdk_tx_ring_sz", "--worker-ring-size":
			s.ringSize(key, value, line)
		case "--yield_option":
			s.set("yield", value, line)
		}
	}
}

// lines yields the lines that are not comments, with their numbers.
func lines(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		n := 0
		for l := range strings.Lines(text) {
			n++
			trimmed := strings.TrimSpace(l)
			if trimmed != "" && trimmed[0] != '#' && trimmed[0] != ';' && !yield(n, strings.TrimRight(l, "\n")) {
				return
			}
		}
	}
}

var ring = (&apiv1.Worker{}).ProtoReflect().Descriptor().Fields().ByName("ring_size")

// ringSize reads a ring size of vRouter or corelaned. vRouter does not check it, and does not start if the ring
// cannot be created.
func (s *scanner) ringSize(key, value string, line int) {
	if value == "" && strings.HasPrefix(key, "dpdk-") {
		return // the charm's notation for the default
	}
	if n := number(value); n < 0 || !limits.Number(ring, uint64(n)) {
		s.find(Wrong, line, "a power of two, 1024 or 2048", "the ring cannot be created, and the router does not "+
			"start", "%s: '%s' is not a power of two", key, value)
		return
	}
	s.set("ring size", value, line)
}
