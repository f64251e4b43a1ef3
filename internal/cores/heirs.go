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

// ticks is how long the machine runs, in the unit of a thread's start time.
func (h host) ticks() int64 {
	seconds, err := procfs.Root(h.root).Uptime()
	if err != nil {
		return math.MaxInt64 // nothing counts as begun since
	}
	return int64(seconds * procfs.TicksPerSecond)
}

// heirs gives threads that were begun after Apply the CPUs that their process, or the process that began it, had
// before: they have inherited what Apply gave it, and no step of the journal is about them. One that has CPUs of its
// own keeps those.
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
	c := Change{Kind: Affinity, PID: pid, TID: tid, Name: t.name, Started: t.started, Old: to.String(), New: t.allowed.String(), When: Now,
		Why: "it was begun since, and inherited its CPUs"}
	err := r.setAllowed(pid, tid, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.report(c, Gone, "")
		return nil
	case errors.Is(err, unix.EINVAL): // a kworker, say: its CPUs are those of its workqueue, which are put back themselves
		r.report(c, Refused, "%s", plain(c, err))
		return nil
	case err != nil:
		r.report(c, Failed, "%v", err)
		return fmt.Errorf("%s: %w", c.What(), err)
	}
	r.report(c, Restored, "it was begun since, and had inherited what its parent was given")
	return nil
}

// ancestor is the step of the process itself, or of the nearest one above it.
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
