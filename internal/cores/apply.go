// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

// Result says how a change ended.
type Result string

// The results. Apply reports Done, Already, Gone, Refused, Failed and Told; Rollback reports Restored, Already,
// Overridden, Gone, Refused and Failed.
const (
	Done       Result = "done"
	Already    Result = "already so"
	Gone       Result = "gone"    // the thread has ended, or the file was removed
	Refused    Result = "refused" // the kernel refuses an optional change; the others still help
	Failed     Result = "failed"
	Told       Result = "not done" // a Note: reported only
	Restored   Result = "restored"
	Overridden Result = "restored over another's" // somebody had changed it since Apply
)

// Outcome is a change and its result.
type Outcome struct {
	Change
	Result Result `json:"result"`
	Text   string `json:"text,omitempty"` // why, in one sentence; empty where Result says it all
}

// Site is the machine on which changes are made, with the journal and the callbacks.
type Site struct {
	Root      string        // "/", or a captured machine for a rehearsal
	Dir       string        // directory of the journal
	KeepGoing bool          // continue after a change that fails, instead of undoing everything
	Report    func(Outcome) // called after each change; may be nil
	// MoveWorker makes corelaned move a worker to a CPU. With nil such changes are refused.
	MoveWorker func(ctx context.Context, worker, cpu int) error
	fault      fault
}

// fault is called between any two durable writes. Tests end the program in it; nil does nothing.
type fault func()

func (f fault) point() {
	if f != nil {
		f()
	}
}

// Apply makes the changes in their order. Each is written to the journal before it is made. The first failure ends
// Apply, which then undoes its own changes (not those of an earlier Apply), unless KeepGoing is set. The error names
// what failed.
func (s *Site) Apply(ctx context.Context, changes []Change) error {
	if err := s.Permitted(changes); err != nil {
		return err
	}
	j, err := openJournal(s.Dir, s.fault)
	if err != nil {
		return err
	}
	defer j.close()
	if err := s.sameRoot(j); err != nil {
		return err
	}
	r := &run{Site: s, host: host{root: s.Root, fault: s.fault}, journal: j, first: len(j.steps)}
	return r.all(ctx, changes)
}

// sameRoot refuses the journal of another machine.
func (s *Site) sameRoot(j *journal) error {
	if len(j.begins) == 0 || j.begins[0].Root == s.Root {
		return nil
	}
	root := j.begins[0].Root
	return input.Errorf(journalPath(s.Dir), "--root "+root, "the journal belongs to the machine at %s", root)
}

// run is one Apply or Rollback.
type run struct {
	*Site
	host
	journal *journal
	first   int // number of steps that the journal had before this run
	begun   bool
	refused map[string]bool // bundles of which a change was refused
}

func (r *run) all(ctx context.Context, changes []Change) error {
	var failures []error
	r.refused = map[string]bool{}
	for _, c := range changes {
		err := ctx.Err()
		if err == nil {
			err = r.one(ctx, c)
		}
		switch {
		case err == nil:
			continue
		case r.KeepGoing && ctx.Err() == nil:
			failures = append(failures, err)
			continue
		}
		// Undoing continues even when ctx has ended.
		back := r.undo(context.WithoutCancel(ctx), r.journal.steps[r.first:])
		return errors.Join(fmt.Errorf("%w; the changes made before were undone", err), back, r.tidy())
	}
	return errors.Join(failures...)
}

// tidy archives a journal in which nothing is left to undo.
func (r *run) tidy() error {
	for _, s := range r.journal.steps {
		if !s.undone {
			return nil
		}
	}
	if r.journal.file == nil || len(r.journal.begins) == 0 {
		return nil
	}
	return r.journal.archive()
}

func (r *run) report(c Change, result Result, format string, args ...any) {
	if r.Report != nil {
		r.Report(Outcome{c, result, fmt.Sprintf(format, args...)})
	}
}

