// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/namespace"
)

// TakeDown removes a lab, which may be incomplete. It may be called again when it failed.
func TakeDown(lab string, o Options) error {
	o.defaults()
	if unix.Geteuid() != 0 {
		return errors.New("taking a lab down needs root")
	}
	unlock, err := lock(o.Root)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := open(o.Root, lab)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lab %s is not up", lab)
	}
	if err != nil {
		return err
	}
	return l.tearDown(o.Say)
}

func (l *Ledger) tearDown(say func(string)) error {
	if err := l.setStatus(GoingDown); err != nil {
		return err
	}
	if err := stopAll(l.Processes); err != nil {
		return err
	}
	if others := foreignProcesses(l.Namespaces, l.Processes); len(others) > 0 {
		say("still running, because the lab did not start it: " + strings.Join(others, ", "))
	}
	var errs []error
	for _, name := range slices.Backward(l.Namespaces) {
		errs = append(errs, namespace.Delete(name))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return l.removeFiles()
}

// removeFiles removes the ledger last, so that a second try finds it.
func (l *Ledger) removeFiles() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == filepath.Base(ledgerPath(l.dir)) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(l.dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(l.dir)
}

// Get returns a lab that is on this machine, complete or not.
func Get(lab, root string) (*Lab, error) {
	if root == "" {
		root = Root
	}
	t, err := Find(lab)
	if err != nil {
		return nil, err
	}
	l, err := open(root, lab)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s is not up: corelane lab up %s", lab, lab)
	}
	if err != nil {
		return nil, err
	}
	return &Lab{Topology: t, Ledger: l, say: func(string) {}}, nil
}

// Running lists the labs on this machine.
func Running(root string) ([]*Lab, error) {
	if root == "" {
		root = Root
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*Lab
	for _, e := range entries {
		l, err := Get(e.Name(), root)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// Place returns the namespace of a host, a guest or the wire, and the socket of its corelaned if it has one.
func (l *Lab) Place(name string) (netns, socket string, err error) {
	for _, h := range l.Hosts {
		if h.Name == name && !h.Linux {
			socket = l.Socket(h)
		}
	}
	if slices.Contains(l.Ledger.Namespaces, l.Netns(name)) {
		return l.Netns(name), socket, nil
	}
	return "", "", fmt.Errorf("lab %s has no '%s'; valid: %s", l.Name, name, strings.Join(l.Places(), ", "))
}

// Places are the names of all hosts, guests and the wire.
func (l *Lab) Places() []string {
	var names []string
	for _, ns := range l.Ledger.Namespaces {
		names = append(names, strings.TrimPrefix(ns, l.Netns("")))
	}
	return names
}

// Alive counts the processes of a lab that still run.
func (l *Ledger) Alive() int {
	n := 0
	for _, p := range l.Processes {
		if p.Alive() {
			n++
		}
	}
	return n
}
