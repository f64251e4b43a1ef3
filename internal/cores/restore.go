// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
)

// restore puts back what a step found. It is idempotent, and may be called for a step that was never made.
func (r *run) restore(ctx context.Context, s *step) (Result, string, error) {
	now := s.Change
	if s.Kind == File {
		if err := ignore(os.Remove(r.path(draftOf(s.Path))), fs.ErrNotExist); err != nil {
			return Failed, "", err
		}
	}
	_, err := r.look(ctx, &now)
	if errors.Is(err, fs.ErrNotExist) {
		return Gone, "", nil
	}
	if err != nil {
		return Failed, "", err
	}
	if s.is(now, r.live()) {
		return Already, "", nil
	}
	if err := r.back(ctx, s.Change); err != nil {
		return r.notBack(s.Change, err)
	}
	if s.done && !s.wrote(now) {
		return Overridden, fmt.Sprintf("somebody had changed it since apply, to '%s'", strings.TrimSpace(now.Old)), nil
	}
	return Restored, "", nil
}

// notBack returns the result of a change that could not be undone. It is not a failure when the thread has ended, nor
// when the kernel itself has chosen the thread's CPUs since: a kworker can be moved only between its creation and
// kthread_bind_mask(), which sets PF_NO_SETAFFINITY.
func (r *run) notBack(c Change, why error) (Result, string, error) {
	if c.Kind == Affinity || c.Kind == Join {
		t, err := procfs.Root(r.Root).Thread(c.PID, max(c.TID, c.PID))
		switch {
		case errors.Is(why, fs.ErrNotExist), errors.Is(err, fs.ErrNotExist):
			return Gone, "", nil
		case errors.Is(why, unix.EINVAL) && err == nil && t.Fixed():
			return Refused, "the kernel itself chooses the CPUs of this thread now", nil
		}
	}
	return Failed, "", why
}

// is reports whether now is what the step once found.
func (s *step) is(now Change, live bool) bool {
	switch {
	case s.Kind == Write && s.Form == Controller && live:
		return !s.Form.meets(now.Old, s.New) // other programs may have added controllers
	case s.Kind == Write && live:
		return s.Form.same(s.Old, now.Old)
	}
	switch s.Kind {
	case Affinity, Worker:
		return List.same(s.Old, now.Old)
	case Group, Folder:
		return s.Absent == now.Absent
	}
	return s.Absent == now.Absent && s.Old == now.Old
}

// wrote reports whether now is what the step made.
func (s *step) wrote(now Change) bool {
	switch s.Kind {
	case Write:
		return s.Form.meets(now.Old, s.New)
	case Affinity, Worker:
		return List.same(now.Old, s.New)
	case Group, Folder:
		return true
	case Join:
		return now.Old == s.Path
	}
	return now.Old == s.New
}

// back undoes a change.
func (r *run) back(ctx context.Context, c Change) error {
	switch c.Kind {
	case Write:
		return r.unwrite(c)
	case Affinity:
		return r.pin(c, c.Old)
	case Worker:
		return r.worker(ctx, c, c.Old)
	case Group:
		return r.dissolve(c.Path)
	case Folder:
		return os.Remove(r.path(c.Path))
	case Join:
		return r.join(c, c.Old)
	case File:
		if c.Absent {
			return os.Remove(r.path(c.Path))
		}
		return r.replace(c.Path, c.Old, c.OldMode)
	case Service:
		return r.setUnit(ctx, c.Path, c.Old)
	}
	return fmt.Errorf("kind '%s' is unknown", c.Kind)
}

func (r *run) unwrite(c Change) error {
	switch {
	case c.Absent:
		return os.Remove(r.path(c.Path))
	case !r.live():
		return r.write(c.Path, c.Old)
	}
	text := c.Form.back(c.Old, c.New)
	if strings.TrimSpace(text) == "" {
		text = "\n" // the kernel ignores a write of zero bytes
	}
	if err := r.write(c.Path, text); err != nil {
		return err
	}
	have, err := r.read(c.Path)
	if err == nil && c.Form != Controller && !c.Form.same(have, c.Old) {
		err = fmt.Errorf("'%s' was written, but '%s' is read back", strings.TrimSpace(text), strings.TrimSpace(have))
	}
	return err
}

// dissolve removes a group. Processes and threads that are still in it move to its parent.
func (r *run) dissolve(group string) error {
	if !r.live() {
		return os.RemoveAll(r.path(group))
	}
	for _, file := range []string{"/cgroup.threads", "/cgroup.procs", "/tasks"} {
		text, err := r.read(group + file)
		if err != nil {
			continue // the other version of cgroups
		}
		for id := range strings.FieldsSeq(text) {
			if err := r.write(path.Dir(group)+file, id); ignore(gone(err), fs.ErrNotExist) != nil {
				return err
			}
		}
	}
	return os.Remove(r.path(group))
}
