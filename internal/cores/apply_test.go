// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/rounds"
)

// TestMain is also the program of the kill tests: with CORES_KILL=N it kills itself at the Nth point between two
// durable writes.
func TestMain(m *testing.M) {
	if at, err := strconv.Atoi(os.Getenv("CORES_KILL")); err == nil {
		site := Site{Root: os.Getenv("CORES_ROOT"), Dir: os.Getenv("CORES_DIR"), fault: func() {
			if at--; at == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				time.Sleep(time.Hour)
			}
		}}
		if err := doomed(os.Getenv("CORES_DO"), &site); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		os.Setenv("TMPDIR", "/dev/shm") // a machine has thousands of files
	}
	os.Exit(m.Run())
}

func apply(root string, changes []Change, dir string, report func(Outcome)) error {
	return (&Site{Root: root, Dir: dir, Report: report}).Apply(context.Background(), changes)
}

func rollback(root, dir string, report func(Outcome)) error {
	return (&Site{Root: root, Dir: dir, Report: report}).Rollback(context.Background())
}

// all returns the changes of the made-up machine, and files for /etc.
func all(t testing.TB, version int) (string, []Change) {
	root, m, p := fourCPUs(t, version)
	put(t, root, map[string]string{"etc/default/grub": "GRUB_CMDLINE_LINUX=\n"})
	return root, append(Changes(m, p, Options{Cgroups: true}), etcFiles()...)
}

func etcFiles() []Change {
	return []Change{{Kind: File, Path: "etc/default/grub", New: "GRUB_CMDLINE_LINUX=nohz_full=2-3\n", Mode: 0o640},
		{Kind: Folder, Path: "etc/systemd"}, {Kind: File, Path: "etc/systemd/system.conf", New: "CPUAffinity=0-1\n",
			Mode: 0o644}}
}

// doomed applies or rolls back what the parent has prepared.
func doomed(command string, site *Site) error {
	if command == "rollback" {
		return site.Rollback(context.Background())
	}
	changes, err := readChanges(filepath.Join(site.Dir, "changes"))
	if err != nil {
		return err
	}
	return site.Apply(context.Background(), changes)
}

func TestApplyAndRollback(t *testing.T) {
	for _, version := range []int{1, 2, 0} {
		root, changes := all(t, version)
		before, dir := snapshot(t, root), t.TempDir()
		results := map[Result]int{}
		count := func(o Outcome) {
			results[o.Result]++
			if o.Result == Failed || o.Result == Refused {
				t.Errorf("cgroups %d: %s: %s %s", version, o.What(), o.Result, o.Text)
			}
		}
		if err := apply(root, changes, dir, count); err != nil {
			t.Fatal(err)
		}
		if differences(before, snapshot(t, root)) == "" || results[Done] < 25 {
			t.Errorf("cgroups %d: %v", version, results)
		}
		applied := snapshot(t, root)
		clear(results)
		if err := apply(root, changes, dir, count); err != nil || results[Done] != 0 {
			t.Errorf("a second time: %v, %v", results, err)
		}
		if diff := differences(applied, snapshot(t, root)); diff != "" {
			t.Error(diff)
		}
		for range 2 { // the second has nothing to do
			if err := rollback(root, dir, count); err != nil {
				t.Fatal(err)
			}
			if diff := differences(before, snapshot(t, root)); diff != "" {
				t.Errorf("cgroups %d:\n%s", version, diff)
			}
		}
	}
}

func (o *Outcome) is(result Result, text string) bool {
	return o.Result == result && strings.Contains(o.Text, text)
}

// A kill at every point of Apply, and of the Rollback after it, leaves something that Rollback restores exactly.
func TestKilledAnywhere(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("cgroups %d", version), func(t *testing.T) {
			t.Parallel()
			killedAnywhere(t, version)
		})
	}
}

