// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// threads reads all threads of all processes. Threads that end meanwhile are left out.
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
}

func (r *reader) thread(pid, tid int) (Thread, bool) {
	dir := procfs.ThreadDir(pid, tid)
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
		TID: tid, PID: pid, Name: stat.Name, Kernel: stat.Kernel(), Fixed: stat.Fixed(), LastCPU: stat.LastCPU,
		Policy: policies[stat.Policy], Priority: stat.Priority, CPUTicks: stat.Ticks,
		Allowed: status.allowed, Involuntary: status.involuntary, Cgroup: cgroup,
	}, true
}

// taskFile reads a file of a thread. A missing file is trouble only if the thread still exists.
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

// The kernel's numbers of scheduling policies, include/uapi/linux/sched.h.
var policies = map[int]string{0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}

// parseStat parses a stat file and finds the name of the scheduling policy.
func parseStat(text string) (s procfs.Task, err error) {
	if s, err = procfs.ParseTask(text); err == nil && policies[s.Policy] == "" {
		err = fmt.Errorf("policy %d is unknown", s.Policy)
	}
	return s, err
}

type taskStatus struct {
	allowed     cpuset.Set
	involuntary int64
}

func parseStatus(text string) (s taskStatus, err error) {
	values := procfs.ParseStatus(text)
	allowed, found := values["Cpus_allowed_list"]
	if !found {
		return s, errors.New("has no Cpus_allowed_list")
	}
	if s.allowed, err = cpuset.Parse(allowed); err != nil {
		return s, err
	}
	if switches, found := values["nonvoluntary_ctxt_switches"]; found {
		if s.involuntary, err = large(switches); err != nil {
			return s, errors.New(senseless(switches, err))
		}
	}
	return s, nil
}

// parseCgroup returns the group that decides on which CPUs a task may run.
func parseCgroup(text string) string {
	path, _ := procfs.ParseCgroup(text, "cpuset")
	return path
}
