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

// Root has a directory for each lab.
const Root = "/run/corelane-lab" // /run/corelane ends with corelaned.service

// Ledger lists the parts of a lab. A part is on disk here before it is made. So a part that is listed may not exist,
// but every part that exists is listed.
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

// create makes the run directory of a lab, which must not exist.
func create(root string, t Topology, u Underlay) (*Ledger, error) {
	l := &Ledger{Lab: t.Name, Underlay: u, Status: ComingUp, Since: time.Now().Round(time.Second),
		dir: filepath.Join(root, t.Name)}
	if err := os.Mkdir(l.dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lab %s is up already, or was left incomplete: corelane lab down %s", t.Name, t.Name)
		}
		return nil, err
	}
	return l, l.save()
}

// open reads the ledger of a lab. A directory without one is a lab of which nothing was made yet.
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

// lock lets one command at a time change labs. The kernel releases it when its holder dies.
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
				_ = os.Remove(root) // fails unless it is empty, as the next one does
				_ = os.Remove(filepath.Dir(root))
				_ = f.Close()
			}, nil
		}
		_ = f.Close() // the directory was removed meanwhile
	}
}

func sameFile(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
