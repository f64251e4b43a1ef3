// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/bench/manifest"
)

// FreeHugepages in MB, that a process can still take.
func FreeHugepages(root string) (int, error) {
	kilobytes := uint64(0)
	pages, err := manifest.Hugepages(root, "free_hugepages")
	for kb, n := range pages {
		kilobytes += kb * n
	}
	return int(kilobytes >> 10), err
}

// cpuTime of a CPU since boot, in ticks.
type cpuTime struct{ all, idle uint64 }

func readCPUTimes(root string) (map[int]cpuTime, error) {
	text, err := os.ReadFile(filepath.Join(root, "proc/stat"))
	if err != nil {
		return nil, err
	}
	return parseCPUTimes(string(text))
}

// parseCPUTimes of /proc/stat: "cpu1 user nice system idle iowait irq softirq steal guest guest_nice".
func parseCPUTimes(text string) (map[int]cpuTime, error) {
	const idle, guest = 3, 8 // guests' time is in user already
	times := map[int]cpuTime{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < guest || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		cpu, err := strconv.Atoi(fields[0][3:])
		if err != nil {
			return nil, fmt.Errorf("/proc/stat: '%s': %w", fields[0], err)
		}
		var t cpuTime
		for i, field := range fields[1:min(len(fields), guest+1)] {
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("/proc/stat: %s: %w", fields[0], err)
			}
			t.all += n
			if i == idle || i == idle+1 {
				t.idle += n
			}
		}
		times[cpu] = t
	}
	return times, nil
}

const busyShare = 0.05 // of a CPU's time that others may take

// busy says which of the CPUs somebody else uses.
func busy(before, after map[int]cpuTime, list []int) []string {
	var notes []string
	for _, cpu := range list {
		all, idle := after[cpu].all-before[cpu].all, after[cpu].idle-before[cpu].idle
		if all == 0 {
			continue
		}
		if share := 1 - float64(idle)/float64(all); share > busyShare {
			notes = append(notes, fmt.Sprintf("CPU %d was busy %.0f %% of the time before the benchmark began: other processes disturb it", cpu, 100*share))
		}
	}
	return notes
}

// doubts are the reasons to trust the figures less.
func doubts(root string, c cpus, p placement, memory int, watch time.Duration) ([]string, error) {
	var notes []string
	for _, cpu := range append(slices.Clone(p.routers), p.generator) {
		if !slices.Contains(c.isolated, cpu) {
			notes = append(notes, fmt.Sprintf("CPU %d is not isolated: the kernel may run other work on it", cpu))
		}
	}
	for _, cpu := range p.routers {
		if slices.Contains(siblings(root, cpu), p.generator) {
			notes = append(notes, fmt.Sprintf("CPUs %d and %d are threads of one core", cpu, p.generator))
		}
	}
	if memory == 0 {
		notes = append(notes, "no hugepages are free: routers run without and are slower. To have some: tools/with-hugepages.sh 2048 -- corelane bench ...")
	}
	before, err := readCPUTimes(root)
	if err != nil {
		return nil, err
	}
	time.Sleep(watch)
	after, err := readCPUTimes(root)
	return append(notes, busy(before, after, append(slices.Clone(p.routers), p.generator))...), err
}

// siblings of a CPU: hardware threads of its core. A machine that does not tell has none.
func siblings(root string, cpu int) []int {
	text, err := os.ReadFile(filepath.Join(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
	if err != nil {
		return nil
	}
	list, _ := ParseCPUs(string(text))
	return without(list, []int{cpu})
}
