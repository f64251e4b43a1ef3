// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/wait"
)

// Tests with a real corelaned in real namespaces. They need root, and the path of the program in CORELANED.

const (
	testLab    = "selftest"
	envRoot    = "LAB_TEST_ROOT" // this process is a "lab up" that its parent will kill
	envDaemon  = "CORELANED"
	killRounds = 12
	testLimit  = time.Minute // for what needs a moment
)

func testTopology() Topology {
	t := topologies[0]
	t.Name = testLab
	return t
}

func TestMain(m *testing.M) {
	if root := os.Getenv(envRoot); root != "" {
		_, err := BringUp(context.Background(), testTopology(), Options{Root: root, Daemon: os.Getenv(envDaemon),
			MemoryMB: 128})
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func needSystem(t *testing.T) Options {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(envDaemon) == "" {
		t.Skip("needs root and " + envDaemon)
	}
	dir, err := os.MkdirTemp("", "lab") // short, for the paths of sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // for the daemons' user
		t.Fatal(err)
	}
	return Options{Root: filepath.Join(dir, "run", "lab"), Daemon: os.Getenv(envDaemon), MemoryMB: 128,
		Say: func(s string) {
			t.Log(s)
		}}
}

// residue lists what is left of the test's lab on this machine. The kernel ends the helper of a daemon that has ended,
// which may take a moment.
func residue(t *testing.T, root string) (left []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	_ = wait.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		left = residueNow(root)
		return len(left) == 0, nil
	})
	return left
}

func residueNow(root string) []string {
	var left []string
	names, _ := filepath.Glob(filepath.Join(namespace.Dir, "cl-"+testLab+"-*"))
	left = append(left, names...)
	if exists(filepath.Join(root, testLab)) {
		left = append(left, root)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), filepath.Join(root, testLab)) {
			left = append(left, path+": "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return left
}

// checkUsers fails unless each router runs as the unprivileged user.
func checkUsers(t *testing.T, l *Lab) {
	t.Helper()
	for _, h := range l.corelaneHosts() {
		info, err := os.Stat(l.Socket(h))
		if err != nil {
			t.Fatal(err)
		}
		owner, err := user.Lookup(daemonUser)
		if err != nil {
			t.Fatal(err)
		}
		if uid := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid); uid != owner.Uid {
			t.Errorf("%s belongs to user %s, not to %s (%s)", l.Socket(h), uid, daemonUser, owner.Uid)
		}
	}
}

// checkPath fails unless all pings are answered and the largest packet is as large as it should be. A ping may be late,
// or lost at a kernel's queue, while others have the CPUs: what is lost otherwise is lost each time.
func checkPath(t *testing.T, l *Lab, path Path, over, family Underlay) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	want, err := l.ExpectedMTU(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	var p Ping
	var mtu int
	try := func() (bool, error) {
		p, mtu = Ping{}, 0
		if p, err = l.Ping(ctx, path, family); err == nil {
			mtu, err = l.ProbeMTU(ctx, path, family)
		}
		return err == nil && p.Lost() == 0 && mtu == want, nil
	}
	if late := wait.Until(ctx, time.Second, try); late != nil {
		t.Errorf("%s over %s: %+v, MTU %d, not %d: %v, %v", family, over, p, mtu, want, err, late)
	}
}

func TestLabPassesTraffic(t *testing.T) {
	o := needSystem(t)
	l, err := BringUp(t.Context(), testTopology(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Ledger.tearDown(o.Say); err != nil {
			t.Error(err)
		}
		if left := residue(t, o.Root); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}()
	if _, err := BringUp(t.Context(), testTopology(), o); err == nil ||
		!strings.Contains(err.Error(), "is up already") {
		t.Errorf("a second one: %v", err)
	}
	checkUsers(t, l)
	path := l.paths(l.Networks[0])[0]
	for _, u := range []Underlay{IPv4, IPv6} {
		if err := l.Configure(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		for _, family := range []Underlay{IPv4, IPv6} {
			checkPath(t, l, path, u, family)
		}
	}
}

// Whenever "lab up" is killed, "lab down" leaves nothing behind.
func TestNothingIsLeftAfterKill(t *testing.T) {
	o := needSystem(t)
	for round := range killRounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envRoot+"="+o.Root)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(round*round) * 6 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if !exists(filepath.Join(o.Root, testLab)) {
			continue // it had not begun
		}
		if err := TakeDown(testLab, o); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if left := residue(t, o.Root); len(left) > 0 {
			t.Fatalf("round %d: left behind: %v", round, left)
		}
	}
}

// A lab can be removed after its corelaned was killed.
func TestDownAfterKill(t *testing.T) {
	o := needSystem(t)
	l, err := BringUp(t.Context(), testTopology(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Ledger.Processes {
		if err := p.signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if err := TakeDown(testLab, o); err != nil {
		t.Error(err)
	}
	if left := residue(t, o.Root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := TakeDown(testLab, o); err == nil || !strings.Contains(err.Error(), "is not up") {
		t.Errorf("down twice: %v", err)
	}
}

// A daemon that does not start is reported with the end of its log, and the lab is removed.
func TestUpFailsCleanly(t *testing.T) {
	o := needSystem(t)
	script := filepath.Join(t.TempDir(), "corelaned")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no memory today\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Daemon = script
	_, err := BringUp(t.Context(), testTopology(), o)
	if err == nil || !strings.Contains(err.Error(), "no memory today") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%v", err)
	}
	if left := residue(t, o.Root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
