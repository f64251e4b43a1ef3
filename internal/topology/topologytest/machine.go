// SPDX-License-Identifier: Apache-2.0
package topologytest

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/corelane/corelane/internal/topology"
)

// Names returns all described machines. Archive has captured ones.
func Names() []string { return slices.Sorted(maps.Keys(machines)) }

// Archive returns the file of a captured machine in tests/fixtures/machines: "vm-cgroup-v1".
func Archive(t testing.TB, name string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	file := filepath.Join(filepath.Dir(here), "../../../tests/fixtures/machines", name+".tar.gz")
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("no captured machine '%s': %v", name, err)
	}
	return file
}

// Describe returns the description of a machine. The caller may change it.
func Describe(t testing.TB, name string) *Spec {
	t.Helper()
	make, ok := machines[name]
	if !ok {
		t.Fatalf("no machine '%s'; there are %v", name, Names())
	}
	return make()
}

// Machine reads a machine by its name, described or captured.
func Machine(t testing.TB, name string) *topology.Machine {
	t.Helper()
	if _, described := machines[name]; !described {
		m, err := topology.Read(Archive(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return Describe(t, name).Machine(t)
}

// Machine reads the described machine.
func (s *Spec) Machine(t testing.TB) *topology.Machine {
	t.Helper()
	m, err := topology.ReadTree(s.Tree(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Tree returns the files of the described machine, in memory.
func (s *Spec) Tree(t testing.TB) *topology.Memory {
	t.Helper()
	tree := topology.NewMemory()
	for _, f := range s.files() {
		put := tree.Put
		if f.readOnly {
			put = tree.PutReadOnly
		}
		text := f.text
		if f.link != "" {
			put, text = tree.PutLink, f.link
		}
		if err := put(f.name, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range s.Denied {
		if err := tree.PutBroken(name, "permission denied"); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// Dir writes the files of a machine to a temporary directory of the test, which is a root that can be read and written.
func Dir(t testing.TB, name string) string {
	t.Helper()
	return Describe(t, name).Dir(t)
}

// Dir writes the files of the described machine.
func (s *Spec) Dir(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range s.files() {
		if slices.Contains(s.Denied, f.name) {
			continue
		}
		if err := f.write(root); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func (f file) write(root string) error {
	name := filepath.Join(root, f.name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if f.link != "" {
		return os.Symlink(f.link, name)
	}
	mode := os.FileMode(0o644)
	if f.readOnly {
		mode = 0o444
	}
	return os.WriteFile(name, []byte(f.text), mode)
}
