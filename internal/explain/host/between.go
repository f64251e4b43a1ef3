// SPDX-License-Identifier: Apache-2.0
package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
)

// TicksBetween returns what CPUs did between two snapshots.
func TicksBetween(a, b map[int]Ticks) map[int]Ticks {
	out := map[int]Ticks{}
	for cpu, n := range b {
		out[cpu] = n.Since(a[cpu])
	}
	return out
}

// LinesBetween returns what interrupts counted between two snapshots, without lines that did not change.
func LinesBetween(a, b []Line) []Line { return procfs.Since(a, b) }

// TasksBetween returns the time and the faults of threads between two snapshots, without threads that did nothing. A
// new thread counts from 0.
func TasksBetween(a, b map[int]Task) map[int]Task {
	out := map[int]Task{}
	for tid, t := range b {
		old := a[tid]
		if old.Name == t.Name && old.PID == t.PID && old.Ticks <= t.Ticks {
			t.Ticks, t.Minor, t.Major = t.Ticks-old.Ticks, t.Minor-old.Minor, t.Major-old.Major
		}
		if t.Ticks > 0 || t.Minor+t.Major > 0 || t.State == "T" || t.State == "t" {
			out[tid] = t
		}
	}
	return out
}

// CgroupBetween returns the group that was throttled most in the window, with the present limits; without any that was,
// the process's own group.
func CgroupBetween(a, b []Cgroup) (most Cgroup) {
	for i, c := range b {
		for _, was := range a {
			if was.Path == c.Path {
				c.Periods, c.Throttled, c.ThrottledNS = c.Periods-was.Periods, c.Throttled-was.Throttled,
					c.ThrottledNS-was.ThrottledNS
			}
		}
		c.Shares = b[0].Shares
		if i == 0 || c.ThrottledNS > most.ThrottledNS {
			most = c
		}
	}
	return most
}

const faultPages = 512

// FaultNS measures what a page fault costs on this machine: the mean of some that it causes. It returns 0 if there is
// no memory for that.
func FaultNS() int64 {
	size := faultPages * unix.Getpagesize()
	page, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(page) }()     // cannot fail: the memory is mapped
	_ = unix.Madvise(page, unix.MADV_NOHUGEPAGE) // fails on a kernel without huge pages, which needs no advice
	begin := time.Now()
	for i := 0; i < size; i += unix.Getpagesize() {
		page[i] = 1
	}
	return time.Since(begin).Nanoseconds() / faultPages
}
