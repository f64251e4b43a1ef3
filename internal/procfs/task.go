// SPDX-License-Identifier: Apache-2.0
package procfs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Task is /proc/PID/stat, or that of a thread (proc_pid_stat(5)).
type Task struct {
	TID          int
	Name         string // valid UTF-8
	State        byte   // the kernel's letter
	PPID         int
	Flags        int64 // PF_ of include/linux/sched.h
	Minor, Major int64 // page faults
	Ticks        int64 // user and system time
	Started      int64 // ticks after boot: tells a thread from a later one of the same number
	LastCPU      int
	Priority     int // real-time priority
	Nice         int
	Policy       int // SCHED_ of include/uapi/linux/sched.h
}

// Flags of a task, include/linux/sched.h.
const (
	pfKthread       = 0x00200000
	pfNoSetaffinity = 0x04000000
)

// Kernel reports whether it is a thread of the kernel.
func (t *Task) Kernel() bool { return t.Flags&pfKthread != 0 }

// Fixed reports whether the kernel refuses changes of its CPUs.
func (t *Task) Fixed() bool { return t.Flags&pfNoSetaffinity != 0 }

// ParseTask reads a stat file. The name may have spaces and brackets.
func ParseTask(text string) (t Task, err error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return t, errors.New("has no name in brackets")
	}
	const last = 41 // field that is read; the kernel writes 52
	fields := strings.Fields(text[end+1:])
	if len(fields) < last-2 {
		return t, fmt.Errorf("has %d fields, not %d or more", len(fields)+2, last)
	}
	at := func(field int) int64 {
		n, e := strconv.ParseInt(fields[field-3], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("field %d: '%.40s' is not a number", field, strings.ToValidUTF8(fields[field-3], "?"))
		}
		return n
	}
	t = Task{
		Name: strings.ToValidUTF8(text[open+1:end], "?"), State: fields[0][0], PPID: int(at(4)), Flags: at(9),
		Minor: at(10), Major: at(12), Ticks: at(14) + at(15), Started: at(22),
		LastCPU: int(at(39)), Priority: int(at(40)), Nice: int(at(19)), Policy: int(at(41)),
	}
	if t.TID, _ = strconv.Atoi(strings.TrimSpace(text[:open])); t.TID <= 0 {
		return t, errors.New("has no thread id")
	}
	return t, err
}

// ParseStatus reads lines "Key:\tvalue" of a status file.
func ParseStatus(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}

// ParseSchedstat reads how long a thread ran, and how long it was ready to run without a CPU, in ns.
func ParseSchedstat(text string) (ran, waited int64, err error) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return 0, 0, fmt.Errorf("'%.40s' is not a line of schedstat", strings.ToValidUTF8(text, "?"))
	}
	if ran, err = count(f[0]); err != nil {
		return 0, 0, err
	}
	waited, err = count(f[1])
	return ran, waited, err
}

// ParseCgroup finds a controller's group in /proc/PID/cgroup: that of version 1 if the controller has a hierarchy of
// its own, or that of version 2, also for the controller "". Version 0: there is neither.
func ParseCgroup(text, controller string) (path string, version int) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "" && parts[0] == "0":
			path, version = parts[2], 2
		case parts[1] != "" && slices.Contains(strings.Split(parts[1], ","), controller):
			return parts[2], 1
		}
	}
	return path, version
}
