// SPDX-License-Identifier: Apache-2.0
package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/wait"
)

// One spinning thread is the worker; another one on the same CPU preempts it.
func TestSwitchesAreSeen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	var one unix.CPUSet
	one.Set(0)
	var stop atomic.Bool
	tid := make(chan int)
	spin := func() {
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		tid <- unix.Gettid()
		for !stop.Load() {
		}
	}
	go spin()
	worker := <-tid
	go spin()
	hog := <-tid
	defer stop.Store(true)
	w, err := Watch(os.Getpid(), []Target{{TID: worker}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var hogged, slices, gaps int64
	if err := wait.Patiently(t.Context(), func() (bool, error) { // on a busy machine, neither may run for a while
		hogged, slices, gaps = look(t, w, worker, hog)
		filled := slices >= gaps*9/10 && slices <= gaps*11/10 // by the threads that ran in the gaps
		return hogged > 0 && filled, nil
	}); err != nil {
		t.Errorf("gaps of %d ns, filled with %d ns of threads, %d ns of them of the other one", gaps, slices, hogged)
	}
}

// look watches one window: how long the hog and all other threads had the worker's CPU, and how long the gaps were.
func look(t *testing.T, w *Watcher, worker, hog int) (hogged, slices, gaps int64) {
	t.Helper()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	win, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range win.Sums {
		switch {
		case s.Kind == KindThread && s.Worker == worker:
			slices += s.NS
			if s.ID == hog {
				hogged += s.NS
			}
		case s.Kind == KindGap && s.Worker == worker:
			gaps += s.NS
		}
	}
	for _, g := range win.Gaps {
		if g.Worker != worker || g.NS < 0 || g.From < 0 {
			t.Errorf("gap %+v", g)
		}
	}
	return hogged, slices, gaps
}

// A worker that is moved away and back was on another CPU in between, and the thread that moved it is known.
func TestMovesAreSeen(t *testing.T) {
	if os.Geteuid() != 0 || runtime.NumCPU() < 2 {
		t.Skip("needs root and two CPUs")
	}
	var home, other unix.CPUSet
	home.Set(0)
	other.Set(1)
	var stop atomic.Bool
	defer stop.Store(true)
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &home); err != nil {
			t.Error(err)
		}
		tid <- unix.Gettid()
		for !stop.Load() {
		}
	}()
	worker := <-tid
	w, err := Watch(os.Getpid(), []Target{{TID: worker}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const away = 50 * time.Millisecond
	var elsewhere, calls int64
	if err := wait.Patiently(t.Context(), func() (bool, error) { // it may have waited for its CPU when it was moved
		elsewhere, calls = 0, 0
		if err := w.Begin(); err != nil {
			return false, err
		}
		for _, set := range []*unix.CPUSet{&other, &home} {
			if err := unix.SchedSetaffinity(worker, set); err != nil {
				return false, err
			}
			time.Sleep(away)
		}
		win, err := w.End()
		if err != nil {
			return false, err
		}
		for _, s := range win.Sums {
			if s.Kind == KindGap && s.Why == WhyMoved {
				elsewhere += s.NS
			}
			if s.Kind == KindAffinity && s.Worker == worker && s.PID == os.Getpid() {
				calls += s.Count
			}
		}
		return elsewhere >= int64(away)*9/10 && calls == 2, nil
	}); err != nil {
		t.Errorf("elsewhere for %d ns, moved by %d calls: %v", elsewhere, calls, err)
	}
}

// A worker that waits for its CPU when the watch begins, and gets next to nothing of it, was away from the beginning.
func TestWorkerThatNeverRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	var one unix.CPUSet
	one.Set(0)
	var stop atomic.Bool
	defer stop.Store(true)
	tids := make(chan int)
	go func() { // with SCHED_IDLE it gets next to nothing beside the other one
		runtime.LockOSThread()
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		if err = errors.Join(err, unix.SchedSetaffinity(0, &one)); err != nil {
			t.Error(err)
		}
		tids <- unix.Gettid()
		for !stop.Load() {
		}
	}()
	worker := <-tids
	go func() {
		runtime.LockOSThread()
		ordinary := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL} // as this program may not be
		err := unix.SchedSetAttr(0, &ordinary, 0)
		if err = errors.Join(err, unix.SchedSetaffinity(0, &one)); err != nil {
			t.Error(err)
		}
		tids <- unix.Gettid()
		for !stop.Load() {
		}
	}()
	hog := <-tids
	w, err := Watch(os.Getpid(), []Target{{TID: worker}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var win *Window
	if err := wait.Patiently(t.Context(), func() (bool, error) { // a watch may begin in one of the worker's few slices
		if err := w.Begin(); err != nil {
			return false, err
		}
		begin := time.Now()
		time.Sleep(200 * time.Millisecond)
		window := time.Since(begin).Nanoseconds()
		if win, err = w.End(); err != nil {
			return false, err
		}
		seen, away := false, int64(0)
		for _, s := range win.Sums {
			seen = seen || s.Kind == KindThread && s.ID == hog && s.Worker == worker && s.NS > 0
		}
		for _, g := range win.Gaps { // one of them has not ended
			away += g.NS
		}
		return seen && away > window/2, nil
	}); err != nil {
		t.Errorf("the worker did not run: %v: %+v", err, win)
	}
}

// A worker whose control group is frozen is not asleep, and the shell that freezes it is known, with its parent.
func TestFreezersAreSeen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	group := "/sys/fs/cgroup/unified" // beside version 1
	if _, err := os.Stat(group); err != nil {
		group = "/sys/fs/cgroup"
	}
	group += fmt.Sprint("/corelane-test-", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("needs control groups with a freezer: ", err)
	}
	defer func() {
		for range 100 { // a process that was killed leaves it in a moment
			if os.Remove(group) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	worker := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = worker.Process.Kill() // it has not ended
		_ = worker.Wait()
	}()
	pid := worker.Process.Pid
	if err := os.WriteFile(group+"/cgroup.procs", []byte(fmt.Sprint(pid)), 0); err != nil {
		t.Fatal(err)
	}
	if err := wait.Patiently(t.Context(), func() (bool, error) { // taskset has become sh
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return string(name) == "sh\n", err
	}); err != nil {
		t.Fatal(err)
	}
	w, err := Watch(pid, []Target{{TID: pid}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "cd "+group+"; echo 1 >cgroup.freeze; until grep -q 'frozen 1' cgroup.events; do "+
		"sleep 0.01; done; sleep 0.2; echo 0 >cgroup.freeze; sleep 0.3")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(text))
	}
	win, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	who, frozen := 0, int64(0)
	for _, s := range win.Sums {
		if s.Kind == KindFreezer && s.Count == 2 && s.Name == "sh" && s.Parent == os.Getpid() {
			who = s.PID
		}
		if s.Kind == KindGap && s.Worker == pid && s.Why == WhyFrozen {
			frozen += s.NS
		}
	}
	if who != cmd.Process.Pid || frozen < 150_000_000 {
		t.Errorf("%d froze it for %d ns: %+v, missing %v", who, frozen, win.Sums, win.Missing)
	}
}

// A worker that runs on another CPU when the watch begins, and stays there, was away all the time.
func TestMovedBefore(t *testing.T) {
	if os.Geteuid() != 0 || runtime.NumCPU() < 2 {
		t.Skip("needs root and two CPUs")
	}
	var other unix.CPUSet
	other.Set(1)
	var stop atomic.Bool
	defer stop.Store(true)
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &other); err != nil {
			t.Error(err)
		}
		tid <- unix.Gettid()
		for !stop.Load() {
		}
	}()
	w, err := Watch(os.Getpid(), []Target{{TID: <-tid, Why: WhyMoved}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	time.Sleep(200 * time.Millisecond)
	window := time.Since(begin).Nanoseconds()
	win, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range win.Sums {
		if s.Kind == KindGap && s.Why == WhyMoved && s.NS > window*9/10 {
			return
		}
	}
	t.Errorf("%+v", win.Sums)
}
