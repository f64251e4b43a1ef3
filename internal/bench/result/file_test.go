// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// full is a result with every part filled.
func full() *Result {
	started := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &Result{
		Version: Version, Complete: true, Started: started, Ended: started.Add(10 * time.Minute),
		Command: "corelane bench peers",
		Manifest: Manifest{CPUs: 2, Hugepages: map[string]uint64{"2 MB": 512}, RouterCPUs: []int{1},
			Settings: map[string]string{"repetitions": "5"}},
		Runs: []Run{{
			Scenario: "vxlan-encap", Router: "corelane", RouterVersion: "0.1", Flows: 1000, Routes: 1,
			FrameSizes: []int{64}, Workers: 1,
			Windows: []Window{{Repetition: 0, At: 1, Seconds: 0.2, Sent: 2e7, Received: 1.5e7, RoundTrip: 60,
				Idle: 0.4}},
			NDR: &Search{Rate: 9e6, Trials: []Trial{{Rate: 9e6, Seconds: 2, Sent: 100, Passed: true},
				{Rate: 1e7, Seconds: 2, Sent: 100, Lost: 100}}},
			PDR: &Search{LossRatio: 1e-4, Rate: 1e7},
			Latency: []Latency{{Load: "50% NDR", Rate: 4e6, P50: 4, P90: 5, P99: 9, P999: 30, Max: 80,
				Histogram: []Bar{{4, 10}, {5, 2}}}},
			Burst: &Burst{Frames: 1024, Trials: 8}, Nodes: []Node{{"port_rx", 22, 32}},
			Bottleneck: Bottleneck{"router", "it was busy all the time"},
			Checked:    1000, Drops: []DropCounter{{"no route", 3}},
		}},
	}
}

func TestSavedIsLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	for _, complete := range []bool{true, false} {
		want := full()
		want.Complete = complete
		if err := Save(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("saved %+v, loaded %+v", want, got)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// A result that cannot be written leaves the old file, and no temporary one.
func TestFailedSaveLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := Save(path, full()); err != nil {
		t.Fatal(err)
	}
	bad := full()
	bad.Runs[0].Windows[0].Idle = math.NaN()
	if err := Save(path, bad); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("saved what is not JSON: %v", err)
	}
	if err := Save(filepath.Join(path, "below-a-file.json"), full()); err == nil {
		t.Error("saved below a file")
	}
	directory := filepath.Join(filepath.Dir(path), "directory")
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Save(directory, full()); err == nil {
		t.Error("replaced a directory")
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 2 {
		t.Errorf("left behind: %v", files)
	}
}

func TestLoadRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := Save(path, full()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	valid := string(text)
	replaced := func(from, to string) string {
		if !strings.Contains(valid, from) {
			t.Fatalf("the file has no '%s'", from)
		}
		return strings.Replace(valid, from, to, 1)
	}
	runs := valid[strings.Index(valid, `"runs": [`)+len(`"runs": [`) : strings.LastIndex(valid, "]")]
	for want, text := range map[string]string{
		"the file is empty":                                  " \n",
		"truncated":                                          valid[:len(valid)/2],
		"truncated: the file ends in the middle":             strings.TrimRight(valid, "}\n"),
		"line 1: not JSON":                                   "hello",
		"line 3: not JSON":                                   replaced(`"complete": true`, `"complete": maybe`),
		"after top-level":                                    valid + "{}",
		"version: 2; this corelane reads 1":                  replaced(`"version": 1`, `"version": 2`),
		"version: missing":                                   `{"runs": []}`,
		`unknown field "speed"`:                              replaced(`"complete"`, `"speed": 1, "complete"`),
		"runs.windows.sent: string":                          replaced(`"sent": 20000000`, `"sent": "many"`),
		"runs.flows: number 1000.5; valid: int":              replaced(`"flows": 1000`, `"flows": 1000.5`),
		"runs[0].flows: 0 is impossible; valid: more than 0": replaced(`"flows": 1000`, `"flows": 0`),
		"runs[0].router: '' is impossible; valid: a name":    replaced(`"router": "corelane"`, `"router": ""`),
		"runs[0].windows[0].seconds: -0.2":                   replaced(`"seconds": 0.2`, `"seconds": -0.2`),
		"runs[0].windows[0].idle: 1.4":                       replaced(`"idle": 0.4`, `"idle": 1.4`),
		"runs[0].ndr.trials[1].lost: 101":                    replaced(`"lost": 100`, `"lost": 101`),
		"runs[0].pdr.loss_ratio: 2":                          replaced(`"loss_ratio": 0.0001`, `"loss_ratio": 2`),
		"runs[0].latency[0].p50_us ... max_us: [4 5 9 30 8]": replaced(`"max_us": 80`, `"max_us": 8`),
		"runs[0].latency[0].histogram":                       replaced(`"low_us": 4`, `"low_us": 6`),
		"runs[0].frame_sizes: [5]":                           replaced("64\n", "5\n"),
		"runs[0].bottleneck.component: me":                   replaced(`"component": "router"`, `"component": "me"`),
		"runs[0].nodes[0].cycles_per_packet: -22": replaced(`"cycles_per_packet": 22`,
			`"cycles_per_packet": -22`),
		"ended: 2025":       replaced(`"ended": "2026`, `"ended": "2025`),
		"manifest.cpus: -2": replaced(`"cpus": 2`, `"cpus": -2`),
		"runs[1]: vxlan-encap on corelane (1000 flows, 1 route": strings.Replace(valid, runs, runs+","+runs, 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("want '%s', got '%v'", want, err)
		}
	}
	if _, err := Load(path + ".none"); err == nil || !strings.Contains(err.Error(), path+".none") {
		t.Errorf("missing file: %v", err)
	}
}
