// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// ticks returns the machine's uptime in the unit of a thread's start time.
func (h host) ticks() int64 {
	seconds, err := procfs.Root(h.root).Uptime()
	if err != nil {
		return math.MaxInt64 // no thread counts as started since then
	}
	return int64(seconds * procfs.TicksPerSecond)
}

// heirs restores threads that were started after Apply and inherited the CPUs that Apply gave to their process or to an
// ancestor: they get the CPUs that this process had before. No step of the journal names these threads. A thread whose
// CPUs differ from the inherited ones is not changed.
func (r *run) heirs() error {
	was, since := map[int]*step{}, int64(math.MaxInt64)
	known := map[int]int64{}
	for _, s := range r.journal.steps {
		if s.Kind != Affinity || s.boot != r.boot() {
			continue
		}
		known[s.TID] = s.Started
		if first := was[s.PID]; s.TID == s.PID && first == nil {
			was[s.PID] = s
		}
	}
	for _, b := range r.journal.begins {
		if b.Boot == r.boot() {
			since = min(since, b.Ticks)
		}
	}
	if len(was) == 0 {
		return nil
	}
	pids, err := procfs.Root(r.Root).Processes()
	if err != nil {
		return err
	}
	var failures []error
	for _, pid := range pids {
		tids, _ := procfs.Root(r.Root).Threads(pid) // it may have ended
		for _, tid := range tids {
			t, err := r.thread(pid, tid)
			if err != nil || t.started < since || known[tid] == t.started {
				continue
			}
			if from := r.ancestor(was, pid); from != nil && t.allowed.Equal(setOf(from.New)) {
				failures = append(failures, r.inherit(pid, tid, t, setOf(from.Old)))
			}
		}
	}
	return errors.Join(failures...)
}

func (r *run) inherit(pid, tid int, t thread, to cpuset.Set) error {
	c := Change{Kind: Affinity, PID: pid, TID: tid, Name: t.name, Started: t.started, Old: to.String(),
		New: t.allowed.String(), When: Now, Why: "it was started after apply and inherited its CPUs"}
	err := r.setAllowed(pid, tid, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.report(c, Gone, "")
		return nil
	case errors.Is(err, unix.EINVAL): // for example a kworker: restoring its workqueue's mask moves it
		r.report(c, Refused, "%s", plain(c, err))
		return nil
	case err != nil:
		r.report(c, Failed, "%v", err)
		return fmt.Errorf("%s: %w", c.What(), err)
	}
	r.report(c, Restored, "it was started after apply and had inherited its parent's CPUs")
	return nil
}

// ancestor returns the step of the process itself, or of its nearest ancestor that has one.
func (r *run) ancestor(was map[int]*step, pid int) *step {
	for depth := 0; pid > 0 && depth < 64; depth++ {
		if s := was[pid]; s != nil {
			return s
		}
		process, err := procfs.Root(r.Root).Process(pid)
		if err != nil {
			return nil
		}
		pid = process.PPID
	}
	return nil
}
