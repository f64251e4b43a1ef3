// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/input"
)

// Dir holds the journal and the files for the next boot.
const Dir = "/var/lib/corelane/cores"

// record is one line of the journal. It holds exactly one of these: the begin of an Apply, a change that is about to be
// made as step N, the number of a step that was made, or that of a step that was undone.
type record struct {
	Begin  *begin  `json:"begin,omitempty"`
	Step   int     `json:"step,omitempty"`
	Change *Change `json:"change,omitempty"`
	Done   int     `json:"done,omitempty"`
	Undone int     `json:"undone,omitempty"`
}

// begin opens the steps of one Apply.
type begin struct {
	Time time.Time `json:"time"`
	Boot string    `json:"boot"` // settings that do not outlive this boot need no restoring in another
	Root string    `json:"root"`
	// Ticks is the machine's uptime. Threads with a later start were started after Apply.
	Ticks int64 `json:"ticks"`
}

// step is a change of the journal and its state.
type step struct {
	Change
	number       int
	boot         string
	done, undone bool
}

// parseJournal reads lines. good is the length of the whole lines: a last line that was cut short is ignored, because
// its change was never begun. Any other defect is an error, because a damaged journal cannot be rolled back safely.
func parseJournal(text []byte) (steps []*step, begins []begin, good int, err error) {
	for number := 1; ; number++ {
		end := bytes.IndexByte(text[good:], '\n')
		if end < 0 {
			return steps, begins, good, nil
		}
		var r record
		if err := json.Unmarshal(text[good:good+end], &r); err != nil {
			return nil, nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		if steps, begins, err = r.join(steps, begins); err != nil {
			return nil, nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		good += end + 1
	}
}

func (r *record) join(steps []*step, begins []begin) ([]*step, []begin, error) {
	known := func(n int) bool { return n > 0 && n <= len(steps) }
	switch {
	case r.Begin != nil:
		return steps, append(begins, *r.Begin), nil
	case r.Change != nil && len(begins) > 0 && r.Step == len(steps)+1:
		return append(steps, &step{Change: *r.Change, number: r.Step, boot: begins[len(begins)-1].Boot}), begins, nil
	case known(r.Done):
		steps[r.Done-1].done = true
		return steps, begins, nil
	case known(r.Undone):
		steps[r.Undone-1].undone = true
		return steps, begins, nil
	}
	return nil, nil, errors.New("the line is not a record of a journal, or is out of order")
}

// journal is an open journal. Only one program at a time can hold its lock.
type journal struct {
	dir    string
	lock   *os.File
	file   *os.File // nil before the first step
	steps  []*step
	begins []begin
	fault  fault
}

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

// openJournal takes the lock and reads the journal. The lock is flock(2)'s: unlike the existence of a file, it is
// released by the kernel when its holder is killed.
func openJournal(dir string, fault fault) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, input.Errorf("--state-dir", "a directory that can be made and written", "%v", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir, lock: lock, fault: fault}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, input.Errorf(lock.Name(), "wait until it is done", "another apply or rollback is running")
	}
	if err := j.load(); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

func (j *journal) load() error {
	path := journalPath(j.dir)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j.file = f
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	var good int
	if j.steps, j.begins, good, err = parseJournal(text); err != nil {
		return input.Errorf(path, "a journal that was not edited", "%v", err)
	}
	return f.Truncate(int64(good))
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
	}
	j.lock.Close()
}

// begin starts the steps of one Apply.
func (j *journal) begin(b begin) error {
	if j.file == nil {
		f, err := os.OpenFile(journalPath(j.dir), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		j.file = f
		if err := syncDir(j.dir); err != nil {
			return err
		}
	}
	j.begins = append(j.begins, b)
	return j.append(record{Begin: &b}, true)
}

// about records a change that is about to be made. It returns when the record is on disk.
func (j *journal) about(c Change) (*step, error) {
	s := &step{Change: c, number: len(j.steps) + 1, boot: j.begins[len(j.begins)-1].Boot}
	j.steps = append(j.steps, s)
	return s, j.append(record{Step: s.number, Change: &c}, true)
}

func (j *journal) done(s *step) error {
	s.done = true
	return j.append(record{Done: s.number}, false)
}

func (j *journal) undone(s *step) error {
	s.undone = true
	return j.append(record{Undone: s.number}, false)
}

func (j *journal) append(r record, lasting bool) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	j.fault.point()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	j.fault.point()
	if lasting {
		return j.file.Sync()
	}
	return nil
}

// archive renames the journal when nothing in it is left to undo.
func (j *journal) archive() error {
	name := fmt.Sprintf("journal.%s", j.begins[0].Time.UTC().Format("20060102T150405.000000000"))
	if err := os.Rename(journalPath(j.dir), filepath.Join(j.dir, name)); err != nil {
		return err
	}
	return syncDir(j.dir)
}
