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
	for range 20 { // a machine that is busy may let neither run for a while
		hogged, slices, gaps := look(t, w, worker, hog)
		if slices < gaps*9/10 || slices > gaps*11/10 { // the threads that ran in the gaps fill them
			t.Errorf("gaps of %d ns, filled with %d ns of threads", gaps, slices)
		}
		if hogged > 0 {
			return
		}
	}
	t.Error("the other thread was never seen")
}

// look watches one window: how long the hog and all other threads had the worker's CPU, and how long the gaps were.
func look(t *testing.T, w *Watcher, worker, hog int) (hogged, slices, gaps int64) {
	t.Helper()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
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
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	const away = 200 * time.Millisecond
	for _, set := range []*unix.CPUSet{&other, &home} {
		if err := unix.SchedSetaffinity(worker, set); err != nil {
			t.Fatal(err)
		}
		time.Sleep(away)
	}
	win, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	var elsewhere, calls int64
	for _, s := range win.Sums {
		if s.Kind == KindGap && s.Why == WhyMoved {
			elsewhere += s.NS
		}
		if s.Kind == KindAffinity && s.Worker == worker && s.PID == os.Getpid() {
			calls += s.Count
		}
	}
	if elsewhere < int64(away)*9/10 || calls != 2 {
		t.Errorf("elsewhere for %d ns, moved by %d calls: %+v", elsewhere, calls, win.Sums)
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
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		err := unix.SchedSetAttr(0, &fifo, 0)
		if err = errors.Join(err, unix.SchedSetaffinity(0, &one)); err != nil {
			t.Error(err)
		}
		tids <- unix.Gettid()
		for !stop.Load() { // the kernel gives others 50 ms a second
		}
	}()
	hog := <-tids
	w, err := Watch(os.Getpid(), []Target{{TID: worker}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var win *Window
	for range 5 { // a watch may begin in the time that the kernel gives to others
		if err := w.Begin(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.Sleep(200 * time.Millisecond)
		window := time.Since(begin).Nanoseconds()
		if win, err = w.End(); err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, s := range win.Sums {
			if s.Kind == KindThread && s.ID == hog && s.Worker == worker && s.NS > window/2 {
				seen = true
			}
		}
		away := int64(0)
		for _, g := range win.Gaps { // one of them has not ended
			away += g.NS
		}
		if seen && away > window/2 {
			return
		}
	}
	t.Errorf("the worker did not run: %+v", win.Sums)
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
	time.Sleep(100 * time.Millisecond) // taskset has become sh
	w, err := Watch(pid, []Target{{TID: pid}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "cd "+group+"; echo 1 >cgroup.freeze; sleep 0.2; echo 0 >cgroup.freeze; sleep 0.3")
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
