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
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	win, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	var hogged, slices, gaps int64
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
	if hogged < 1_000_000 {
		t.Errorf("the other thread had %d ns", hogged)
	}
	if gaps > 500_000_000*6/5 || slices < gaps*95/100 || slices > gaps*105/100 { // of all that ran in the gaps
		t.Errorf("gaps of %d ns, filled with %d ns of threads", gaps, slices)
	}
	if len(win.Gaps) == 0 || win.Gaps[0].Worker != worker || win.Gaps[0].NS <= 0 {
		t.Errorf("gaps: %+v", win.Gaps)
	}
}
