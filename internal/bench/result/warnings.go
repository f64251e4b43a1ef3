// SPDX-License-Identifier: Apache-2.0
package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// warnings lists other possible reasons for a difference than the router.
func warnings(a, b *Result) []string {
	var list []string
	for _, r := range []struct {
		name string
		*Result
	}{{"a", a}, {"b", b}} {
		if !r.Complete {
			list = append(list, r.name+" is incomplete: it was interrupted, or a part of it failed")
		}
	}
	if d := differences(&a.Manifest, &b.Manifest); len(d) > 0 {
		list = append(list, "not the same machine or settings: "+strings.Join(d, "; "))
	}
	return list
}

// differences lists how two manifests differ.
func differences(a, b *Manifest) []string {
	var list []string
	add := func(name string, x, y any) {
		if left, right := fmt.Sprint(x), fmt.Sprint(y); left != right {
			list = append(list, fmt.Sprintf("%s %s / %s", name, orNone(left), orNone(right)))
		}
	}
	add("host", a.Host, b.Host)
	add("CPU", a.CPU, b.CPU)
	add("CPUs", a.CPUs, b.CPUs)
	add("kernel", a.Kernel, b.Kernel)
	add("kernel arguments", a.KernelArgs, b.KernelArgs)
	add("isolated CPUs", a.Isolated, b.Isolated)
	add("nohz_full", a.NoHzFull, b.NoHzFull)
	add("governor", a.Governor, b.Governor)
	add("hypervisor", a.Hypervisor, b.Hypervisor)
	add("DPDK", a.DPDK, b.DPDK)
	add("compiler", a.Compiler, b.Compiler)
	add("router CPUs", a.RouterCPUs, b.RouterCPUs)
	add("generator CPU", a.GeneratorCPU, b.GeneratorCPU)
	settings := maps.Clone(a.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	maps.Copy(settings, b.Settings)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		add(name, a.Settings[name], b.Settings[name])
	}
	return list
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return "'" + text + "'"
}
