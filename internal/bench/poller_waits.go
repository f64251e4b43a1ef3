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
	prober = "gen-round-trip" // comes to a router's CPU between windows only
)

// waiting tells how long what polls on each CPU has been ready to run, but was not run, since it exists: something else
// had the CPU. Pollers are the threads of our children that are bound to the routers' CPUs, and the generator's sender.
// A kernel that does not count this tells nothing.
func (p *placement) waiting(root string, parent int) map[int]time.Duration {
	sum := map[int]time.Duration{}
	proc := procfs.Root(root)
	pids, _ := proc.Processes() // a machine without /proc tells nothing
	for _, pid := range pids {
		if s, _ := proc.Status(fmt.Sprintf("proc/%d", pid)); s["PPid"] != strconv.Itoa(parent) {
			continue // also one that has ended
		}
		tids, _ := proc.Threads(pid)
		for _, tid := range tids {
			s, _ := proc.Status(procfs.ThreadDir(pid, tid))
			if cpu, ok := p.polls(s); ok {
				text, _ := proc.Read(procfs.ThreadDir(pid, tid) + "/schedstat")
				delay, _ := procfs.ParseRunDelay(text)
				sum[cpu] += time.Duration(delay)
			}
		}
	}
	return sum
}

// polls tells on which CPU a thread polls, if it does.
func (p *placement) polls(s map[string]string) (int, bool) {
	cpu, err := strconv.Atoi(s["Cpus_allowed_list"])
	if err != nil {
		return 0, false // several
	}
	if s["Name"] == sender {
		return cpu, cpu == p.generator
	}
	return cpu, s["Name"] != prober && len(without([]int{cpu}, p.routers)) == 0
}
