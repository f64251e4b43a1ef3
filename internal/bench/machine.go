// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/bench/manifest"
	"github.com/corelane/corelane/internal/procfs"
)

// FreeHugepages is the size of the free hugepages in MB.
func FreeHugepages(root string) (int, error) {
	kilobytes := uint64(0)
	pages, err := manifest.Hugepages(root, "free_hugepages")
	for kb, n := range pages {
		kilobytes += kb * n
	}
	return int(kilobytes >> 10), err
}

func readCPUTimes(root string) (map[int]procfs.CPUTime, error) {
	text, err := procfs.Root(root).Read("proc/stat")
	if err != nil {
		return nil, err
	}
	times, err := procfs.ParseStat(text)
	if err != nil {
		err = fmt.Errorf("/proc/stat: %w", err)
	}
	return times, err
}

const busyShare = 0.05 // share of a CPU's time that other work may have

// busy names the CPUs of list that other work uses.
func busy(before, after map[int]procfs.CPUTime, list []int) []string {
	var notes []string
	for _, cpu := range list {
		did := after[cpu].Since(before[cpu])
		if did.Total() == 0 {
			continue
		}
		if share := 1 - float64(did.Unused())/float64(did.Total()); share > busyShare {
			notes = append(notes, fmt.Sprintf("CPU %d was busy %.0f %% of the time before the benchmark began: other "+
				"processes disturb it",
				cpu, 100*share))
		}
	}
	return notes
}

// doubts lists what may disturb the figures on this machine.
func doubts(root string, c cpus, p placement, memory int, watch time.Duration) ([]string, error) {
	var notes []string
	for _, cpu := range append(slices.Clone(p.routers), p.generator) {
		if !slices.Contains(c.isolated, cpu) {
			notes = append(notes, fmt.Sprintf("CPU %d is not isolated: the kernel may run other work on it", cpu))
		}
	}
	for _, cpu := range p.routers {
		if slices.Contains(siblings(root, cpu), p.generator) {
			notes = append(notes, fmt.Sprintf("CPUs %d and %d are hardware threads of one core", cpu, p.generator))
		}
	}
	if memory == 0 {
		notes = append(notes, "no hugepages are free: the routers run without them and are slower. "+
			"To have some: tools/with-hugepages.sh 2048 -- corelane bench ...")
	}
	before, err := readCPUTimes(root)
	if err != nil {
		return nil, err
	}
	time.Sleep(watch)
	after, err := readCPUTimes(root)
	return append(notes, busy(before, after, append(slices.Clone(p.routers), p.generator))...), err
}

// siblings returns the hardware threads of a CPU's core; none when /sys does not say.
func siblings(root string, cpu int) []int {
	list, _ := cpuList(root, fmt.Sprintf("cpu%d/topology/thread_siblings_list", cpu))
	return without(list, []int{cpu})
}
