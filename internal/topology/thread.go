// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// threads reads all threads of all processes. One that ends meanwhile is left out.
func (r *reader) threads() {
	pids := r.numbered("proc", "", needed)
	for _, pid := range pids {
		dir := fmt.Sprintf("proc/%d/task", pid)
		from := len(r.m.Threads)
		for _, tid := range r.numbered(dir, "", maybe) {
			if t, ok := r.thread(pid, tid); ok {
				r.m.Threads = append(r.m.Threads, t)
			}
		}
		own := r.m.Threads[from:]
		process := ""
		for i := range own {
			if own[i].TID == pid {
				process = own[i].Name
			}
		}
		for i := range own {
			own[i].Process = process
		}
	}
	if len(pids) > 0 && pids[0] != 1 {
		r.trouble("proc/1", "is missing: threads of other users are hidden")
	}
	r.container()
}

func (r *reader) thread(pid, tid int) (Thread, bool) {
	dir := fmt.Sprintf("proc/%d/task/%d", pid, tid)
	stat, ok := taskFile(r, dir, "stat", parseStat)
	if !ok {
		return Thread{}, false
	}
	status, ok := taskFile(r, dir, "status", parseStatus)
	if !ok {
		return Thread{}, false
	}
	cgroup, _ := taskFile(r, dir, "cgroup", func(text string) (string, error) { return parseCgroup(text), nil })
	return Thread{
		TID: tid, PID: pid, Name: stat.name, Kernel: stat.flags&pfKthread != 0, Fixed: stat.flags&pfNoSetaffinity != 0,
		LastCPU: stat.cpu, Policy: stat.policy, Priority: stat.priority, CPUTicks: stat.ticks,
		Allowed: status.allowed, Involuntary: status.involuntary, Cgroup: cgroup,
	}, true
}

// taskFile reads a file of a thread. It is trouble only when the thread is still there.
func taskFile[T any](r *reader, dir, file string, parse func(string) (T, error)) (T, bool) {
	var none T
	text, err := r.tree.Read(dir + "/" + file)
	if missing(err) {
		if _, gone := r.tree.List(dir); gone == nil {
			r.trouble(dir+"/"+file, "is missing")
		}
		return none, false
	}
	var v T
	if err == nil {
		v, err = parse(text)
	}
	if err != nil {
		r.trouble(dir+"/"+file, "%s", reason(err))
		return none, false
	}
	return v, true
}

// Flags of a task, include/linux/sched.h.
const (
	pfKthread       = 0x00200000
	pfNoSetaffinity = 0x04000000
)

type taskStat struct {
	name     string
	flags    int64
	ticks    int64
	cpu      int
	priority int
	policy   string
}

// The kernel's numbers of scheduling policies, include/uapi/linux/sched.h.
var policies = map[int64]string{0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}

// parseStat reads /proc/PID/stat (proc_pid_stat(5)). The name may have spaces and brackets.
func parseStat(text string) (s taskStat, err error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return s, errors.New("is without a name in brackets")
	}
	s.name = strings.ToValidUTF8(text[open+1:end], "?")
	fields := strings.Fields(text[end+1:]) // from field 3, the state, on
	if len(fields) < 39 {
		return s, fmt.Errorf("has %d fields, not 41", len(fields)+2)
	}
	at := func(field int) int64 {
		n, e := large(fields[field-3])
		if e != nil && err == nil {
			err = fmt.Errorf("field %d: %s", field, senseless(fields[field-3], e))
		}
		return n
	}
	s.flags, s.ticks, s.cpu, s.priority = at(9), at(14)+at(15), int(at(39)), int(at(40))
	policy := at(41)
	if s.policy = policies[policy]; s.policy == "" && err == nil {
		err = fmt.Errorf("policy %d is unknown", policy)
	}
	return s, err
}

type taskStatus struct {
	allowed     cpuset.Set
	involuntary int64
}

// parseStatus reads /proc/PID/status (proc_pid_status(5)).
func parseStatus(text string) (s taskStatus, err error) {
	found := false
	for line := range strings.Lines(text) {
		key, val, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		val = strings.TrimSpace(val)
		switch key {
		case "Cpus_allowed_list":
			found = true
			if s.allowed, err = cpuset.Parse(val); err != nil {
				return s, err
			}
		case "nonvoluntary_ctxt_switches":
			if s.involuntary, err = large(val); err != nil {
				return s, errors.New(senseless(val, err))
			}
		}
	}
	if !found {
		return s, errors.New("is without Cpus_allowed_list")
	}
	return s, nil
}

// parseCgroup finds a task's group in /proc/PID/cgroup: that of the cpuset controller of version 1, or the one of version 2.
func parseCgroup(text string) string {
	unified := ""
	for line := range strings.Lines(strings.TrimSpace(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == "cpuset" {
				return parts[2]
			}
		}
		if parts[0] == "0" && parts[1] == "" {
			unified = parts[2]
		}
	}
	return unified
}

// container recognizes a container's view by its own process IDs, where 2 is not the kernel's. Files that mark a container's
// image count only where there are no processes to look at: machines are started from such images, too.
func (r *reader) container() {
	for i := range r.m.Threads {
		if r.m.Threads[i].TID == 2 && r.m.Threads[i].Name == "kthreadd" {
			return
		}
	}
	r.m.Container = len(r.m.Threads) > 0
	for _, mark := range []string{".dockerenv", "run/.containerenv", "run/systemd/container"} {
		if _, ok := r.text(mark, maybe); ok {
			r.m.Container = true
		}
	}
}
