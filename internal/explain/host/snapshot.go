// SPDX-License-Identifier: Apache-2.0

// Package host reads what the kernel counts in /proc and /sys, below a root directory: where CPUs spent their time,
// interrupts, threads, the limits of control groups. It changes nothing.
package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/corelane/corelane/internal/procfs"
)

// Snapshot has the counters at one time.
type Snapshot struct {
	CPUs       map[int]Ticks
	Interrupts []Line
	Softirqs   []Line
	Tasks      map[int]Task  // by tid
	Waited     map[int]int64 // ns for which each thread was ready to run without a CPU, by tid
	Cgroups    []Cgroup
	Split      int64         // transparent hugepages that the kernel split, since boot
	Throttled  map[int]int64 // times that a CPU was slowed down for heat, since boot, by CPU
	Unread     []string      // what could not be read, and why
}

// Root is the root directory of a machine's files: "/", or that of a captured machine.
type Root string

func (r Root) proc() procfs.Root { return procfs.Root(r.path()) }

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

// Take takes a snapshot, with the waiting times of the workers, which are threads of process pid.
func (r Root) Take(pid int, workers []int) *Snapshot {
	s := &Snapshot{Waited: map[int]int64{}}
	unread := func(what string, err error) {
		if err != nil {
			s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", what, err))
		}
	}
	for _, file := range []struct {
		name  string
		parse func(string) error
	}{
		{"proc/stat", func(text string) (err error) { s.CPUs, err = procfs.ParseStat(text); return }},
		{"proc/interrupts", func(text string) (err error) {
			s.Interrupts, _, err = procfs.ParseInterrupts(text)
			return
		}},
		{"proc/softirqs", func(text string) (err error) { s.Softirqs, _, err = procfs.ParseInterrupts(text); return }},
	} {
		text, err := r.proc().Read(file.name)
		if err == nil {
			err = file.parse(text)
		}
		unread("/"+file.name, err)
	}
	for _, tid := range workers {
		n, err := r.waited(pid, tid)
		unread(fmt.Sprintf("schedstat of thread %d", tid), err)
		s.Waited[tid] = n
	}
	var err error
	s.Tasks, err = r.tasks()
	unread("/proc", err)
	s.Split, s.Throttled = r.splitPages(), r.throttled()
	s.Cgroups, err = r.cgroups(pid)
	unread("control group", err)
	return s
}

// waited returns for how long a thread was ready to run without a CPU, in ns.
func (r Root) waited(pid, tid int) (int64, error) {
	text, err := r.proc().Read(procfs.ThreadDir(pid, tid) + "/schedstat")
	if err != nil {
		return 0, err
	}
	_, waited, err := procfs.ParseSchedstat(text)
	return waited, err
}

// tasks returns the threads of all processes, without those that end meanwhile.
func (r Root) tasks() (map[int]Task, error) {
	out := map[int]Task{}
	pids, err := r.proc().Processes()
	for _, pid := range pids {
		tids, _ := r.proc().Threads(pid) // it may have ended
		for _, tid := range tids {
			if task, err := r.proc().Thread(pid, tid); err == nil { // otherwise it has ended
				out[task.TID] = taskOf(pid, &task)
			}
		}
	}
	return out, err
}
