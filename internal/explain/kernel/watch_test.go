// SPDX-License-Identifier: Apache-2.0
package kernel

import (
	"os"
	"runtime"
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
	stop, tid := make(chan struct{}), make(chan int)
	spin := func() {
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		tid <- unix.Gettid()
		for {
			select {
			case <-stop:
				return
			default:
			}
		}
	}
	go spin()
	worker := <-tid
	go spin()
	hog := <-tid
	defer close(stop)
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
	var taken int64
	for _, s := range win.Sums {
		t.Logf("%+v", s)
		if s.Kind == KindThread && s.ID == hog {
			taken += s.NS
		}
	}
	if taken < 50e6 {
		t.Errorf("the other thread had %d ns", taken)
	}
	t.Log(len(win.Gaps), win.Missing, win.Lost)
}
