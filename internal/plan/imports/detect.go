// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"regexp"
	"slices"
	"strings"
)

var (
	dpvsBlock    = regexp.MustCompile(`(?m)^\s*worker_defs\s*\{`)
	lcoresOption = regexp.MustCompile(`(?:^|\s)--lcores[= ]`)
	bootArgument = regexp.MustCompile(`(?:^|\s)(?:BOOT_IMAGE|root|` +
		`isolcpus|nohz_full|rcu_nocbs|irqaffinity|hugepages|hugepagesz)=`)
	iniSection = regexp.MustCompile(`(?m)^\s*\[(\w+)\]\s*$`)
	yamlKey    = regexp.MustCompile(`(?m)^(?:\s*- )?\s*["']?([A-Za-z_][\w.-]*)["']?:(?:\s|$)`)
)

// yamlKeys maps keys of a YAML mapping to the tool that reads it.
var yamlKeys = []struct {
	format string
	keys   []string
}{
	{"kubelet", []string{"cpuManagerPolicy", "reservedSystemCPUs"}},
	{"juju", []string{"applications"}},
	{"kolla", []string{"instances", "kolla_config", "default_container_dimensions", "contrail_configuration"}},
	{"tripleo", append([]string{"parameter_defaults", "cpu_list", "ContrailDpdkParameters"}, roleKeys[:14]...)},
	{"node", []string{"workers", "ports", "vrfs", "settings"}},
}

// Detect returns the format of a file by its content, or an empty string.
func Detect(text string) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "<"):
		return "libvirt"
	case dpvsBlock.MatchString(text), lcoresOption.MatchString(text):
		return "dpvs"
	case slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool {
		return grubLine.MatchString(l) && !strings.HasPrefix(strings.TrimSpace(l),
			"#")
	}) && !yamlKey.MatchString(text):
		return "grub"
	}
	if format := detectYAML(text); format != "" {
		return format
	}
	if format := detectINI(text); format != "" {
		return format
	}
	if format := detectEnv(text); format != "" {
		return format
	}
	if bootArgument.MatchString(text) {
		return "kernel"
	}
	return ""
}

func detectYAML(text string) string {
	keys := map[string]bool{}
	for _, m := range yamlKey.FindAllStringSubmatch(text, -1) {
		keys[m[1]] = true
	}
	for _, y := range yamlKeys {
		for _, k := range y.keys {
			if keys[k] {
				return y.format
			}
		}
	}
	return ""
}

func detectINI(text string) string {
	for _, m := range iniSection.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "Manager":
			return "systemd"
		case "DEFAULT", "compute", "libvirt":
			return "nova"
		case "scheduler", "main", "variables":
			return "tuned-profile"
		}
	}
	return ""
}

// detectEnv detects a format by its variables. Comments count too, because TuneD's unedited file has only comments.
func detectEnv(text string) string {
	for l := range strings.Lines(text) {
		m := assignment.FindStringSubmatch(strings.TrimLeft(strings.TrimRight(l, "\n"), "# "))
		if m == nil {
			continue
		}
		for _, format := range []string{"container", "tuned", "irqbalance", "corelaned"} {
			if slices.Contains(envKeys[format], m[1]) {
				return format
			}
		}
	}
	return ""
}
