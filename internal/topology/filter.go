// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// leftOut replaces a value that a capture leaves out.
const leftOut = "(left-out)"

// filters says for each kind of file what a capture keeps, and how it describes what it leaves out. All other files
// hold numbers and lists of the kernel and are kept unchanged.
var filters = []struct {
	pattern string // for path.Match
	keep    func(text string) (kept, left string)
}{
	{"proc/cmdline", filterKernel},
	{"proc/[0-9]*/cmdline", filterQEMU},
	{"proc/[0-9]*/task/*/status", filterStatus},
	{"proc/[0-9]*/task/*/cgroup", filterCgroup},
	{"proc/self/status", filterStatus},
	{"proc/self/cgroup", filterCgroup},
	{"proc/self/mountinfo", filterMounts},
	{"proc/1/mountinfo", filterMounts},
	{"proc/cpuinfo", filterCPUInfo},
	{"*/libvirt/qemu/*.xml", filterDomain},
	{"var/lib/kubelet/config.yaml", filterKubelet},
	{"etc/kubernetes/kubelet.conf", filterKubelet},
	{"etc/kubernetes/kubelet/kubelet-config.json", filterKubelet},
	{"var/lib/kubelet/cpu_manager_state", filterCPUManager},
	{"*/systemd/system.conf", onlyKeys("CPUAffinity")},
	{"*/systemd/system.conf.d/*.conf", onlyKeys("CPUAffinity")},
	{"usr/lib/systemd/system.conf.d/*.conf", onlyKeys("CPUAffinity")},
	{"etc/*/irqbalance", onlyKeys("IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS")},
}

// filter returns the part of a file that goes into a capture, and a short description of what is left out. The
// description is empty when only irrelevant lines are left out.
func filter(name, text string) (kept, left string) {
	for _, f := range filters {
		if ok, _ := path.Match(f.pattern, name); ok {
			return f.keep(text)
		}
	}
	switch {
	case slices.Contains(novaFiles, name):
		return keepSettings(text, func(s setting) bool { return slices.Contains(novaKeys[s.section], s.key) })
	case slices.Contains(vrouterFiles, name):
		return keepSettings(text, func(s setting) bool { return slices.Contains(vrouterKeys[s.section], s.key) })
	case path.Base(name) == "tuned.conf":
		return onlyKeys("include", "ps_blacklist")(text)
	}
	return text, ""
}

var (
	secretName  = regexp.MustCompile(`(?i)(pass|pwd|secret|token|key|cred|auth|user|login|serial|uuid)`)
	secretValue = regexp.MustCompile(`(?i)(://|@|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-|[0-9a-f]{32})`)
)

// filterKernel leaves out values that may be secret or identify a disk or server, and the arguments of init.
func filterKernel(text string) (kept, left string) {
	var words, gone []string
	for _, word := range cmdlineWords(text) {
		if word == "--" {
			gone = append(gone, "arguments of init")
			break
		}
		name, value, has := strings.Cut(word, "=")
		if has && (secretName.MatchString(name) || secretValue.MatchString(value)) {
			word = name + "=" + leftOut
			gone = append(gone, name)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ") + "\n", strings.Join(gone, ", ")
}

// filterQEMU keeps the guest's name and the queues of its network devices.
func filterQEMU(text string) (kept, left string) {
	q := parseQEMU(text)
	args := []string{"qemu", "-name", "guest=" + q.name}
	for _, n := range q.queues {
		args = append(args, "-netdev", fmt.Sprintf("queues=%d", n))
	}
	return strings.Join(args, "\x00"), "all arguments but the guest's name and queues"
}

// filterDomain keeps what parseDomain reads. It leaves out the whole of a file that cannot be parsed.
func filterDomain(text string) (kept, left string) {
	d, err := parseDomain(text)
	if err != nil {
		return "", "the whole file: it cannot be parsed"
	}
	d.XMLName = xml.Name{Local: "domain"}
	out, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", "the whole file: " + err.Error()
	}
	return string(out) + "\n", "all but the name, vCPUs, pins, memory nodes and queues"
}

func filterKubelet(text string) (kept, left string) {
	settings, err := parseKubelet(text)
	if err != nil {
		return "", "the whole file: it cannot be parsed"
	}
	if len(settings) == 0 {
		return "", "the whole file"
	}
	all := map[string]any{"kind": "KubeletConfiguration"}
	for key, text := range settings {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil || key == "reservedSystemCPUs" {
			v = text
		}
		all[key] = v
	}
	out, err := yaml.Marshal(all)
	if err != nil {
		return "", "the whole file: " + err.Error()
	}
	return string(out), "all but settings of CPUs"
}

func filterCPUManager(text string) (kept, left string) {
	s, err := parseCPUManager(text)
	if err != nil {
		return "", "the whole file: it cannot be parsed"
	}
	if given := s.given(); !given.Empty() {
		s.Entries = map[string]map[string]string{"pods": {"containers": given.String()}}
	}
	out, err := json.Marshal(s)
	if err != nil {
		return "", "the whole file: " + err.Error()
	}
	return string(out) + "\n", "names of pods and containers"
}

func filterStatus(text string) (kept, left string) {
	return keepLines(text, "Cpus_allowed_list:", "nonvoluntary_ctxt_switches:"), ""
}

// filterCgroup keeps the line of the group that parseCgroup finds.
func filterCgroup(text string) (kept, left string) { return "0::" + parseCgroup(text) + "\n", "" }

// filterMounts keeps the root directory's.
func filterMounts(text string) (kept, left string) { return rootMount(text), "" }

func filterCPUInfo(text string) (kept, left string) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		key, val, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "processor", "model name":
			out.WriteString(line)
		case "flags":
			if strings.Contains(val+" ", " hypervisor ") {
				out.WriteString("flags\t: hypervisor\n")
			}
		}
	}
	return out.String(), ""
}

func keepLines(text string, prefixes ...string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			out.WriteString(line)
		}
	}
	return out.String()
}

func onlyKeys(keys ...string) func(string) (kept, left string) {
	return func(text string) (string, string) {
		return keepSettings(text, func(s setting) bool { return slices.Contains(keys, s.key) })
	}
}

// keepSettings returns the matching settings of a file, in their sections.
func keepSettings(text string, match func(setting) bool) (kept, left string) {
	var out strings.Builder
	section, gone := "", 0
	for _, s := range parseSettings(text) {
		if !match(s) {
			gone++
			continue
		}
		if s.section != section {
			fmt.Fprintf(&out, "[%s]\n", s.section)
			section = s.section
		}
		fmt.Fprintf(&out, "%s=%s\n", s.key, s.value)
	}
	if gone > 0 {
		left = fmt.Sprintf("%d other settings", gone)
	}
	return out.String(), left
}
