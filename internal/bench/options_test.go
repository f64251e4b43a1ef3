// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
)

func options(t *testing.T, names ...string) Options {
	t.Helper()
	o := Options{Repetitions: 2, Measure: measure.Default(), GeneratorCPU: -1, RingSize: 1024, Search: true,
		Latency: true, Burst: true}
	for _, name := range names {
		sc, err := scenario.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Scenarios = append(o.Scenarios, sc)
	}
	return o
}

func TestOptionsAreValidated(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"":               func(*Options) {},
		"scenario:":      func(o *Options) { o.Scenarios = nil },
		"--reps: 0":      func(o *Options) { o.Repetitions = 0 },
		"--reps: 1001":   func(o *Options) { o.Repetitions = 1001 },
		"--windows: 0":   func(o *Options) { o.Measure.Windows = 0 },
		"--trial-sec":    func(o *Options) { o.Measure.TrialTime = time.Millisecond },
		"--trial-secon":  func(o *Options) { o.Measure.TrialTime = time.Hour },
		"--resolution":   func(o *Options) { o.Measure.Resolution = 0 },
		"--resolution:":  func(o *Options) { o.Measure.Resolution = 1 },
		"ring size 1000": func(o *Options) { o.RingSize = 1000 },
		"flows 0":        func(o *Options) { o.Scenarios[0].Flows = 0 },
		"routes 0":       func(o *Options) { o.Scenarios[0].Routes = 0 },
		"frame size 20":  func(o *Options) { o.Scenarios[0].Sizes = []int{20} },
	} {
		o := options(t, "vxlan-encap")
		change(&o)
		err := o.validate()
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (!input.Is(err) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n")):
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

func TestExpectedTimeFollowsOptions(t *testing.T) {
	o := options(t, "vxlan-encap")
	all := o.expected(2)
	if o.expected(4) != 2*all {
		t.Error("does not grow with the routers")
	}
	o.Search, o.Latency, o.Burst = false, false, false
	if o.expected(2) >= all {
		t.Error("does not shrink without searches")
	}
}
