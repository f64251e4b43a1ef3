// SPDX-License-Identifier: Apache-2.0
package router_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/wait"
)

func find(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOVSGoesOnAfterAPause(t *testing.T) {
	x := newRig(t, &router.OVS{}, find(t, "vxlan-encap"))
	x.pass(t)
	before, err := x.Counters(t.Context())
	if err != nil || before.Busy == 0 || before.Idle == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := x.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if err := x.Resume(); err != nil {
		t.Fatal(err)
	}
	x.pass(t)
	if after, err := x.Counters(t.Context()); err != nil || after.Busy <= before.Busy {
		t.Errorf("%+v, then %+v, %v", before, after, err)
	}
}

// ours lists the namespaces of this process, and the processes of its Open vSwitch.
func ours(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("/run/netns/corelane-bench-" + strconv.Itoa(os.Getpid()) + "-*")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, _ := os.ReadFile(path) // it may have ended
		name, rest, _ := strings.Cut(string(text), ") ")
		words := strings.Fields(rest)
		if len(words) > 1 && words[1] == strconv.Itoa(os.Getpid()) && strings.Contains(name, "(ovs") {
			list = append(list, name)
		}
	}
	return list
}

func TestStartThatFailsLeavesNothing(t *testing.T) {
	env, _ := places(t)
	if len(ours(t)) > 0 {
		t.Fatalf("before: %v", ours(t))
	}
	for _, c := range []struct {
		router router.Router
		spoil  func(*scenario.Port)
		want   string
	}{
		{&router.OVS{}, func(p *scenario.Port) { p.Socket = "/nonexistent/memif.sock" }, "ovs: port wire: "},
		{&router.Linux{}, func(p *scenario.Port) {
			p.Name = "longer-than-an-interface"
		}, `linux: ip -batch -: exit status 255: Error: argument "longer-than-an-interface"`},
	} {
		if _, err := c.router.Version(t.Context()); err != nil {
			t.Log(err)
			continue
		}
		b, err := scenario.Build(find(t, "vxlan-encap"), env.Dir, 1024)
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(&b.Ports[len(b.Ports)-1])
		i, err := c.router.Start(t.Context(), &env, b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.router.Name(), err, c.want)
		}
		if err == nil {
			_ = i.Stop()
		}
		if left := ours(t); len(left) > 0 {
			t.Errorf("%s left %v", c.router.Name(), left)
		}
	}
}

func TestOVSThatCrashesIsCleanedUp(t *testing.T) {
	env, _ := places(t)
	r := &router.OVS{}
	if _, err := r.Version(t.Context()); err != nil {
		t.Skip(err)
	}
	b, err := scenario.Build(find(t, "vxlan-encap"), env.Dir, 1024)
	if err != nil {
		t.Fatal(err)
	}
	i, err := r.Start(t.Context(), &env, b)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(ours(t)); n != 3 {
		t.Errorf("runs: %v; want a namespace and two processes", ours(t))
	}
	text, err := os.ReadFile(filepath.Join(env.Dir, "daemon.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := wait.Patiently(t.Context(), func() (bool, error) { return len(ours(t)) < 3, nil }); err != nil {
		t.Fatal(err)
	}
	if err := i.Stop(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the error does not name the crash: %v", err)
	}
	sockets := slices.DeleteFunc([]string{b.Ports[0].Socket, b.Ports[1].Socket}, func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	if left := append(ours(t), sockets...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
