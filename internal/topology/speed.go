// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
)

// slowBelow is the part of the fastest CPU's speed, in percent, below which a CPU counts as slow. Clocks that differ
// less are the same kind of core.
const slowBelow = 90

// Speed compares a CPU with the fastest one of its machine.
type Speed struct {
	Percent  int  // of the fastest; 100 if the machine does not say
	Slow     bool // of a slower kind: an efficient core, or one with a lower clock
	Favoured bool // reaches the highest clock among the cores of the fastest kind, which most of them do not
}

// types are the kinds of cores of a hybrid Intel CPU, with the PMUs whose file "cpus" lists them.
var types = map[string]string{"cpu_core": "performance", "cpu_atom": "efficient", "cpu_lowpower": "low-power"}

// coreTypes reads the kind of each CPU.
func (r *reader) coreTypes() {
	for pmu, kind := range types {
		set, _ := value(r, "sys/devices/"+pmu+"/cpus", maybe, cpuset.Parse)
		for i := range r.m.CPUs {
			if set.Has(r.m.CPUs[i].ID) {
				r.m.CPUs[i].Type = kind
			}
		}
	}
}

// speed reads what the firmware and the drivers say about a CPU's speed.
func (r *reader) speed(c *CPU) {
	dir := fmt.Sprintf("%s/cpu%d/", cpuDir, c.ID)
	c.MaxKHz, _ = value(r, dir+"cpufreq/cpuinfo_max_freq", maybe, number)
	c.BaseKHz, _ = value(r, dir+"cpufreq/base_frequency", maybe, number)
	c.Capacity, _ = value(r, dir+"cpu_capacity", maybe, number)
	c.HighestPerf, _ = value(r, dir+"acpi_cppc/highest_perf", maybe, number)
}

// Speeds compares the online CPUs. The kernel's capacity of a CPU is used if there is one, else its clocks: the lower
// of the highest and the guaranteed one, because a worker polls all the time.
func (m *Machine) Speeds() map[int]Speed {
	var online []CPU
	hybrid := false
	for _, c := range m.CPUs {
		if c.Online {
			online = append(online, c)
			hybrid = hybrid || c.Type == types["cpu_core"]
		}
	}
	percent := ratios(online, func(c CPU) int { return c.Capacity })
	if percent == nil {
		most := ratios(online, func(c CPU) int { return c.MaxKHz })
		base := ratios(online, func(c CPU) int { return c.BaseKHz })
		percent = map[int]int{}
		for _, c := range online {
			percent[c.ID] = min(percentOf(most, c.ID), percentOf(base, c.ID))
		}
	}
	speeds, ranks := map[int]Speed{}, map[[2]int][]int{}
	fast := 0
	for _, c := range online {
		s := Speed{Percent: percent[c.ID]}
		s.Slow = s.Percent < slowBelow || hybrid && c.Type != types["cpu_core"]
		speeds[c.ID] = s
		if !s.Slow {
			fast++
			rank := [2]int{s.Percent, c.HighestPerf}
			ranks[rank] = append(ranks[rank], c.ID)
		}
	}
	order := slices.SortedFunc(maps.Keys(ranks), func(a, b [2]int) int { return slices.Compare(b[:], a[:]) })
	if len(order) > 1 && 2*len(ranks[order[0]]) < fast {
		for _, id := range ranks[order[0]] {
			speeds[id] = Speed{Percent: speeds[id].Percent, Favoured: true}
		}
	}
	return speeds
}

// ratios returns a value of each CPU in percent of the highest, or nil if a CPU lacks it.
func ratios(cpus []CPU, of func(CPU) int) map[int]int {
	most := 0
	for _, c := range cpus {
		most = max(most, of(c))
	}
	all := map[int]int{}
	for _, c := range cpus {
		if of(c) <= 0 {
			return nil
		}
		all[c.ID] = int(int64(of(c)) * 100 / int64(most))
	}
	return all
}

// percentOf returns the ratio of a CPU, 100 if it is not known.
func percentOf(ratio map[int]int, id int) int {
	if ratio == nil {
		return 100
	}
	return ratio[id]
}
