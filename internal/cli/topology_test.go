// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// alone runs a command that needs no daemon.
func alone(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = New(&o, &e, Dial).Run(context.Background(), args)
	return code, o.String(), e.String()
}

func TestTopologyOfArchive(t *testing.T) {
	archive := topologytest.Archive(t, "vm-cgroup-v1")
	code, out, errs := alone("topology", "show", "--root", archive)
	if code != 0 || !strings.Contains(out, "2 CPUs online on 2 cores of 1 socket") || errs != "" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	code, out, _ = alone("topology", "show", "--root", archive, "-o", "json")
	var m topology.Machine
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil ||
		topology.Fingerprint(&m) != topology.Fingerprint(topologytest.Machine(t, "vm-cgroup-v1")) {
		t.Errorf("%d %v %s", code, err, out)
	}
}

func TestTopologyMap(t *testing.T) {
	root := topologytest.Dir(t, "one-cpu")
	code, out, errs := alone("topology", "map", "--root", root)
	if code != 0 || out != "socket 0, node 0, 2.0 GiB, NIC 0000:01:00.0\n  [0Q]\n\nQ takes interrupts of devices: 0 "+
		"(1 CPU)\n" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	svg := filepath.Join(t.TempDir(), "m.svg")
	if code, out, errs = alone("topology", "map", "--root", root, "--svg", svg); code != 0 || out+errs != "" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if text, err := os.ReadFile(svg); err != nil || !strings.HasPrefix(string(text), "<svg ") {
		t.Errorf("%s %v", text, err)
	}
}

func TestTopologyMapOfPlan(t *testing.T) {
	m := topologytest.Machine(t, "vm-cgroup-v1")
	p, err := plan.Make(m, plan.Request{Forwarding: 1})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := plan.Save(file, p); err != nil {
		t.Fatal(err)
	}
	code, out, errs := alone("topology", "map", "--root", topologytest.Archive(t, "vm-cgroup-v1"), "--plan", file)
	if code != 0 || !strings.Contains(out, "[0H] [1F]") || !strings.Contains(out, "F forwarding: 1 (1 CPU)") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	code, out, errs = alone("topology", "map", "--root", topologytest.Dir(t, "one-cpu"), "--plan", file)
	if code != 2 || out != "" || !strings.Contains(errs, "it was made for vm, not for single") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

func TestTopologyCapture(t *testing.T) {
	t.Chdir(t.TempDir())
	root := topologytest.Dir(t, "one-cpu")
	code, out, errs := alone("topology", "capture", "--root", root)
	if code != 0 || !strings.HasPrefix(out, "single.tar.gz: ") || errs != "" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	code, _, errs = alone("topology", "capture", "single.tar.gz", "--root", root)
	if code != 2 || errs != "file: 'single.tar.gz' exists; valid: one that does not exist\n" {
		t.Errorf("%d %s", code, errs)
	}
	left, err := os.ReadDir(".")
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
	info, err := os.Stat("single.tar.gz")
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// One line says what is wrong, and nothing is written.
func TestTopologyWrongInput(t *testing.T) {
	empty, file := t.TempDir(), filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"show", "--root", empty}, empty + ": no CPU was found, neither in sys/devices/system/cpu nor in " +
			"proc/cpuinfo"},
		{[]string{"show", "--root", "/nonexistent"}, "/nonexistent: no such file or directory; valid: "},
		{[]string{"show", "--root", file}, file + ": is not an archive (tar.gz); valid: "},
		{[]string{"map", "-o", "json"}, "output: a map is for people"},
		{[]string{"map", "--plan", "/nonexistent"}, "/nonexistent: "},
		{[]string{"map", "--svg", "/nonexistent/a.svg"}, "--svg: "},
		{[]string{"capture", "/nonexistent/a.tar.gz"}, "file: "},
		{[]string{"capture", filepath.Join(empty, "a.tar.gz"), "--root", empty}, empty + ": no CPU"},
		{[]string{"draw"}, "verb: 'draw' is unknown; valid: capture, map, show"},
	} {
		code, out, errs := alone(append([]string{"topology"}, c.args...)...)
		if code != 2 || out != "" || !strings.HasPrefix(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %q %q, want %q", c.args, code, out, errs, c.want)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}
