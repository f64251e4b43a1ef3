// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/bench/workerresult"
	"github.com/corelane/corelane/internal/wait"
)

type silent struct{ t *testing.T }

func (silent) Begin(time.Duration)                 {}
func (p silent) Step(text string, _ time.Duration) { p.t.Log(text) }
func (p silent) Note(text string)                  { p.t.Log(text) }

// All measures, shortened, with real programs. Every figure must be there; their size depends on the machine, except
// that no change may lose or reorder a frame. In a short trial, a program may not get its CPU; then they run again.
func TestRun(t *testing.T) {
	bin := filepath.Dir(os.Getenv("CORELANED"))
	if os.Geteuid() != 0 || bin == "." {
		t.Skip("needs root and CORELANED, with corelane-gen and corelane-scale-bench beside it")
	}
	for _, name := range []string{"corelane-gen", scaleProgram} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			t.Skip(err)
		}
	}
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	o := Default()
	o.Quick()
	o.Bin, o.Repetitions, o.Trial = bin, 1, 100*time.Millisecond
	var last error
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		r, err := Run(t.Context(), o, silent{t})
		if last = err; err == nil {
			last = check(t, r, o.Changes)
		}
		return last == nil, nil
	}); err != nil {
		t.Error(last)
	}
}

// check returns which figure is missing. A frame that is out of order is an error, however seldom.
func check(t *testing.T, r *workerresult.Result, changes int) error {
	if !r.Complete || len(r.Tables()) != 5 {
		return fmt.Errorf("%+v", r)
	}
	for _, c := range r.Changes {
		if c.Reordered+c.Duplicated > 0 && c.GaveUp == 0 {
			t.Errorf("%s: %d reordered, %d twice", c.Name, c.Reordered, c.Duplicated)
		}
		if c.Done < changes || c.Sent == 0 {
			return fmt.Errorf("%+v", c)
		}
	}
	for _, ring := range r.Rings {
		if len(ring.Samples) == 1 && ring.Samples[0].Queued > uint32(ring.Size) {
			t.Errorf("%+v", ring)
		}
		if len(ring.Samples) != 1 || ring.Samples[0].Rate == 0 {
			return fmt.Errorf("%+v", ring)
		}
	}
	for _, m := range r.Modes {
		if len(m.Samples) != 1 || m.Samples[0].Rate == 0 || m.Samples[0].P99 == 0 || m.Samples[0].HalfP99 == 0 ||
			(m.Samples[0].Turn > 0) != (m.Ring > 0) {
			return fmt.Errorf("%+v", m)
		}
	}
	for _, b := range r.Isolated {
		if b.Sent == 0 {
			return fmt.Errorf("%+v", b)
		}
	}
	for _, s := range r.Scaling {
		if len(s.Cycles) == 0 || s.Cycles[0] <= 0 {
			return fmt.Errorf("%+v", s)
		}
	}
	return nil
}
