// SPDX-License-Identifier: Apache-2.0
package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
)

// TicksBetween is what CPUs did between two looks.
func TicksBetween(a, b map[int]Ticks) map[int]Ticks {
	out := map[int]Ticks{}
	for cpu, n := range b {
		out[cpu] = n.Since(a[cpu])
	}
	return out
}

// LinesBetween is what interrupts counted; lines that did not move are left out.
func LinesBetween(a, b []Line) []Line { return procfs.Since(a, b) }

// TasksBetween has the time and the faults of the window; threads that did nothing are left out. One that is new counts
// from 0.
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

// CgroupBetween has the limits as they are now.
func CgroupBetween(a, b Cgroup) Cgroup {
	if a.Path == b.Path {
		b.Periods, b.Throttled, b.ThrottledNS = b.Periods-a.Periods, b.Throttled-a.Throttled, b.ThrottledNS-a.ThrottledNS
	}
	return b
}

const faultPages = 512

// FaultNS is what a page fault costs on this machine: the mean of some that are made here. 0: there was no memory to
// make them.
func FaultNS() int64 {
	size := faultPages * unix.Getpagesize()
	page, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(page) }()     // ours, and mapped
	_ = unix.Madvise(page, unix.MADV_NOHUGEPAGE) // a kernel without huge pages does not know it
	begin := time.Now()
	for i := 0; i < size; i += unix.Getpagesize() {
		page[i] = 1
	}
	return time.Since(begin).Nanoseconds() / faultPages
}
