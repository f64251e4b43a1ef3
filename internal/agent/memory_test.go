// SPDX-License-Identifier: Apache-2.0
package agent

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestMemoryMax(t *testing.T) {
	const group = "/system.slice/corelane-agent.service"
	for _, c := range []struct {
		name, cgroup, slice, unit string
		want                      int64
	}{
		{"of the unit", "0::" + group + "\n", "max\n", "1073741824\n", 1 << 30},
		{"of the slice", "0::" + group + "\n", "1048576\n", "1073741824\n", 1 << 20},
		{"none", "0::" + group + "\n", "max\n", "max\n", 0},
		{"version 1 beside it", "4:memory:/other\n0::" + group + "\n", "max\n", "4096\n", 4096},
		{"version 1 alone", "4:memory:" + group + "\n", "4096\n", "4096\n", 0},
		{"the root", "0::/\n", "4096\n", "4096\n", 0},
		{"a container", "0::/\n", "", "", 8192},
		{"no files", "", "", "", 0},
	} {
		root, whole := t.TempDir(), ""
		if c.name == "a container" {
			whole = "8192\n"
		}
		for path, text := range map[string]string{"proc/self/cgroup": c.cgroup,
			"sys/fs/cgroup/memory.max": whole, "sys/fs/cgroup/system.slice/memory.max": c.slice,
			"sys/fs/cgroup" + group + "/memory.max": c.unit} {
			if text == "" {
				continue
			}
			file := filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryMax(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A limit that the environment gives is kept; without any, the collector is as Go makes it.
func TestLimitMemory(t *testing.T) {
	t.Setenv("GOGC", "") // restored with what the limit changes
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	if got := LimitMemory(t.TempDir()); got != 0 || debug.SetGCPercent(100) != 100 {
		t.Errorf("limit %d of a machine without one", got)
	}
	debug.SetMemoryLimit(300 << 20)
	if got := LimitMemory(t.TempDir()); got != 300<<20 || debug.SetMemoryLimit(-1) != 300<<20 {
		t.Errorf("limit %d, want that of the environment", got)
	}
	if got := debug.SetGCPercent(100); got != lazy {
		t.Errorf("the heap may grow by %d %%", got)
	}
	root, group := t.TempDir(), "sys/fs/cgroup/x"
	for name, text := range map[string]string{"proc/self/cgroup": "0::/x\n", group + "/memory.max": "1048576000\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOMEMLIMIT", "off")
	debug.SetMemoryLimit(math.MaxInt64)
	got := LimitMemory(root)
	if got != 0 || debug.SetMemoryLimit(-1) != math.MaxInt64 || debug.SetGCPercent(100) != 100 {
		t.Errorf("limit %d, although the environment wants none", got)
	}
}
