// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// program starts a program that ends by itself after these seconds.
func program(t *testing.T, seconds string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", seconds)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails once it has ended
		_ = cmd.Wait()
	})
	return cmd
}

func watchThreads(t *testing.T, tids ...int) (*Report, error) {
	t.Helper()
	s, err := Open(t.Context(), Options{Root: "/", Window: 300 * time.Millisecond, NoTrace: true, Threads: tids})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Next(t.Context())
}

func TestThreadThatEndsInTheWindow(t *testing.T) {
	stays, ends := program(t, "100"), program(t, "0.1")
	r, err := watchThreads(t, stays.Process.Pid, ends.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Causes[0]; c.Kind != ThreadEnded || c.Worker != 1 || !strings.HasPrefix(r.Verdict, "sleep (") ||
		!strings.HasSuffix(r.Verdict, ") ended during the window") {
		t.Errorf("%+v; %s", c, r.Verdict)
	}
	for _, c := range r.Causes {
		if c.Kind == Nothing {
			t.Errorf("nothing is wrong: %s", r.Verdict)
		}
	}
	if _, err = watchThreads(t, ends.Process.Pid); err == nil || !strings.Contains(err.Error(), "there is no thread") {
		t.Errorf("a thread that had ended before: %v", err)
	}
}

func TestThreadThatStays(t *testing.T) {
	r, err := watchThreads(t, program(t, "100").Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Causes { // what else runs on its CPU meanwhile is not known
		if c.Kind == ThreadEnded {
			t.Errorf("%+v; %s", c, r.Verdict)
		}
	}
}

// A daemon that accepts no connection is observed by its process: this one, which listens and never answers.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/socket"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := Open(t.Context(), Options{Socket: path, Root: "/", Window: 100 * time.Millisecond, NoTrace: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := l.Close(); err != nil { // whoever asks once more finds nobody
		t.Fatal(err)
	}
	r, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Causes[0]; c.Kind != NoAnswer || c.PID != os.Getpid() || r.Daemon != os.Getpid() {
		t.Errorf("%+v; %s", c, r.Verdict)
	}
	if r, err := s.Next(t.Context()); err == nil {
		t.Errorf("the second window did not ask whether the daemon answers again: %+v", r)
	}
}
