// SPDX-License-Identifier: Apache-2.0

// Package intrude disturbs a worker on purpose and measures the effect: the three ways to partition a machine in
// contrail-specs (MeasurePartitioning), disturbances that explain has to find (Matrix), and a receiver of kernel
// traffic on the CPU of its softirqs (MeasureReceiver). Disturbances are real: threads, interrupts, traffic, cgroups.
// They end with the run, whatever ends it, and the machine is restored.
package intrude

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/procfs"
)

// Options of all measurements.
type Options struct {
	WorkerCPU    int
	GeneratorCPU int // also of everything else but the disturbance, unless there is a third CPU
	Repetitions  int
	Window       time.Duration // of explain
	Cases        []string      // names of cases of the matrix; none: all
	Ranks        bool          // the matrix checks what explain finds, but neither costs nor remedies
	Root         string
	Bin          string // folder of corelaned and corelane-gen
	Say          func(string)
	online       cpuset.Set
	memory       int // MB of hugepages, 0: none
}

// Default returns options for a machine with two or more CPUs.
func Default() Options {
	return Options{WorkerCPU: 1, GeneratorCPU: 0, Repetitions: 3, Window: 5 * time.Second, Root: "/",
		Say: func(string) {}}
}

const maxWindow = 10 * time.Second

// prepare checks the options against the machine.
func (o *Options) prepare() error {
	var err error
	if o.online, err = procfs.Root(o.Root).CPUs("online"); err != nil {
		return err
	}
	for _, c := range []struct {
		field string
		ok    bool
		value any
		valid string
	}{
		{"--cpu", o.online.Has(o.WorkerCPU), o.WorkerCPU, "of " + o.online.String()},
		{"--generator-cpu", o.online.Has(o.GeneratorCPU) && o.GeneratorCPU != o.WorkerCPU, o.GeneratorCPU,
			"of " + o.online.String() + ", not the worker's"},
		{"--reps", o.Repetitions >= 1 && o.Repetitions <= 100, o.Repetitions, "1 to 100"},
		{"--window", o.Window >= time.Second && o.Window <= maxWindow, o.Window, "1s to 10s"},
	} {
		if !c.ok {
			return input.Errorf(c.field, c.valid, "%v is not possible", c.value)
		}
	}
	if os.Geteuid() != 0 {
		return input.Errorf("user", "root; try sudo", "the intruder lab moves interrupts, threads and cgroups")
	}
	free, err := bench.FreeHugepages(o.Root)
	if err != nil {
		return err
	}
	if o.memory = min(free*3/4, enoughMemory); o.memory < leastMemory {
		o.memory = 0
		o.Say("no hugepages are free: the router runs without them and is slower. " +
			"To have some: tools/with-hugepages.sh 1024 -- corelane lab intrude ...")
	}
	return bench.KeepOn(o.control())
}

// Hugepages of the router in MB.
const (
	enoughMemory = 1024
	leastMemory  = 128
)

// control is the CPU of everything that neither polls nor disturbs.
func (o *Options) control() int {
	for _, cpu := range o.online.IDs() {
		if cpu != o.WorkerCPU && cpu != o.GeneratorCPU {
			return cpu
		}
	}
	return o.GeneratorCPU
}

// others are all CPUs but the worker's.
func (o *Options) others() []int {
	return slices.DeleteFunc(o.online.IDs(), func(cpu int) bool { return cpu == o.WorkerCPU })
}

func (o *Options) say(format string, args ...any) { o.Say(fmt.Sprintf(format, args...)) }

// self is the path of this program, which also runs as the intruder.
func self() (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("intruders do not run on %s", runtime.GOOS)
	}
	return os.Executable()
}
