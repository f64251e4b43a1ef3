// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"strconv"
	"time"

	"github.com/corelane/corelane/internal/procfs"
)

// Threads of the generator.
const (
	sender = "gen-poll"
	prober = "gen-round-trip" // runs on a router's CPU only between windows
)

// waiting returns, by CPU, how long its poller was ready but did not run since it was started, because something else
// had the CPU. Pollers are the threads of our children that are bound to the routers' CPUs, and the generator's
// sender. It is empty when the kernel does not count this time.
func (p *placement) waiting(root string, parent int) map[int]time.Duration {
	sum := map[int]time.Duration{}
	proc := procfs.Root(root)
	pids, _ := proc.Processes() // none without /proc
	for _, pid := range pids {
		if s, _ := proc.Status(fmt.Sprintf("proc/%d", pid)); s["PPid"] != strconv.Itoa(parent) {
			continue // not a child of ours, or it has ended
		}
		tids, _ := proc.Threads(pid)
		for _, tid := range tids {
			s, _ := proc.Status(procfs.ThreadDir(pid, tid))
			if cpu, ok := p.polls(s); ok {
				text, _ := proc.Read(procfs.ThreadDir(pid, tid) + "/schedstat")
				_, delay, _ := procfs.ParseSchedstat(text)
				sum[cpu] += time.Duration(delay)
			}
		}
	}
	return sum
}

// polls returns the CPU that a thread polls on, and whether it is a poller.
func (p *placement) polls(s map[string]string) (int, bool) {
	cpu, err := strconv.Atoi(s["Cpus_allowed_list"])
	if err != nil {
		return 0, false // more than one CPU
	}
	if s["Name"] == sender {
		return cpu, cpu == p.generator
	}
	return cpu, s["Name"] != prober && len(without([]int{cpu}, p.routers)) == 0
}
