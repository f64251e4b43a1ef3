// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// host is a machine that can be changed: with root "/" the one on which this program runs, else the files of a captured
// machine, on which a plan can be rehearsed. There a thread's CPUs are a line of its status file.
type host struct {
	root  string
	fault fault
}

func (h host) live() bool              { return h.root == "/" }
func (h host) path(name string) string { return filepath.Join(h.root, name) }

// read returns a file. The error is fs.ErrNotExist also when the file belongs to a thread that has ended.
func (h host) read(name string) (string, error) { return procfs.Root(h.root).Read(name) }

func (h host) stat(name string) (fs.FileInfo, error) { return os.Stat(h.path(name)) }

// write writes text into a setting. It creates the file in a captured machine only, where no kernel fills a new cgroup.
func (h host) write(name, text string) error {
	flags := os.O_WRONLY | os.O_TRUNC
	if !h.live() {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(h.path(name), flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// thread holds what identifies a thread, and its CPUs.
type thread struct {
	started int64
	name    string
	allowed cpuset.Set
}

// thread reads a thread. The error is fs.ErrNotExist when it has ended.
func (h host) thread(pid, tid int) (t thread, err error) {
	task, err := procfs.Root(h.root).Thread(pid, tid)
	if err != nil {
		return t, err
	}
	t.name, t.started = task.Name, task.Started
	status, err := procfs.Root(h.root).Status(procfs.ThreadDir(pid, tid))
	if err != nil {
		return t, err
	}
	list, found := status[allowedKey]
	if !found {
		return t, fmt.Errorf("no %s in the status of thread %d", allowedKey, tid)
	}
	t.allowed, err = cpuset.Parse(list)
	return t, err
}

// gone maps ESRCH to fs.ErrNotExist: the kernel reports a thread that has ended with either.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fs.ErrNotExist
	}
	return err
}

const allowedKey = "Cpus_allowed_list"

func (h host) setAllowed(pid, tid int, cpus cpuset.Set) error {
	if h.live() {
		return gone(setAffinity(tid, cpus))
	}
	task, err := procfs.Root(h.root).Thread(pid, tid)
	switch {
	case err != nil:
		return err
	case task.Fixed():
		return unix.EINVAL // like sched_setaffinity(2)
	}
	name := procfs.ThreadDir(pid, tid) + "/status"
	status, err := h.read(name)
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, allowedKey+":") {
			line = allowedKey + ":\t" + cpus.String() + "\n"
		}
		out.WriteString(line)
	}
	return h.write(name, out.String())
}

// boot returns the kernel's random ID of this boot.
func (h host) boot() string {
	id, err := h.read("proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(id)
}

// replace replaces a whole file atomically and durably.
func (h host) replace(name, text string, mode fs.FileMode) error {
	path, draft := h.path(name), h.path(draftOf(name))
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	h.fault.point()
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, ignore(os.Remove(draft), fs.ErrNotExist))
	}
	return syncDir(filepath.Dir(path))
}

// draftOf returns the temporary name under which replace writes a file. A program that is killed leaves this file.
func draftOf(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".corelane")
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// unit returns the state of a systemd unit: "active" or "inactive".
func (h host) unit(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", "is-active", name).Output()
	state := strings.TrimSpace(string(out))
	if state == "" {
		return "", fmt.Errorf("systemctl is-active %s: %w", name, err)
	}
	if state != "active" {
		state = "inactive"
	}
	return state, nil
}

func (h host) setUnit(ctx context.Context, name, state string) error {
	verb := map[string]string{"active": "start", "inactive": "stop"}[state]
	if out, err := exec.CommandContext(ctx, "systemctl", verb, name).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s %s: %w: %s", verb, name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
