// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
)

const defaultMemoryMB = 512 // of corelaned

// Reserve is the memory in hugepages that a daemon needs to take over from a running one, and what is free of it, in
// MB.
type Reserve struct {
	Needed, Free int
	total, kib   int // pages of the machine, and their size
}

// ReserveFor reads what a successor of a running corelaned with the same options needs. It needs nothing if the daemon
// was started without hugepages, or if it cannot be read.
func ReserveFor(r procfs.Root, pid int) (s Reserve) {
	text, err := r.Read("proc/meminfo")
	if err != nil {
		return s
	}
	info := procfs.ParseStatus(text)
	pages, _ := strconv.Atoi(info["HugePages_Free"])
	s.total, _ = strconv.Atoi(info["HugePages_Total"])
	s.kib, _ = strconv.Atoi(strings.TrimSuffix(info["Hugepagesize"], " kB"))
	s.Free = pages * s.kib >> 10
	s.Needed = memoryOf(strings.Fields(r.CommandLine(pid)))
	return s
}

func memoryOf(argv []string) int {
	memory := defaultMemoryMB
	if len(argv) == 0 {
		memory = 0
	}
	for i, arg := range argv {
		name, value, given := strings.Cut(arg, "=")
		if !given && i+1 < len(argv) {
			value = argv[i+1]
		}
		switch name {
		case "--": // arguments for DPDK
			return memory
		case "--no-huge":
			return 0
		case "--memory":
			if n, err := strconv.Atoi(value); err == nil {
				memory = n
			}
		}
	}
	return memory
}

// Lacks says what is missing, "" if nothing is.
func (s Reserve) Lacks() string {
	if s.Free >= s.Needed {
		return ""
	}
	return fmt.Sprintf("%d MB of hugepages are free, and a daemon that takes over needs %d MB beside the running one",
		s.Free, s.Needed)
}

// mend is the command that adds the missing pages.
func (s Reserve) mend() string {
	if s.kib == 0 {
		return ""
	}
	return fmt.Sprintf("sysctl vm.nr_hugepages=%d", s.total+((s.Needed-s.Free)<<10+s.kib-1)/s.kib)
}

// Successor checks what an upgrade or restart of a running daemon on a machine needs.
func Successor(s Reserve, m *topology.Machine) Finding {
	ru := rule{id: "memory.successor", group: "Memory",
		title:  "An upgrade or restart finds hugepages for the new daemon",
		source: "docs/guide.md, upgrades",
		why: "The new daemon prepares itself beside the old one, so both need their memory for a moment. Without " +
			"hugepages the new one runs from ordinary pages until the service is stopped and started.",
		check: func(_ *view, r *result) {
			if text := s.Lacks(); text != "" {
				r.warn("%s", text).about("hugepages").Command = s.mend()
				return
			}
			r.pass("%d MB are free, %d MB needed", s.Free, s.Needed)
		}}
	return ru.run(&view{m: m, in: &Intent{}})
}
