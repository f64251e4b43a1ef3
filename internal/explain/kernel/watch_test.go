// SPDX-License-Identifier: Apache-2.0
package kernel

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that spins is the worker; another one of the same CPU takes it away.
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
	w, err := Watch(os.Getpid(), []Target{{worker, 0}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 20 { // a machine that is busy may let neither run for a while
		hogged, slices, gaps := look(t, w, worker, hog)
		if slices < gaps*9/10 || slices > gaps*11/10 { // all that ran in the gaps
			t.Errorf("gaps of %d ns, filled with %d ns of threads", gaps, slices)
		}
		if hogged > 0 {
			return
		}
	}
	t.Error("the other thread was never seen")
}

// look for a window: how long the hog and all threads had the worker's CPU, and how long it was away.
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
