// SPDX-License-Identifier: Apache-2.0
package host

import (
	"time"

	"github.com/corelane/corelane/internal/procfs"
)

// Share says how much of a time a thread ran, and for how much it waited for a CPU.
type Share struct {
	TID, LastCPU int
	Name         string
	Ran, Waited  float64 // 0 to 1
}

// Shares looks at the threads of some processes for a time.
func (r Root) Shares(pids []int, d time.Duration) map[int][]Share {
	type sample struct{ ran, waited int64 }
	look := func() map[int]sample {
		out := map[int]sample{}
		for _, pid := range pids {
			tids, _ := r.Threads(pid) // it may have ended
			for _, tid := range tids {
				text, err := r.proc().Read(procfs.ThreadDir(pid, tid) + "/schedstat")
				ran, waited, err2 := procfs.ParseSchedstat(text)
				if err == nil && err2 == nil {
					out[tid] = sample{ran, waited}
				}
			}
		}
		return out
	}
	begin, before := time.Now(), look()
	time.Sleep(d)
	after, ns := look(), float64(time.Since(begin).Nanoseconds())
	out := map[int][]Share{}
	for _, pid := range pids {
		tids, _ := r.Threads(pid)
		for _, tid := range tids {
			a, had := before[tid]
			b, has := after[tid]
			if task, err := r.proc().Thread(pid, tid); err == nil && had && has {
				out[pid] = append(out[pid], Share{tid, task.LastCPU, task.Name, float64(b.ran-a.ran) / ns,
					float64(b.waited-a.waited) / ns})
			}
		}
	}
	return out
}
