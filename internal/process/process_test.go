// SPDX-License-Identifier: Apache-2.0
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/wait"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Command{Name: "test", Argv: []string{"sh", "-c", script}, Log: filepath.Join(t.TempDir(), "log"),
		CPUs: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// processState is R, S, T, ..., or "" when the process is gone.
func processState(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
}

func exists(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

func TestProcessLifeAndPause(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	p := shell(t, "grep Cpus_allowed_list /proc/self/status; touch "+ready+"; while :; do :; done")
	if err := p.Await(t.Context(), wait.Patience, exists(ready)); err != nil {
		t.Fatal(err)
	}
	if log := lastLines(p.command.Log); !strings.HasSuffix(log, "\t0") {
		t.Errorf("not on CPU 0: %q", log)
	}
	for range 3 {
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if s := processState(p.Pid); s != "T" {
			t.Errorf("paused, but in state %q", s)
		}
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
		if s := processState(p.Pid); s == "T" {
			t.Error("resumed, but stopped")
		}
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if s := processState(p.Pid); s != "" {
		t.Errorf("stopped, but in state %q", s)
	}
}

func TestProcessWithChildren(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	p := shell(t, "trap '' TERM; sleep 60 & echo $! >"+ready+".new; mv "+ready+".new "+ready+
		"; trap 'exit 0' TERM; wait")
	if err := p.Await(t.Context(), wait.Patience, exists(ready)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || processState(child) == "" {
		t.Fatalf("child %q in state %q", text, processState(child))
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		s := processState(child)
		return s == "" || s == "Z", nil
	}); err != nil {
		t.Fatal("the child that ignores SIGTERM is alive")
	}
}

func TestProcessThatEnds(t *testing.T) {
	p := shell(t, "echo no such device; exit 7")
	err := p.Await(t.Context(), wait.Patience, func(context.Context) error { return errors.New("not yet") })
	for _, want := range []string{"test: has ended", "exit status 7", "no such device"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q in it", err, want)
		}
	}
	if err := p.Pause(); err == nil {
		t.Error("a process that has ended was paused")
	}
	if err := p.Stop(); err == nil {
		t.Error("no error says that it ended by itself")
	}
}

// The kernel reports an end later than it happens: Stop names an end that it meets on its way.
func TestStopOfAProcessThatDies(t *testing.T) {
	for range 50 {
		p := shell(t, "while :; do :; done")
		if err := syscall.Kill(p.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
			t.Fatalf("the error does not name the end: %v", err)
		}
	}
}

// The end of a process is not noticed late where the process, or another, takes its CPU.
func TestNoThreadStaysOnTheCPUs(t *testing.T) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	shell(t, "sleep 60")
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	confined := ""
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		confined = ""
		for _, task := range tasks {
			var set unix.CPUSet
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				return false, err
			}
			if unix.SchedGetaffinity(tid, &set) == nil && set != own { // it may have ended
				confined = task.Name()
			}
		}
		return confined == "", nil
	}); err != nil {
		t.Fatalf("thread %s has other CPUs than this program: %v", confined, err)
	}
}

func TestProcessThatIsLate(t *testing.T) {
	p := shell(t, "echo waiting; sleep 60")
	err := p.Await(t.Context(), 100*time.Millisecond, func(context.Context) error { return errors.New("no socket") })
	for _, want := range []string{"not ready after 100ms", "no socket", "waiting"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q in it", err, want)
		}
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for name, c := range map[string]Command{
		"program":   {Argv: []string{"/nonexistent/router"}, Log: log},
		"log":       {Argv: []string{"true"}, Log: "/nonexistent/log"},
		"CPU":       {Argv: []string{"true"}, Log: log, CPUs: []int{1023}},
		"namespace": {Argv: []string{"true"}, Log: log, Netns: "no-such-namespace"},
	} {
		if p, err := Start(c); err == nil {
			t.Errorf("%s: no error", name)
			_ = p.Stop()
		}
	}
}

// A process begins after it was enrolled, and never when that fails.
func TestEnroll(t *testing.T) {
	dir := t.TempDir()
	began := filepath.Join(dir, "began")
	var enrolled int
	c := Command{Name: "test", Argv: []string{"sh", "-c", "echo $$ >" + began + ".new; mv " + began + ".new " + began +
		"; sleep 60"},
		Log: filepath.Join(dir, "log"), Detached: true}
	c.Enroll = func(pid int) error {
		enrolled = pid
		time.Sleep(50 * time.Millisecond)
		if _, err := os.Stat(began); err == nil {
			t.Error("it began before it was enrolled")
		}
		return nil
	}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), wait.Patience, exists(began)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(began)
	if err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(enrolled) || enrolled != p.Pid {
		t.Errorf("enrolled %d, started %d, '%s' began; %v", enrolled, p.Pid, text, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(began); err != nil {
		t.Fatal(err)
	}
	c.Enroll = func(pid int) error { enrolled = pid; return errors.New("disk full") }
	if _, err := Start(c); err == nil || err.Error() != "test: disk full" {
		t.Errorf("%v", err)
	}
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		return processState(enrolled) == "", nil
	}); err != nil {
		t.Fatal("a process that was not enrolled is alive")
	}
	if _, err := os.Stat(began); err == nil {
		t.Error("it began without being enrolled")
	}
}