// one makes a change, unless the machine already meets it.
func (r *run) one(ctx context.Context, c Change) error {
	if c.Kind == Note {
		r.report(c, Told, "")
		return nil
	}
	if r.refused[c.Bundle] || r.refused[c.Needs] {
		r.report(c, Refused, "skipped: it has no effect without a change that was refused before")
		return nil
	}
	already, err := r.look(ctx, &c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.missing(ctx, c)
	case err != nil:
		return r.failed(ctx, c, err)
	case already:
		r.report(c, Already, "")
		return nil
	}
	if !r.begun {
		b := begin{time.Now(), r.boot(), r.Root, r.ticks()}
		if err := r.journal.begin(b); err != nil {
			return err
		}
		r.begun = true
	}
	step, err := r.journal.about(c)
	if err != nil {
		return err
	}
	err = r.make(ctx, c)
	r.host.fault.point()
	if err == nil {
		err = r.check(ctx, c)
	}
	if err != nil {
		return r.unmake(ctx, step, err)
	}
	r.report(c, Done, "")
	return r.journal.done(step)
}

// missing handles a change whose thread or file does not exist: a thread that has ended needs no change, but a setting
// that this kernel lacks is a failure.
func (r *run) missing(ctx context.Context, c Change) error {
	if c.PID != 0 {
		r.report(c, Gone, "the thread or process has ended")
		return nil
	}
	return r.failed(ctx, c, errNotInKernel)
}

var errNotInKernel = errors.New("this kernel does not have this setting")

// unmake undoes a step that failed half way.
func (r *run) unmake(ctx context.Context, s *step, why error) error {
	if _, _, err := r.restore(ctx, s); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.What(), why), fmt.Errorf("undoing it failed: %w", err))
	}
	if err := r.journal.undone(s); err != nil {
		return err
	}
	if errors.Is(why, fs.ErrNotExist) {
		return r.missing(ctx, s.Change)
	}
	return r.failed(ctx, s.Change, why)
}

// failed reports a change that could not be made. An optional one is reported as refused, and its bundle is undone;
// any other is an error.
func (r *run) failed(ctx context.Context, c Change, why error) error {
	if !c.Optional {
		r.report(c, Failed, "%v", why)
		return fmt.Errorf("%s: %w", c.What(), why)
	}
	r.report(c, Refused, "%s", plain(c, why))
	if c.Bundle == "" {
		return nil
	}
	r.refused[c.Bundle] = true
	var mine []*step
	for _, s := range r.journal.steps[r.first:] {
		if s.Bundle == c.Bundle {
			mine = append(mine, s)
		}
	}
	return r.undo(ctx, mine)
}

// plain explains what the kernel's errno means for this change.
func plain(c Change, why error) string {
	isIRQ := strings.HasPrefix(c.Path, "proc/irq/")
	switch {
	case isIRQ && errors.Is(why, unix.EIO):
		return "the kernel does not let this interrupt move: it is managed by its driver, or belongs to one CPU"
	case c.Kind == Affinity && errors.Is(why, unix.EINVAL):
		return "the kernel does not let this thread move, or its cpuset contains none of these CPUs"
	}
	return why.Error()
}

// Permitted checks before the first change that the caller has the permissions for all of them.
func (s *Site) Permitted(changes []Change) error {
	if s.Root == "/" && os.Geteuid() != 0 {
		return input.Errorf("apply", "run it as root", "changing CPUs, interrupts and kernel settings needs root")
	}
	for _, c := range changes {
		if c.Kind != Write {
			continue
		}
		err := unix.Access(filepath.Join(s.Root, c.Path), unix.W_OK)
		if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return input.Errorf("/"+c.Path, "run it on the host itself, not in a container", "cannot be written: %v",
				err)
		}
	}
	if s.Root == "/" {
		return mayMove()
	}
	return nil
}

// mayMove checks whether this program may set the CPUs of other users' threads; root in a container may not.
func mayMove() error {
	var head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	if data[0].Effective&(1<<unix.CAP_SYS_NICE) == 0 {
		return input.Errorf("apply", "run it on the host itself, not in a container",
			"CAP_SYS_NICE is missing: threads of other users cannot be moved")
	}
	return nil
}

func parseCPUs(text string) (cpuset.Set, error) {
	set, err := cpuset.Parse(text)
	if err == nil && set.Empty() {
		err = errors.New("the set of CPUs is empty")
	}
	return set, err
}
