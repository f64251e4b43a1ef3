// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

// A look costs CPU time on the host's CPUs. The interval of each part grows until its share of a CPU is below these
// limits: a machine with thousands of threads or interrupts is read every few seconds rather than every second.
const (
	threadShare = 0.005
	restShare   = 0.003
	wholeEvery  = time.Minute     // interval of a full topology.Read
	nameLasts   = 5 * time.Second // then a thread in the way is read again: it may have called execve
)

// scanner reads the running machine with as few files as possible.
type scanner struct {
	workers  cpuset.Set // threads that may run on these CPUs are read in full
	machine  *topology.Machine
	whole    time.Time // time of the last full read
	nextRest time.Time
	seen     map[int]seenThread
	before   map[int]cpuset.Set // previous CPUs of the threads whose CPUs changed since the last look
	threads  time.Time          // next look at threads
}

type seenThread struct {
	mask   string
	thread *topology.Thread // nil: not in the way
	read   time.Time
	round  int64
}

// look returns a new Machine. Its Threads are the workers and all threads that may run on workers' CPUs.
func (l *scanner) look(now time.Time) (*topology.Machine, error) {
	if l.machine == nil || now.Sub(l.whole) >= wholeEvery {
		m, err := topology.Read("/")
		if err != nil {
			return nil, err
		}
		l.machine, l.whole = m, now
		l.nextRest = time.Now().Add(time.Second / 2)
	} else if !now.Before(l.nextRest) {
		begun := cpuTime()
		l.machine = l.machine.Refresh()
		l.nextRest = now.Add(pause(cpuTime()-begun, restShare))
	}
	m := *l.machine
	if now.Before(l.threads) {
		return &m, nil
	}
	begun := cpuTime()
	m.Threads = l.scan(now)
	l.machine.Threads = m.Threads
	l.threads = now.Add(pause(cpuTime()-begun, threadShare))
	return &m, nil
}

// pause returns the time to wait after work so that the work stays below a share of the time. It is half a second
// shorter than computed, so that cheap work is done at each look.
func pause(took time.Duration, share float64) time.Duration {
	return max(time.Second/2, time.Duration(float64(took)/share)-time.Second/2)
}

// cpuTime returns the CPU time that this program has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// scan gets the CPUs of each thread from the kernel and reads only threads in the way from /proc.
func (l *scanner) scan(now time.Time) []topology.Thread {
	if l.seen == nil {
		l.seen = map[int]seenThread{}
	}
	l.before = map[int]cpuset.Set{}
	round := now.UnixNano()
	var touching []topology.Thread
	eachThread(func(pid, tid int) {
		mask, ok := affinity(tid)
		if !ok {
			return
		}
		s, known := l.seen[tid]
		if known && s.mask != mask {
			l.before[tid] = bitsOf(s.mask)
		}
		if !known || s.mask != mask || s.thread != nil && !s.thread.Fixed && now.Sub(s.read) > nameLasts {
			was := s.thread
			s = seenThread{mask: mask, read: now}
			// keep a worker that was moved away
			if bitsOf(mask).Overlaps(l.workers) || was != nil && verify.IsWorker(was) {
				s.thread = l.readThread(pid, tid)
			}
		}
		if s.round = round; s.thread != nil {
			touching = append(touching, *s.thread)
		}
		l.seen[tid] = s
	})
	for tid, s := range l.seen {
		if s.round != round {
			delete(l.seen, tid)
		}
	}
	return touching
}

// readThread returns a thread with the name of its process, or nil when it has ended or is another container's.
func (l *scanner) readThread(pid, tid int) *topology.Thread {
	t, ok := topology.ReadThread(pid, tid)
	if !ok || !l.machine.Owns(&t) {
		return nil
	}
	if t.Process = t.Name; pid != tid {
		t.Process = procfs.Host.Name(pid)
	}
	return &t
}

// eachThread calls one for each thread of the machine.
func eachThread(one func(pid, tid int)) {
	pids, _ := procfs.Host.Processes()
	for _, pid := range pids {
		tids, _ := procfs.Host.Threads(pid) // it may have ended
		for _, tid := range tids {
			one(pid, tid)
		}
	}
}

// affinity is sched_getaffinity(2) for any number of CPUs. It returns the mask as the kernel wrote it.
func affinity(tid int) (mask string, ok bool) {
	var buffer [cpuset.Max / 64]uint64
	n, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid), unsafe.Sizeof(buffer),
		uintptr(unsafe.Pointer(&buffer)))
	if errno != 0 {
		return "", false
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(&buffer)), n)), true
}

// bitsOf returns the CPUs of a mask. Words are little-endian on all supported machines.
func bitsOf(mask string) cpuset.Set {
	var ids []int
	for i := range len(mask) {
		for bit := range 8 {
			if mask[i]&(1<<bit) != 0 {
				ids = append(ids, 8*i+bit)
			}
		}
	}
	return cpuset.Of(ids...)
}
