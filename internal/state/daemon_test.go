// SPDX-License-Identifier: Apache-2.0
package state

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/rounds"
)

// startDaemon runs the corelaned that the variable CORELANED names, in a network namespace of its own.
func startDaemon(t *testing.T) *api.Client {
	t.Helper()
	program := os.Getenv("CORELANED")
	if os.Geteuid() != 0 || program == "" {
		t.Skip("needs root and CORELANED")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "corelaned.sock")
	log, err := os.Create(filepath.Join(dir, "corelaned.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--run-dir", dir, "--socket", socket, "--worker-cpus", "0", "--idle", "sleep",
		"--no-huge", "--memory", "128")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("corelaned: %v", err)
		}
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := api.Dial(t.Context(), socket, "state test")
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// corelaned itself, like the model, can be brought from any state into any other.
func TestDaemonBecomesAnyState(t *testing.T) {
	c := startDaemon(t)
	started, err := Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	rounds.Seeds(t, 20, 60, func(seed uint64) {
		want := randomState(rand.New(rand.NewPCG(seed, 4)))
		want.Workers = started.Workers // their CPUs depend on the machine
		have, err := Read(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ops := Diff(want, have)
		if _, err := Apply(t.Context(), c, ops, nil); err != nil {
			t.Fatalf("seed %d: %v\nplan:\n%s", seed, err, planned(t, ops))
		}
		have, err = Read(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if left := Diff(want, have); len(left) > 0 {
			t.Fatalf("seed %d: still different:\n%s", seed, planned(t, left))
		}
		if text := write(t, have); text == "" {
			t.Fatal("an empty export")
		} else if back, err := Load("export", []byte(text)); err != nil || len(Diff(back, have)) > 0 {
			t.Fatalf("seed %d: the export is not the state: %v\n%s", seed, err, text)
		}
	})
}
