// SPDX-License-Identifier: Apache-2.0
package imports

import "strings"

// iniKeys lists the options about CPUs, by section, of nova.conf, systemd's system.conf and TuneD's profiles.
var iniKeys = map[string][]string{
	"DEFAULT":   {"vcpu_pin_set", "reserved_host_cpus"},
	"compute":   {"cpu_dedicated_set", "cpu_shared_set"},
	"Manager":   {"CPUAffinity", "NUMAPolicy", "NUMAMask"},
	"variables": {"isolated_cores", "no_balance_cores"},
	"scheduler": {"isolated_cores", "ps_blacklist", "ps_whitelist", "cgroup_ps_blacklist", "default_irq_smp_affinity"},
	"main":      {"include", "summary"},
}

// homes maps options to their section; in other sections they have no effect.
var homes = map[string]string{"vcpu_pin_set": "DEFAULT", "cpu_dedicated_set": "compute", "cpu_shared_set": "compute",
	"CPUAffinity": "Manager", "isolated_cores": "variables", "no_balance_cores": "variables"}

// ini reads sections of key = value. These files have hundreds of other options, so it reports only misspelt known
// keys.
func (s *scanner) ini(text string) error {
	section := "DEFAULT"
	for line, l := range lines(text) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			section = strings.Trim(l, "[]")
			continue
		}
		key, value, found := strings.Cut(l, "=")
		key = strings.TrimSpace(key)
		if !found {
			continue
		}
		s.option(section, key, s.unquote(key, value, line), line)
	}
	return nil
}

func (s *scanner) option(section, key, value string, line int) {
	switch section + "." + key {
	case "DEFAULT.vcpu_pin_set":
		s.set("vcpu_pin_set", value, line)
		s.claim(Guests, key, value, exclude, line)
	case "compute.cpu_dedicated_set":
		s.set("cpu_dedicated_set", value, line)
		s.claim(Guests, key, value, exclude, line)
	case "compute.cpu_shared_set":
		s.claim(Emulator, key, value, exclude, line)
	case "Manager.CPUAffinity":
		if value != "" { // an empty value clears the list
			s.claim(HostAffinity, key, value, spaced, line)
		}
	case "variables.isolated_cores", "scheduler.isolated_cores":
		if !strings.Contains(value, "${") {
			s.claim(TunedIsolated, key, value, list, line)
		}
	case "variables.no_balance_cores":
		s.claim(Isolcpus, key, value, list, line)
	case "scheduler.ps_blacklist":
		s.set(key, value, line)
	default:
		known := iniKeys[section]
		if home := homes[key]; home != "" && home != section && section != "scheduler" && known != nil {
			s.find(Wrong, line, "["+home+"]", "it is ignored there", "'%s' is in section [%s]", key, section)
			return
		}
		s.misspelt(key, line, known)
	}
}
