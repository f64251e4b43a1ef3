// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"os"
	"path/filepath"
	"testing"
)

const statText = `cpu  10 0 10 100 0 0 0 0 0 0
cpu0 100 1 50 1000 10 3 4 5 0 0
cpu3 7 0 0 9 0 0 0 0 0 0
intr 5
`

const interruptsText = `           CPU0       CPU3
 38:          1        70  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
LOC:        200         0  Local timer interrupts
ERR:          0
`

func procTree(t *testing.T, files map[string]string) Tree {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, "proc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func TestLoad(t *testing.T) {
	tree := procTree(t, map[string]string{"stat": statText, "interrupts": interruptsText, "uptime": "20.5 30.0\n"})
	l, err := ReadLoad(tree)
	if err != nil || l.Seconds != 20.5 || !l.SinceBoot || len(l.CPUs) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	zero, three := l.Of(0), l.Of(3)
	if zero.User != 101 || zero.Idle != 1010 || zero.Steal != 5 || zero.Interrupts["LOC"] != 200 ||
		three.Interrupts["38 virtio2-input.0"] != 70 || l.Of(1) != nil {
		t.Errorf("%+v, %+v", zero, three)
	}
	three.Interrupts["38 virtio2-input.0"] += 30
	first, _ := ReadLoad(tree)
	if d := l.Since(first, 2); d.SinceBoot || d.Seconds != 2 || d.Of(3).Interrupts["38 virtio2-input.0"] != 30 ||
		len(d.Of(0).Interrupts) != 0 {
		t.Errorf("%+v", d)
	}
	if _, err := ReadLoad(procTree(t, nil)); err == nil {
		t.Error("a missing /proc/stat is not an error")
	}
}
