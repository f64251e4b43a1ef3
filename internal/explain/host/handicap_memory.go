// SPDX-License-Identifier: Apache-2.0
package host

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const mostFar = 0.2 // of a process's hugepages that may be on other nodes

// farMemory looks for hugepages on other NUMA nodes than a CPU.
func (r Root) farMemory(pid, cpu int) (h Handicap, found bool) {
	nodes, _ := filepath.Glob(r.path("sys/devices/system/cpu", fmt.Sprint("cpu", cpu), "node[0-9]*")) // well formed
	f, err := os.Open(r.path("proc", strconv.Itoa(pid), "numa_maps"))
	if err != nil || len(nodes) != 1 {
		return h, false
	}
	defer f.Close()
	home := strings.TrimPrefix(filepath.Base(nodes[0]), "node")
	near, all := int64(0), int64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if !strings.Contains(lines.Text(), " huge ") {
			continue
		}
		kib := int64(0)
		fields := strings.Fields(lines.Text())
		for _, field := range fields {
			if size, ok := strings.CutPrefix(field, "kernelpagesize_kB="); ok {
				kib = count(size)
			}
		}
		for _, field := range fields {
			node, pages, ok := strings.Cut(field, "=")
			if number, isNode := strings.CutPrefix(node, "N"); ok && isNode {
				all += kib * count(pages)
				if number == home {
					near += kib * count(pages)
				}
			}
		}
	}
	return Handicap{What: fmt.Sprintf("%d of %d MiB of the process's hugepages are on other nodes than CPU %d, which "+
			"is on node %s", (all-near)/1024, all/1024, cpu, home),
			Remedy: fmt.Sprintf("reserve hugepages on node %s and start corelaned again", home)},
		float64(all-near) > mostFar*float64(all)
}

// Unmapping returns the commands that switch off what takes memory away from processes, of what is on.
func (r Root) Unmapping() (fixes []string) {
	if text, _ := r.text("proc/sys/kernel/numa_balancing"); text != "" && text != "0" {
		fixes = append(fixes, "sysctl kernel.numa_balancing=0")
	}
	if text, _ := r.text("sys/kernel/mm/ksm/run"); text == "1" {
		fixes = append(fixes, "echo 0 > /sys/kernel/mm/ksm/run")
	}
	return fixes
}

// splitPages reads how many transparent hugepages the kernel has split since boot.
func (r Root) splitPages() int64 {
	text, _ := r.text("proc/vmstat") // a kernel without them has no counters
	keys := parseKeys(text)
	return count(keys["thp_split_page"]) + count(keys["thp_split_pmd"])
}

// Split says that transparent hugepages were split in a window, if the process has memory in such pages.
func (r Root) Split(pid int, n int64) (h Handicap, found bool) {
	text, _ := r.text("proc", strconv.Itoa(pid), "smaps_rollup")
	has := false
	for line := range strings.Lines(text) {
		if kb, ok := strings.CutPrefix(line, "AnonHugePages:"); ok {
			has = strings.TrimSpace(kb) != "0 kB"
		}
	}
	return Handicap{What: fmt.Sprintf("the kernel split %d transparent hugepages, and the process has memory in such "+
		"pages", n), Remedy: "reserve hugepages (vm.nr_hugepages) and start corelaned again: they are never split",
		Passing: true}, has && n > 0
}

// BusySibling says that the other CPUs of a core were busy in a window, in which they used so many ticks.
func (r Root) BusySibling(cpu int, ticks map[int]Ticks, seconds float64) (h Handicap, found bool) {
	core, _ := r.proc().CPUs(fmt.Sprintf("cpu%d/topology/thread_siblings_list", cpu))
	for _, sibling := range core.Without(cpuset.Of(cpu)).IDs() {
		t := ticks[sibling]
		if busy := float64(t.Total()-t.Unused()-t.Steal) / 100 / seconds; busy > mostShared {
			return Handicap{Passing: true, What: fmt.Sprintf("CPU %d, the sibling of CPU %d on the same core, was "+
				"busy for %.0f %% of the time", sibling, cpu, 100*busy),
				Remedy: fmt.Sprintf("keep other work off CPU %d: corelane plan make leaves siblings of workers idle, "+
					"and corelane cores apply keeps threads off them", sibling)}, true
		}
	}
	return h, false
}

const mostShared = 0.2 // of a sibling's time
