// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

type silent struct{ t *testing.T }

func (silent) Begin(time.Duration)                 {}
func (p silent) Step(text string, _ time.Duration) { p.t.Log(text) }
func (p silent) Note(text string)                  { p.t.Log(text) }

// All measures, shortened, with real programs. Every figure must be there; their size depends on the machine, except
// that no change may lose or reorder a frame.
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
	r, err := Run(t.Context(), o, silent{t})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete || len(r.Tables()) != 5 {
		t.Errorf("%+v", r)
	}
	for _, m := range r.Modes {
		if len(m.Samples) != 1 || m.Samples[0].Rate == 0 || m.Samples[0].P99 == 0 || m.Samples[0].HalfP99 == 0 ||
			(m.Samples[0].Turn > 0) != (m.Ring > 0) {
			t.Errorf("%+v", m)
		}
	}
	for _, ring := range r.Rings {
		if len(ring.Samples) != 1 || ring.Samples[0].Rate == 0 || ring.Samples[0].Queued > uint32(ring.Size) {
			t.Errorf("%+v", ring)
		}
	}
	for _, b := range r.Isolated {
		if b.Sent == 0 {
			t.Errorf("%+v", b)
		}
	}
	for _, c := range r.Changes {
		if c.Done < o.Changes || c.Sent == 0 {
			t.Errorf("%+v", c)
		}
		if c.Reordered+c.Duplicated > 0 && c.GaveUp == 0 {
			t.Errorf("%s: %d reordered, %d twice", c.Name, c.Reordered, c.Duplicated)
		}
	}
	for _, s := range r.Scaling {
		if len(s.Cycles) == 0 || s.Cycles[0] <= 0 {
			t.Errorf("%+v", s)
		}
	}
}
