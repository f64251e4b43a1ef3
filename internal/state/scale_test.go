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

	"github.com/corelane/corelane/internal/procfs"
)

// peakMemory returns the peak resident memory of this process, in bytes.
func peakMemory(t testing.TB) uint64 {
	t.Helper()
	status, err := procfs.Host.Status("proc/self")
	if err != nil {
		t.Fatal(err)
	}
	kb, err := strconv.ParseUint(strings.TrimSuffix(status["VmHWM"], " kB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// A file of a million routes is written, read, and compared with a node that has a million others, within a gigabyte.
// Run it alone, as it measures the whole process: go test -tags scale -run Million ./internal/state
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
