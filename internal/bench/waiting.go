// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Threads of the generator.
const (
	sender = "gen-poll"
	prober = "gen-round-trip" // comes to a router's CPU between windows only
)

// waiting tells how long what polls on each CPU has been ready to run, but was not run, since it exists: something else had
// the CPU. Pollers are the threads of our children that are bound to the routers' CPUs, and the generator's sender. A kernel
// that does not count this tells nothing.
func (p *placement) waiting(root string, parent int) map[int]time.Duration {
	sum := map[int]time.Duration{}
	processes, _ := filepath.Glob(filepath.Join(root, "proc/[0-9]*"))
	for _, dir := range processes {
		if status(dir)["PPid"] != strconv.Itoa(parent) {
			continue
		}
		threads, _ := filepath.Glob(filepath.Join(dir, "task/*"))
		for _, t := range threads {
			if cpu, ok := p.polls(status(t)); ok {
				sum[cpu] += runDelay(t)
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

// status of a process or thread; empty when it has gone.
func status(dir string) map[string]string {
	text, _ := os.ReadFile(filepath.Join(dir, "status"))
	s := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		s[name] = strings.TrimSpace(value)
	}
	return s
}

// runDelay is the second number of schedstat.
func runDelay(dir string) time.Duration {
	text, _ := os.ReadFile(filepath.Join(dir, "schedstat"))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(n)
}
