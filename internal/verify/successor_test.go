// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
)

func TestSuccessor(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		options string
		free    int // pages of 2 MB
		needed  int
		warn    bool
	}{
		{"", 256, 512, false},
		{"", 255, 512, true},
		{"--memory 1024 --workers 2", 511, 1024, true},
		{"--memory=1024", 512, 1024, false},
		{"--memory 1024 --no-huge", 0, 0, false},
		{"--memory 1024 -- --memory 2048 --no-huge", 512, 1024, false}, // DPDK's
	} {
		write("proc/meminfo",
			fmt.Sprintf("HugePages_Total:    600\nHugePages_Free:    %d\nHugepagesize:    2048 kB\n", c.free))
		argv := append([]string{"/usr/bin/corelaned"}, strings.Fields(c.options)...)
		write("proc/10/cmdline", strings.Join(argv, "\x00")+"\x00")
		s := ReserveFor(procfs.Root(root), 10)
		f := Successor(s, &topology.Machine{})
		if s.Needed != c.needed || s.Free != 2*c.free || (f.Verdict == Warn) != c.warn || (s.Lacks() != "") != c.warn {
			t.Errorf("%s: %+v, %s", c.options, s, said(f))
		}
		if want := fmt.Sprintf("%d MB of hugepages are free", 2*c.free); c.warn && !strings.Contains(said(f), want) {
			t.Errorf("%s: %s", c.options, said(f))
		}
		if want := fmt.Sprint("vm.nr_hugepages=", 600+c.needed/2-c.free); c.warn && !strings.Contains(said(f), want) {
			t.Errorf("%s: %s, want %s", c.options, said(f), want)
		}
	}
	lacking := Reserve{Needed: 512, kib: 2048}
	if f := Successor(lacking, &topology.Machine{Container: true}); f.Verdict != Warn || len(f.Fix) > 0 {
		t.Errorf("in a container: %s", said(f))
	}
	if s := ReserveFor(procfs.Root(root), 11); s.Needed != 0 { // it has ended
		t.Errorf("%+v", s)
	}
}
