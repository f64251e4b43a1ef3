// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// A thread that the kernel does not let move is not a failure: kworkers start and end all the time.
func TestHeirThatTheKernelKeeps(t *testing.T) {
	var got []Outcome
	r := &run{Site: &Site{Root: "/", Report: func(o Outcome) { got = append(got, o) }}, host: host{root: "/"}}
	self, err := r.thread(os.Getpid(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	nowhere := cpuset.Of(cpuset.Max - 1) // no machine has this CPU: EINVAL, as for a thread with PF_NO_SETAFFINITY
	if err := r.inherit(os.Getpid(), os.Getpid(), self, nowhere); err != nil || len(got) != 1 ||
		got[0].Result != Refused {
		t.Errorf("%v, %v", err, got)
	}
}

// kworker returns a kernel thread as read before the kernel binds it, and the change that Apply would make.
func kworker() (topology.Thread, []Change) {
	t := topology.Thread{TID: 80, PID: 80, Process: "kworker/u8:3", Name: "kworker/u8:3", Kernel: true,
		Allowed: set("0-3"), Cgroup: "/"}
	return t, []Change{affinity(t, set("0-1"), "")}
}

// bind does what kthread_bind_mask() does with a new kworker after it has appeared in /proc.
func bind(t *testing.T, root string, k topology.Thread, cpus string) {
	t.Helper()
	k.Allowed, k.Fixed = set(cpus), true
	files := map[string]string{}
	task(files, k)
	put(t, root, files)
}

// A kworker that was moved before the kernel bound it cannot be restored, and need not be.
func TestRollbackLeavesBoundKworkers(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	k, changes := kworker()
	files := map[string]string{"proc/sys/kernel/random/boot_id": "b00\n"}
	task(files, k)
	put(t, root, files)
	var results []Result
	report := func(o Outcome) { results = append(results, o.Result) }
	if err := apply(root, changes, dir, report); err != nil {
		t.Fatal(err)
	}
	bind(t, root, k, "3")
	if err := rollback(root, dir, report); err != nil || !slices.Equal(results, []Result{Done, Refused}) {
		t.Errorf("%v, %v", err, results)
	}
	if _, err := os.Stat(journalPath(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal still waits for the kworker: %v", err)
	}
}

// A kworker that the kernel binds while Apply is about to move it is refused, and Apply goes on.
func TestApplyLeavesBoundKworkers(t *testing.T) {
	root := t.TempDir()
	k, changes := kworker()
	put(t, root, map[string]string{"proc/sys/kernel/random/boot_id": "b00\n"})
	bind(t, root, k, "3")
	var results []Result
	err := apply(root, changes, t.TempDir(), func(o Outcome) { results = append(results, o.Result) })
	if err != nil || !slices.Equal(results, []Result{Refused}) {
		t.Errorf("%v, %v", err, results)
	}
}

// A change that cannot be undone is not a failure only if the kernel bound the thread or the thread has ended.
func TestNotBack(t *testing.T) {
	root := t.TempDir()
	free, bound := topology.Thread{TID: 81, PID: 81, Name: "free", Allowed: set("0")},
		topology.Thread{TID: 82, PID: 82, Name: "bound", Allowed: set("0"), Fixed: true}
	files := map[string]string{}
	task(files, free)
	task(files, bound)
	put(t, root, files)
	r := &run{Site: &Site{Root: root}, host: host{root: root}}
	for _, test := range []struct {
		change Change
		why    error
		want   Result
	}{
		{affinity(bound, set("1"), ""), unix.EINVAL, Refused},
		{affinity(bound, set("1"), ""), unix.EPERM, Failed},
		{affinity(free, set("1"), ""), unix.EINVAL, Failed},
		{affinity(free, set("1"), ""), gone(unix.ESRCH), Gone},
		{affinity(topology.Thread{TID: 83, PID: 83}, set("1"), ""), unix.EINVAL, Gone},
		{Change{Kind: Join, PID: 82}, unix.EINVAL, Refused},
		{Change{Kind: Write, Path: "sys/none"}, fs.ErrNotExist, Failed},
	} {
		if got, _, err := r.notBack(test.change, test.why); got != test.want || (err != nil) != (got == Failed) {
			t.Errorf("%s, %v: %s, %v", test.change.What(), test.why, got, err)
		}
	}
}
