// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Root is where labs live; a directory each.
const Root = "/run/corelane/lab"

// Ledger is what a lab consists of. It is on disk before the thing that it names is made: what it names may not exist
// (yet, or any more), but nothing exists that it does not name.
type Ledger struct {
	Lab        string    `json:"lab"`
	Underlay   Underlay  `json:"underlay"`
	Status     string    `json:"status"` // coming up, up, going down
	Since      time.Time `json:"since"`
	Namespaces []string  `json:"namespaces"`
	Processes  []Process `json:"processes"`

	dir string
}

// States of a lab.
const (
	ComingUp  = "coming up"
	Up        = "up"
	GoingDown = "going down"
)

func ledgerPath(dir string) string { return filepath.Join(dir, "state.json") }

// create makes the run directory of a lab. There must be none.
func create(root string, t Topology, u Underlay) (*Ledger, error) {
	l := &Ledger{Lab: t.Name, Underlay: u, Status: ComingUp, Since: time.Now().Round(time.Second), dir: filepath.Join(root, t.Name)}
	if err := os.Mkdir(l.dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lab %s is up already, or was left half way: corelane lab down %s", t.Name, t.Name)
		}
		return nil, err
	}
	return l, l.save()
}

// open reads the ledger of a lab. A directory without one was left before anything was made.
func open(root, lab string) (*Ledger, error) {
	l := &Ledger{Lab: lab, Status: ComingUp, dir: filepath.Join(root, lab)}
	if _, err := os.Stat(l.dir); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(ledgerPath(l.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ledgerPath(l.dir), err)
	}
	return l, nil
}

// save replaces the file as a whole: a crash leaves the old one or the new one.
func (l *Ledger) save() error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	tmp := ledgerPath(l.dir) + ".new"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, ledgerPath(l.dir))
}

func (l *Ledger) setStatus(status string) error {
	l.Status = status
	return l.save()
}

// lock lets one command at a time change labs. The kernel frees it when its holder dies.
func lock(root string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return nil, err
		}
		f, err := os.Open(root)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			_ = f.Close()
			return nil, err
		}
		if sameFile(f, root) {
			return func() {
				_ = os.Remove(root) // when it is empty; and above it when that is
				_ = os.Remove(filepath.Dir(root))
				_ = f.Close()
			}, nil
		}
		_ = f.Close() // somebody removed it while we waited
	}
}

func sameFile(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
