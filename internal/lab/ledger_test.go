// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/wait"
)

func sleeper(t *testing.T) (*exec.Cmd, Process) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	start, err := startTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, Process{"sleep", cmd.Process.Pid, start}
}

// A process that has the id of one that ended is left alone.
func TestOnlyTheSameProcessIsStopped(t *testing.T) {
	_, p := sleeper(t)
	other := p
	other.Start--
	if err := stopAll([]Process{other}); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() || other.Alive() {
		t.Fatal("the wrong process was stopped")
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !waitGone([]Process{p}) {
		t.Error("it was not stopped")
	}
}

func TestStopAllKillsWhatDoesNotListen(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	start, err := startTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p := Process{"sh", cmd.Process.Pid, start}
	begun := time.Now()
	if err := stopAll([]Process{p}); err != nil || p.Alive() {
		t.Error(err)
	}
	if time.Since(begun) < patience {
		t.Error("SIGKILL came at once")
	}
}

func TestLedger(t *testing.T) {
	root := filepath.Join(t.TempDir(), "corelane", "lab")
	unlock, err := lock(root)
	if err != nil {
		t.Fatal(err)
	}
	topology := topologies[0]
	l, err := create(root, topology, IPv6)
	if err != nil {
		t.Fatal(err)
	}
	l.Namespaces = []string{"a", "b"}
	if err := l.setStatus(Up); err != nil {
		t.Fatal(err)
	}
	if _, err := create(root, topology, IPv4); err == nil ||
		!strings.Contains(err.Error(), "corelane lab down two-hosts") {
		t.Error(err)
	}
	back, err := open(root, topology.Name)
	if err != nil || back.Status != Up || back.Underlay != IPv6 || len(back.Namespaces) != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	// Killed between the directory and the file in it.
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if empty, err := open(root, "empty"); err != nil || len(empty.Namespaces) != 0 || empty.removeFiles() != nil {
		t.Errorf("%+v, %v", empty, err)
	}
	if err := l.removeFiles(); err != nil {
		t.Error(err)
	}
	unlock()
	if exists(root) {
		t.Error("the directory of all labs was left")
	}
}

// The second lock waits for the first one, also when that removes the directory.
func TestLockWaits(t *testing.T) {
	root := filepath.Join(t.TempDir(), "lab")
	unlock, err := lock(root)
	if err != nil {
		t.Fatal(err)
	}
	var held atomic.Bool
	held.Store(true)
	got := make(chan error, 1)
	go func() {
		unlock, err := lock(root)
		if err == nil && (held.Load() || !exists(root)) {
			err = errors.New("it got a lock that another one holds, or of a directory that does not exist")
		}
		if unlock != nil {
			unlock()
		}
		got <- err
	}()
	info, err := os.Stat(root)
	if err != nil {
		t.Fatal(err)
	}
	waits := regexp.MustCompile(fmt.Sprintf(`-> FLOCK .* %d [0-9a-f:]+:%d `, os.Getpid(),
		info.Sys().(*syscall.Stat_t).Ino))
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		locks, err := os.ReadFile("/proc/locks")
		return waits.Match(locks) || len(got) > 0, err
	}); err != nil {
		t.Fatalf("nobody waits for the lock: %v", err)
	}
	held.Store(false)
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
