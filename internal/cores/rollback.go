// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/corelane/corelane/internal/input"
)

// Rollback undoes all changes of the journal, the last one first, and archives the journal when all are undone. What
// somebody else has changed since is restored too, and reported. Threads that have ended are skipped. A change that
// cannot be undone stays in the journal for another Rollback, and the others are still undone. Without a journal
// Rollback does nothing.
func (s *Site) Rollback(ctx context.Context) error {
	if s.Root == "/" && os.Geteuid() != 0 {
		return input.Errorf("rollback", "run it as root", "changing CPUs, interrupts and kernel settings needs root")
	}
	if _, err := os.Stat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil // and the directory is not made
	}
	j, err := openJournal(s.Dir, s.fault)
	if err != nil {
		return err
	}
	defer j.close()
	if j.file == nil {
		return nil
	}
	if len(j.begins) == 0 { // Apply was killed before its first line was whole: it changed nothing
		return os.Remove(journalPath(s.Dir))
	}
	if err := s.sameRoot(j); err != nil {
		return err
	}
	r := &run{Site: s, host: host{root: s.Root, fault: s.fault}, journal: j}
	if err := r.undo(ctx, j.steps); err != nil {
		return err
	}
	if err := r.heirs(); err != nil {
		return err
	}
	return r.tidy()
}

// undo undoes steps, the last one first.
func (r *run) undo(ctx context.Context, steps []*step) error {
	boot := r.boot()
	var failures []error
	for _, s := range slices.Backward(steps) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.undone {
			continue
		}
		result, text, err := Gone, "the machine was rebooted since", error(nil)
		switch {
		case s.boot != boot && !s.lasts():
		case r.endsWithGroup(s):
			result = Restored
		default:
			result, text, err = r.restore(ctx, s)
		}
		r.host.fault.point()
		if err != nil {
			r.report(s.Change, Failed, "%v", err)
			failures = append(failures, fmt.Errorf("%s: %w", s.What(), err))
			continue
		}
		r.report(s.Change, result, "%s", text)
		if err := r.journal.undone(s); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// lasts reports whether a change outlives a reboot.
func (c *Change) lasts() bool { return c.Kind == File || c.Kind == Folder }

// endsWithGroup reports whether a setting belongs to a cgroup that Apply created: it ends with the group, and the
// kernel does not let it be emptied while threads are in the group. A partition is undone first, or its threads would
// have no CPU when they leave.
func (r *run) endsWithGroup(s *step) bool {
	dir, file := path.Split(s.Path)
	if s.Kind != Write || file == "cpuset.cpus.partition" {
		return false
	}
	return slices.ContainsFunc(r.journal.steps, func(g *step) bool {
		return g.Kind == Group && g.Absent && !g.undone && g.Path+"/" == dir
	})
}
