// SPDX-License-Identifier: Apache-2.0
package router

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAbandoned(t *testing.T) {
	dir, proc := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "17"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{"corelane-bench-18-ovs1", "corelane-bench-18-router2"}
	for _, name := range append([]string{"corelane-bench-17-ovs1", "corelane-bench-x-ovs1", "corelane-lab-18", "red"},
		want...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := abandoned(dir, proc); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
