// SPDX-License-Identifier: Apache-2.0
package procfs

import (
	"slices"
	"strconv"
	"strings"
)

// Processor is what /proc/cpuinfo says of one CPU. Fields that the architecture does not have are empty.
type Processor struct {
	ID                int
	Model             string // x86: "AMD EPYC 9R14"
	Implementer, Part string // ARM: "0x41", "0xd0c"
	Hypervisor        bool   // x86: the CPU is virtual
}

// ParseCPUInfo reads /proc/cpuinfo: lines "key : value", in which the key "processor" begins the next CPU. CPUs without
// a valid number are left out.
func ParseCPUInfo(text string) (list []Processor) {
	valid := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "processor" {
			id, err := strconv.Atoi(value)
			if valid = err == nil && id >= 0 && id < maxCPU; valid {
				list = append(list, Processor{ID: id})
			}
		}
		if !valid {
			continue
		}
		p := &list[len(list)-1]
		switch key {
		case "model name":
			p.Model = value
		case "CPU implementer":
			p.Implementer = value
		case "CPU part":
			p.Part = value
		case "flags":
			p.Hypervisor = slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return list
}
