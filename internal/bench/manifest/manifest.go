// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the machine and its settings, on which the figures of a benchmark depend.
package manifest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/procfs"
)

// Read completes a manifest from the files of the machine under root. The caller gives what no file has: the versions
// of DPDK, the compiler and Corelane, the settings, the CPUs that poll (for their governor), and the TSC's frequency.
func Read(root string, given result.Manifest) (result.Manifest, error) {
	m := given
	text, err := procfs.Root(root).Read("proc/cpuinfo")
	if err != nil {
		return m, err
	}
	processors := procfs.ParseCPUInfo(text)
	m.CPU, m.CPUs = modelOf(processors), len(processors)
	m.Hypervisor = slices.ContainsFunc(processors, func(p procfs.Processor) bool { return p.Hypervisor })
	if m.CPUs == 0 {
		return m, fmt.Errorf("%s/proc/cpuinfo lists no processor", strings.TrimSuffix(root, "/"))
	}
	m.Host = line(root, "proc/sys/kernel/hostname")
	m.Kernel = line(root, "proc/sys/kernel/osrelease")
	m.KernelArgs = line(root, "proc/cmdline")
	m.Isolated = line(root, "sys/devices/system/cpu/isolated")
	if m.NoHzFull = line(root, "sys/devices/system/cpu/nohz_full"); m.NoHzFull == "(null)" {
		m.NoHzFull = "" // kernels that support nohz_full print this when it is not used
	}
	m.Governor = governor(root, append(slices.Clone(m.RouterCPUs), m.GeneratorCPU))
	pages, err := Hugepages(root, "nr_hugepages")
	m.Hugepages = map[string]uint64{}
	for kb, n := range pages {
		m.Hugepages[pageSize(kb)] = n
	}
	return m, err
}

// line is the text of a file, empty when this kernel does not have it.
func line(root, path string) string {
	text, _ := os.ReadFile(filepath.Join(root, path))
	return strings.TrimSpace(string(text))
}

// modelOf names the model of the last CPU that has one. On arm64 it consists of numbers.
func modelOf(list []procfs.Processor) string {
	for _, p := range slices.Backward(list) {
		switch {
		case p.Model != "":
			return p.Model
		case p.Implementer != "":
			return "implementer " + p.Implementer + " part " + p.Part
		}
	}
	return ""
}

// governor names the frequency governors of the CPUs that poll; empty when /sys has none.
func governor(root string, cpus []int) string {
	found := map[string]bool{}
	for _, cpu := range cpus {
		if name := line(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu)); name != "" {
			found[name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// Hugepages of each size in kB, as one of the kernel's counters has them: nr_hugepages, free_hugepages. A machine
// without any has no such files.
func Hugepages(root, counter string) (map[uint64]uint64, error) {
	files, err := filepath.Glob(filepath.Join(root, "sys/kernel/mm/hugepages/hugepages-*kB", counter))
	if err != nil {
		return nil, err
	}
	pages := map[uint64]uint64{}
	for _, file := range files {
		size := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "hugepages-"), "kB")
		kb, err := strconv.ParseUint(size, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: size of a page: %w", file, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if pages[kb], err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return pages, nil
}

func pageSize(kb uint64) string {
	switch {
	case kb >= 1<<20 && kb%(1<<20) == 0:
		return fmt.Sprintf("%d GB", kb>>20)
	case kb >= 1<<10 && kb%(1<<10) == 0:
		return fmt.Sprintf("%d MB", kb>>10)
	}
	return fmt.Sprintf("%d kB", kb)
}
