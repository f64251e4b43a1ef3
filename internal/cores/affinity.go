// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
)

// setAffinity is sched_setaffinity(2) for any number of CPUs; unix.SchedSetaffinity handles the first 1,024 only.
func setAffinity(tid int, cpus cpuset.Set) error {
	ids := cpus.IDs()
	if len(ids) == 0 {
		return unix.EINVAL
	}
	const bits = 64
	mask := make([]uint64, ids[len(ids)-1]/bits+1)
	for _, id := range ids {
		mask[id/bits] |= 1 << (id % bits)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), uintptr(len(mask)*8),
		uintptr(unsafe.Pointer(&mask[0])))
	runtime.KeepAlive(mask)
	if errno != 0 {
		return errno
	}
	return nil
}
