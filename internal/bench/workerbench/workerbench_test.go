// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/input"
)

func TestValidate(t *testing.T) {
	if o := Default(); o.Validate() != nil {
		t.Error(o.Validate())
	}
	for want, change := range map[string]func(*Options){
		"name: 'speed' is unknown; valid: modes, rings": func(o *Options) { o.Names = []string{"modes", "speed"} },
		"--reps: 0 is not possible; valid: 1 to 100":    func(o *Options) { o.Repetitions = 0 },
		"--changes: 0 is not possible":                  func(o *Options) { o.Changes = 0 },
		"--trial-seconds: 1 is not possible":            func(o *Options) { o.Trial = time.Second },
		"--cpu: 0 is not possible":                      func(o *Options) { o.WorkerCPU = 0 },
		"--poller-cpu: 1 is not possible":               func(o *Options) { o.PollerCPU = 1 },
		"vxlan-encap: frame size 20":                    func(o *Options) { o.Frame = 20 },
		"vxlan-encap: flows 0":                          func(o *Options) { o.Flows = 0 },
	} {
		o := Default()
		change(&o)
		if err := o.Validate(); !input.Is(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestMissingCPU(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"cpu0", "cpu1"} {
		if err := os.MkdirAll(filepath.Join(root, "sys/devices/system/cpu", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &workersRun{Options: Default()}
	s.Root, s.PollerCPU = root, 7
	if err := s.prepare(); !input.Is(err) || err.Error() != "--poller-cpu: CPU 7 does not exist" {
		t.Error(err)
	}
}

// The search finds any longest burst, within its precision.
func TestSearch(t *testing.T) {
	for _, truth := range []int{0, 63, 64, 65, 100, 255, 256, 1000, 4096, 8191, 8192} {
		tries := 0
		got, err := search(64, 8192, func(n int) (bool, error) {
			tries++
			return n <= truth, nil
		})
		want := truth
		if truth < 64 {
			want = 0
		}
		if err != nil || got > want || want-got > max(1, want/fineness) || tries > 16 {
			t.Errorf("%d: %d in %d tries, %v", truth, got, tries, err)
		}
	}
	failure := errors.New("no")
	if _, err := search(64, 8192, func(int) (bool, error) { return false, failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
}

func TestReadScaling(t *testing.T) {
	list, err := readScaling(strings.NewReader(`{"what":"machine","tsc_hz":2000000000,"cpus":2}
{"what":"window","kind":"shared","stateful":false,"workers":1,"cycles":100.50}
{"what":"window","kind":"shared","stateful":false,"workers":1,"cycles":102}
{"what":"window","kind":"apart","stateful":true,"workers":1,"cycles":103}
`))
	if err != nil || len(list) != 2 || !slices.Equal(list[0].Cycles, []float64{100.5, 102}) || !list[1].Stateful {
		t.Errorf("%v, %+v", err, list)
	}
	if _, err := readScaling(strings.NewReader("PANIC\n")); err == nil {
		t.Error("accepted")
	}
}

func TestTurn(t *testing.T) {
	if got := turn(&apiv1.GeneratorWindow{Turns: 4, TurnCycles: 40000, TscHz: 2e9}); got != 5 {
		t.Error(got)
	}
	if got := turn(&apiv1.GeneratorWindow{TscHz: 2e9}); got != 0 {
		t.Error(got)
	}
}

func TestLossReasons(t *testing.T) {
	got := lossReasons(&apiv1.GeneratorWindow{NoRoom: 5},
		router.Counters{Drops: map[string]uint64{"old": 3, "both": 1}},
		router.Counters{Drops: map[string]uint64{"old": 3, "both": 4, "new": 1}})
	if got != "both 3, new 1, no room in the guest's ring 5" {
		t.Error(got)
	}
}

func TestWrongWork(t *testing.T) {
	for ok, list := range map[bool][]*apiv1.GeneratorWindow{
		true: {{Sent: 100, Received: 100}, {Sent: 100, Received: 99, Lost: 1}},
		false: {{Sent: 100}, {Sent: 100, Received: 98, Lost: 2}, {Sent: 100, Received: 100, WrongHeader: 1},
			{Sent: 100, Received: 99, Foreign: 1}},
	} {
		for _, w := range list {
			if err := testbed.CheckFrames(w); (err == nil) != ok {
				t.Errorf("%v: %v", w, err)
			}
		}
	}
}

func TestThreads(t *testing.T) {
	root := t.TempDir()
	for tid, name := range map[string]string{"10": "corelane-gen", "12": sender} {
		dir := filepath.Join(root, "proc/10/task", tid)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "comm"), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := threads(root, 10); len(got) != 2 || got[12] != sender {
		t.Error(got)
	}
	if err := keepOff(root, 11, 0); err == nil || err.Error() != "the generator has no thread gen-poll" {
		t.Error(err)
	}
}