func killedAnywhere(t *testing.T, version int) {
	step, kills := rounds.Step(4), 0
	for at := 1; ; at += step {
		root, changes := all(t, version)
		before, dir := snapshot(t, root), t.TempDir()
		writeChanges(t, filepath.Join(dir, "changes"), changes)
		killed := end(t, "apply", root, dir, at)
		again := 0
		if at%40 < step || !killed { // then kill rollbacks too, each one step later than the one before
			for again = 1; end(t, "rollback", root, dir, again); again++ {
			}
		}
		if err := rollback(root, dir, nil); err != nil {
			t.Fatalf("apply killed at %d, rollbacks %d: %v", at, again, err)
		}
		if diff := differences(before, snapshot(t, root)); diff != "" {
			t.Fatalf("apply killed at %d, rollbacks %d:\n%s", at, again, diff)
		}
		if !killed {
			t.Logf("killed at %d points of apply, and at %d of rollback", kills, again-1)
			return
		}
		kills++
	}
}

// A kill at every point of a Rollback leaves something that the next one finishes.
func TestRollbackKilledAnywhere(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		root, changes := all(t, 1)
		before, dir := snapshot(t, root), t.TempDir()
		if err := apply(root, changes, dir, nil); err != nil {
			t.Fatal(err)
		}
		killed := end(t, "rollback", root, dir, at)
		if err := rollback(root, dir, nil); err != nil {
			t.Fatalf("killed at %d: %v", at, err)
		}
		if diff := differences(before, snapshot(t, root)); diff != "" {
			t.Fatalf("killed at %d:\n%s", at, diff)
		}
		if !killed {
			t.Logf("killed at %d points", at-1)
			return
		}
	}
}

// end runs a command in a child that kills itself at a point, and reports whether it reached this point.
func end(t *testing.T, what, root, dir string, at int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CORES_KILL="+strconv.Itoa(at), "CORES_DO="+what, "CORES_ROOT="+root, "CORES_DIR="+
		dir)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s, to be killed at %d: %v: %s", what, at, err, out)
	}
	return true
}

// A last line that was cut short anywhere does not prevent Rollback.
func TestTornJournal(t *testing.T) {
	root, changes := all(t, 1)
	dir := t.TempDir()
	if err := apply(root, changes[:3], dir, nil); err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(journalPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(journal) {
		torn, _, good, err := parseJournal(journal[:cut])
		if err != nil || good > cut || len(torn) > 3 {
			t.Fatalf("cut at %d: %d steps, %d good, %v", cut, len(torn), good, err)
		}
	}
	put(t, dir, map[string]string{"journal": strings.Replace(string(journal), `"step":2`, `"step":9`, 1)})
	if err := rollback(root, dir, nil); !input.Is(err) || !strings.Contains(err.Error(), "line") {
		t.Errorf("a journal with a hole: %v", err)
	}
}

// A change that fails ends Apply, which undoes its own changes, but not those of an earlier Apply.
func TestFailureTakesBack(t *testing.T) {
	root, changes := all(t, 1)
	start, dir := snapshot(t, root), t.TempDir()
	if err := apply(root, changes[:4], dir, nil); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	broken := append(append([]Change{}, changes[4:9]...), Change{Kind: Write, Path: "sys/none", New: "1"})
	err := apply(root, broken, dir, nil)
	const want = "/sys/none: this kernel does not have this setting; the changes made before were undone"
	if err == nil || input.Is(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("failed with %v", err)
	}
	if diff := differences(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
	site := Site{Root: root, Dir: dir, KeepGoing: true}
	if err := site.Apply(context.Background(), append(broken, changes[9])); err == nil {
		t.Error("with KeepGoing a failure is not reported")
	}
	if text, _ := os.ReadFile(filepath.Join(root, changes[9].Path)); !changes[9].Form.meets(string(text),
		changes[9].New) {
		t.Errorf("did not go on: %q", text)
	}
	if err := rollback(root, dir, nil); err != nil {
		t.Fatal(err)
	}
	if diff := differences(start, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}
