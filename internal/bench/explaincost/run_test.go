// SPDX-License-Identifier: Apache-2.0
package explaincost

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/wait"
)

func TestCost(t *testing.T) {
	r := Result{Pairs: []Pair{{Sample{Rate: 100}, Sample{Rate: 99}}, {Sample{Rate: 200}, Sample{Rate: 200}},
		{Sample{Rate: 100}, Sample{Rate: 98}}, {}}}
	if c := r.Of(func(s Sample) float64 {
		return s.Rate
	}); c.Median < -1.01 || c.Median > -0.99 || c.Low >= c.Median || c.High <= c.Median {
		t.Errorf("%+v", c)
	}
	if c := (&Result{}).Of(func(s Sample) float64 { return s.Rate }); c != (Cost{}) {
		t.Errorf("%+v", c)
	}
}

func TestRun(t *testing.T) {
	bin := filepath.Dir(os.Getenv("CORELANED"))
	if os.Geteuid() != 0 || bin == "." || runtime.NumCPU() < 2 {
		t.Skip("needs root, two CPUs and CORELANED, with corelane-gen beside it")
	}
	o := Options{Bin: bin, Worker: 1, Repetitions: 1, Trial: 300 * time.Millisecond}
	var last error
	if err := wait.Patiently(t.Context(), func() (bool, error) { // in a short trial, a program may not get its CPU
		r, err := Run(t.Context(), o, func(text string) { t.Log(text) })
		if last = err; err != nil {
			return false, nil
		}
		if len(r.Pairs) != 1 || r.Pairs[0].With.Rate == 0 || r.Pairs[0].Without.Cycles == 0 {
			last = fmt.Errorf("%+v", r)
		}
		return last == nil, nil
	}); err != nil {
		t.Error(last)
	}
}
