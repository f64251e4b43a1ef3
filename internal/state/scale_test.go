// SPDX-License-Identifier: Apache-2.0
//go:build scale

package state

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peakMemory is the most that this process ever had resident, in bytes.
func peakMemory(t testing.TB) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if kb, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseUint(strings.Fields(kb)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmHWM in /proc/self/status")
	return 0
}

// A file of a million routes is read, compared with a node that has as many others, and written, within a gigabyte.
// Run by itself, as it looks at the whole process: go test -tags scale -run Million ./internal/state
func TestMillionRoutes(t *testing.T) {
	const n = 1000000
	path := filepath.Join(t.TempDir(), "node.yaml")
	s := load(t, baseYAML)
	s.Routes = manyRoutes(n, 2)
	begin := time.Now()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	if err := Write(w, s); err != nil || w.Flush() != nil || f.Close() != nil {
		t.Fatal(err)
	}
	t.Logf("written in %v", time.Since(begin))

	begin = time.Now()
	want, err := LoadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v", time.Since(begin))
	begin = time.Now()
	s.Routes = manyRoutes(n, 1)
	ops := Diff(want, s)
	t.Logf("compared in %v", time.Since(begin))
	if c := CountOps(ops); c.Set != n {
		t.Errorf("%v", c)
	}
	peak := peakMemory(t)
	t.Logf("peak memory %d MiB", peak>>20)
	if peak > 1<<30 {
		t.Errorf("%d bytes resident", peak)
	}
}
