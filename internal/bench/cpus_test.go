// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/procfs"
)

func TestPlace(t *testing.T) {
	two, four := cpus{online: []int{0, 1}}, cpus{online: []int{0, 1, 2, 3}}
	isolated := cpus{online: []int{0, 1, 2, 3, 4}, isolated: []int{2, 3, 4}}
	for name, c := range map[string]struct {
		cpus
		asked     []int
		generator int
		workers   int
		want      string // routers generator control, or what the error says
	}{
		"small machine":           {two, nil, -1, 1, "[1] 0 0"},
		"control has its own":     {four, nil, -1, 1, "[1] 0 2"},
		"two workers":             {four, nil, -1, 2, "[1 2] 0 3"},
		"isolated":                {isolated, nil, -1, 2, "[3 4] 2 0"},
		"isolated are too few":    {isolated, nil, -1, 3, "[1 2 3] 0 4"},
		"asked for":               {four, []int{3}, 1, 1, "[3] 1 0"},
		"generator asked for":     {two, nil, 1, 1, "[0] 1 1"},
		"router on the first":     {two, []int{0}, -1, 1, "[0] 1 1"},
		"does not exist":          {two, []int{7}, -1, 1, "--cpu: CPU 7 does not exist"},
		"generator does not":      {two, nil, 7, 1, "--generator-cpu: CPU 7 does not exist"},
		"shared with generator":   {two, []int{0}, 0, 1, "--cpu: CPU 0 would be shared by a router and the generator"},
		"shared by workers":       {four, []int{1, 1}, 0, 2, "--cpu: CPU 1 would be shared by two workers"},
		"too few for the workers": {four, []int{1}, 0, 2, "--cpu: 1 CPUs for 2 workers"},
		"machine too small":       {two, nil, -1, 2, "--workers: 2, but"},
		"none for the generator":  {two, []int{0, 1}, -1, 2, "--generator-cpu: none is left"},
		"one CPU":                 {cpus{online: []int{0}}, nil, -1, 1, "--workers: 1, but"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := place(c.cpus, c.asked, c.generator, c.workers)
			if err != nil {
				if !input.Is(err) || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			if got := fmt.Sprint(p.routers, p.generator, p.control); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// machine writes files of a root.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const statText = "cpu  600 0 0 1400 0 0 0 0 0 0\ncpu0 100 0 0 900 0 0 0 0 50 0\ncpu1 500 0 0 400 100 0 0 0 0 0\n" +
	"intr 1\n"

func small(t *testing.T) string {
	return machine(t, map[string]string{
		"proc/stat":                       "cpu  1 0 0 1\n" + statText,
		"proc/cpuinfo":                    "processor\t: 0\nmodel name\t: Test\n\nprocessor\t: 1\nmodel name\t: Test\n",
		"sys/devices/system/cpu/online":   "0-1\n",
		"sys/devices/system/cpu/isolated": "\n",
		"sys/devices/system/cpu/cpu1/topology/thread_siblings_list":  "0-1\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages":    "300\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":      "400\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages": "1\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages":   "1\n",
	})
}

func TestMachine(t *testing.T) {
	root := small(t)
	if free, err := FreeHugepages(root); err != nil || free != 1624 {
		t.Errorf("%d MB of hugepages, %v", free, err)
	}
	c, err := readCPUs(root)
	if err != nil || fmt.Sprint(c) != "{[0 1] []}" {
		t.Errorf("%v, %v", c, err)
	}
	notes, err := doubts(root, c, placement{routers: []int{1}}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CPU 0 is not isolated", "CPU 1 is not isolated", "CPUs 1 and 0 are hardware threads",
		"no hugepages"} {
		if !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("%q is missing in %q", want, notes)
		}
	}
}

func TestBusyCPUs(t *testing.T) {
	before, err := readCPUTimes(small(t))
	if err != nil || before[0] != (procfs.CPUTime{User: 100, Idle: 900}) ||
		before[1] != (procfs.CPUTime{User: 500, Idle: 400, IOWait: 100}) {
		t.Fatalf("%v, %v", before, err)
	}
	after := map[int]procfs.CPUTime{0: {User: 102, Idle: 998}, 1: {User: 540, Idle: 460, IOWait: 100}}
	if notes := busy(before, after, []int{0, 1}); len(notes) != 1 ||
		!strings.HasPrefix(notes[0], "CPU 1 was busy 40 %") {
		t.Errorf("%q", notes)
	}
}

func TestShareOfMemory(t *testing.T) {
	for _, c := range []struct{ free, n, want int }{{0, 1, 0}, {100, 1, 0}, {2048, 1, 1024}, {2048, 4, 384},
		{400, 4, 0}} {
		if got := share(c.free, c.n); got != c.want {
			t.Errorf("%d MB for %d: %d, want %d", c.free, c.n, got, c.want)
		}
	}
}
