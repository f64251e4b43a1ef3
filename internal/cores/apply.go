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

// Result is what became of a change.
type Result string

// The results. Of Apply: Done, Already, Gone, Refused, Failed, Told. Of Rollback: Restored, Already, Overridden, Gone, Refused, Failed.
const (
	Done       Result = "done"
	Already    Result = "already so"
	Gone       Result = "gone"    // the thread has ended, the file is no more
	Refused    Result = "refused" // the kernel does not want, and the rest is not in vain
	Failed     Result = "failed"
	Told       Result = "not done" // a Note: said, nothing to do
	Restored   Result = "restored"
	Overridden Result = "restored over another's" // somebody had changed it since Apply
)

// Outcome is a change with what became of it.
type Outcome struct {
	Change
	Result Result `json:"result"`
	Text   string `json:"text,omitempty"` // why, in one sentence; empty where Result says it all
}

// Site is where changes are made and who is told.
type Site struct {
	Root      string        // "/", or a captured machine for a rehearsal
	Dir       string        // of the journal
	KeepGoing bool          // a change that fails does not end Apply and take everything back
	Report    func(Outcome) // after each change; may be nil
	// MoveWorker tells corelaned a worker's CPU; nil: no daemon can be told, and such changes are refused.
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

// Apply makes the changes in their order. Each is written down before it is made. At the first that fails it stops and takes
// back what it did (not what an earlier Apply did), unless KeepGoing. The error names what failed.
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
	first   int // steps of the journal before this run
	begun   bool
	refused map[string]bool // bundles
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
		// The way back is walked to its end even when ctx is over.
		back := r.undo(context.WithoutCancel(ctx), r.journal.steps[r.first:])
		return errors.Join(fmt.Errorf("%w; taken back", err), back, r.tidy())
	}
	return errors.Join(failures...)
}

// tidy puts a journal aside that has nothing left to undo.
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

// one makes a change, unless there is nothing to do.
func (r *run) one(ctx context.Context, c Change) error {
	if c.Kind == Note {
		r.report(c, Told, "")
		return nil
	}
	if r.refused[c.Bundle] || r.refused[c.Needs] {
		r.report(c, Refused, "of no use without what was refused before it")
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
	return r.journal.did(step)
}

// missing is a change of something that is not there: an ended thread needs nothing, a setting that this kernel does not
// have cannot be had.
func (r *run) missing(ctx context.Context, c Change) error {
	if c.PID != 0 {
		r.report(c, Gone, "it has ended")
		return nil
	}
	return r.failed(ctx, c, errors.New("this kernel does not have it"))
}

// unmake goes back from a step that failed half way.
func (r *run) unmake(ctx context.Context, s *step, why error) error {
	if _, _, err := r.restore(ctx, s); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.What(), why), fmt.Errorf("going back: %w", err))
	}
	if err := r.journal.undid(s); err != nil {
		return err
	}
	if errors.Is(why, fs.ErrNotExist) {
		return r.missing(ctx, s.Change)
	}
	return r.failed(ctx, s.Change, why)
}

// failed decides whether a failure is one. What is optional is reported as refused, with all of its bundle undone.
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

// plain says in words what the kernel's errno means for this change.
func plain(c Change, why error) string {
	isIRQ := strings.HasPrefix(c.Path, "proc/irq/")
	switch {
	case isIRQ && errors.Is(why, unix.EIO):
		return "the kernel keeps this interrupt where it is: managed by its driver, or per CPU"
	case c.Kind == Affinity && errors.Is(why, unix.EINVAL):
		return "the kernel keeps this thread where it is, or its cpuset has none of these CPUs"
	}
	return why.Error()
}

// Permitted finds out before the first change whether there will be a last one.
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
			return input.Errorf("/"+c.Path, "run it on the host itself, not in a container", "cannot be written: %v", err)
		}
	}
	if s.Root == "/" {
		return mayMove()
	}
	return nil
}

// mayMove tries whether this program may set the CPUs of threads that are not its own: root in a container may not.
func mayMove() error {
	var head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	if data[0].Effective&(1<<unix.CAP_SYS_NICE) == 0 {
		return input.Errorf("apply", "run it on the host itself, not in a container", "CAP_SYS_NICE is missing: threads of others cannot be moved")
	}
	return nil
}

func parseCPUs(text string) (cpuset.Set, error) {
	set, err := cpuset.Parse(text)
	if err == nil && set.Empty() {
		err = errors.New("an empty set of CPUs")
	}
	return set, err
}
