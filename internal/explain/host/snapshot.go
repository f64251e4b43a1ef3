// SPDX-License-Identifier: Apache-2.0

// Package host reads what the kernel counts in /proc and /sys, below a root directory: where CPUs spent their time, interrupts,
// threads, the limits of control groups. It changes nothing.
package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Snapshot of the counters at one time.
type Snapshot struct {
	CPUs       map[int]Ticks
	Interrupts []Line
	Softirqs   []Line
	Tasks      map[int]Task // by tid
	Waited     map[int]int64
	Cgroup     Cgroup
	Unread     []string // what could not be read, and why
}

// Root of a machine's files: "/" or a captured one.
type Root string

func (r Root) path(parts ...string) string {
	base := string(r)
	if base == "" {
		base = "/"
	}
	return filepath.Join(append([]string{base}, parts...)...)
}

func (r Root) text(parts ...string) (string, error) {
	b, err := os.ReadFile(r.path(parts...))
	return strings.TrimSpace(string(b)), err
}

// Take a snapshot. Workers are the threads whose waiting times are wanted, of process pid.
func (r Root) Take(pid int, workers []int) *Snapshot {
	s := &Snapshot{Waited: map[int]int64{}}
	unread := func(what string, err error) {
		if err != nil {
			s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", what, err))
		}
	}
	unread("/proc/stat", r.parse("proc/stat", func(b []byte) (err error) { s.CPUs, err = parseStat(bytes.NewReader(b)); return }))
	unread("/proc/interrupts", r.parse("proc/interrupts", func(b []byte) (err error) { s.Interrupts, err = parseCounts(bytes.NewReader(b)); return }))
	unread("/proc/softirqs", r.parse("proc/softirqs", func(b []byte) (err error) { s.Softirqs, err = parseCounts(bytes.NewReader(b)); return }))
	for _, tid := range workers {
		n, err := r.waited(pid, tid)
		unread(fmt.Sprintf("schedstat of thread %d", tid), err)
		s.Waited[tid] = n
	}
	var err error
	s.Tasks, err = r.tasks()
	unread("/proc", err)
	s.Cgroup, err = r.cgroup(pid)
	unread("control group", err)
	return s
}

func (r Root) parse(path string, f func([]byte) error) error {
	b, err := os.ReadFile(r.path(path))
	if err != nil {
		return err
	}
	return f(b)
}

// waited is the time that a thread was ready to run without a CPU, ns (/proc/PID/schedstat).
func (r Root) waited(pid, tid int) (int64, error) {
	text, err := r.text("proc", strconv.Itoa(pid), "task", strconv.Itoa(tid), "schedstat")
	if err != nil {
		return 0, err
	}
	f := strings.Fields(text)
	if len(f) < 2 {
		return 0, fmt.Errorf("'%s' is no schedstat", text)
	}
	return strconv.ParseInt(f[1], 10, 64)
}

// tasks of all processes. Those that end meanwhile are left out.
func (r Root) tasks() (map[int]Task, error) {
	out := map[int]Task{}
	pids, err := os.ReadDir(r.path("proc"))
	for _, p := range pids {
		pid, notPID := strconv.Atoi(p.Name())
		if notPID != nil {
			continue
		}
		tids, _ := os.ReadDir(r.path("proc", p.Name(), "task")) // gone
		for _, t := range tids {
			text, err := r.text("proc", p.Name(), "task", t.Name(), "stat")
			if err != nil {
				continue // gone
			}
			if task, err := parseTask(text); err == nil {
				task.PID = pid
				out[task.TID] = task
			}
		}
	}
	return out, err
}
