// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology/topologytest"
	"github.com/corelane/corelane/internal/verify"
)

func finding(id string, items ...verify.Item) verify.Finding {
	f := verify.Finding{ID: id, Evidence: items}
	for _, i := range items {
		f.Verdict = max(f.Verdict, i.Verdict)
	}
	return f
}

func thread(verdict verify.Verdict, pinned bool) verify.Item {
	return verify.Item{Verdict: verdict, Subject: "thread 7", Text: "hog", Pinned: pinned, PID: 7,
		Fix: &verify.Fix{PID: 7, TID: 7, CPUs: cpuset.Of(0)}}
}

func TestDrifts(t *testing.T) {
	open := finding("isolation.state", verify.Item{Verdict: verify.Warn, Subject: "isolation", Text: "no isolation"})
	for name, c := range map[string]struct {
		findings []verify.Finding
		want     int
	}{
		"a thread on isolated CPUs": {[]verify.Finding{finding("threads.foreign",
			thread(verify.Warn, false))}, 1},
		// the state only
		"a floating thread, nothing isolated": {[]verify.Finding{open,
			finding("threads.foreign", thread(verify.Fail, false))}, 1},
		"a pinned thread, nothing isolated": {[]verify.Finding{open,
			finding("threads.foreign", thread(verify.Fail, true))}, 2},
		"an item that passes": {[]verify.Finding{finding("threads.foreign",
			thread(verify.Pass, true))}, 0},
		"an item that could not be read": {[]verify.Finding{finding("irq.affinity",
			thread(verify.Unknown, true))}, 0},
		"a check of boot arguments, no subject": {[]verify.Finding{finding("boot.nohz_full",
			verify.Item{Verdict: verify.Warn, Text: "x"})}, 0},
		"counters": {[]verify.Finding{finding("irq.counts", thread(verify.Warn, true))}, 0},
	} {
		if got := len(drifts(c.findings)); got != c.want {
			t.Errorf("%s: %d drifts, want %d", name, got, c.want)
		}
	}
}

func TestTracker(t *testing.T) {
	now := time.Unix(1000, 0)
	known := drifts([]verify.Finding{finding("threads.foreign", thread(verify.Fail, true))})
	cause := func(drift) string { return "bash" }
	var tr tracker
	kinds := func(found map[key]drift) (s string) {
		now = now.Add(time.Second)
		for _, e := range tr.update(now, found, cause) {
			s += string(e.Kind) + " "
		}
		return s
	}
	for n, c := range []struct {
		found map[key]drift
		want  string
	}{{known, "initial "}, {known, ""}, {nil, "cleared "}, {nil, ""}, {known, "drift "}, {known, ""}} {
		if got := kinds(c.found); got != c.want {
			t.Errorf("look %d: '%s', want '%s'", n, got, c.want)
		}
	}
	if d := tr.known[key{"threads.foreign", "thread 7"}]; d.initial || d.since.Unix() != 1005 {
		t.Errorf("%+v", d)
	}
}

func TestLimiter(t *testing.T) {
	l, k, now := limiter{}, key{"a", "b"}, time.Unix(1000, 0)
	for n := range oscillationRepairs {
		if ok, oscillating := l.allow(k, now.Add(time.Duration(n)*time.Second)); !ok || oscillating {
			t.Fatalf("repair %d: %t, %t", n, ok, oscillating)
		}
	}
	now = now.Add(oscillationRepairs * time.Second)
	if ok, oscillating := l.allow(k, now); ok || !oscillating {
		t.Fatal("the oscillation was not noticed")
	}
	if ok, oscillating := l.allow(k, now.Add(oscillationPause/2)); ok || oscillating {
		t.Fatal("no pause, or noticed twice")
	}
	if ok, _ := l.allow(key{"a", "other"}, now); !ok {
		t.Fatal("repairs of another thing pause too")
	}
	if ok, _ := l.allow(k, now.Add(oscillationPause)); !ok {
		t.Fatal("the pause does not end")
	}
	// Repairs that are spread over more than a minute are not an oscillation.
	slow := limiter{}
	for n := range 50 {
		if ok, _ := slow.allow(k, now.Add(time.Duration(n)*15*time.Second)); !ok {
			t.Fatalf("slow repair %d was refused", n)
		}
	}
	// Nor are repairs that fail, such as a move to a CPU that is offline; they are not repeated at once.
	offline := limiter{}
	for n := range 50 {
		at := now.Add(time.Duration(n) * failurePause)
		if ok, oscillating := offline.allow(k, at); !ok || oscillating {
			t.Fatalf("attempt %d: %t, %t", n, ok, oscillating)
		}
		offline.failed(k, at)
		if ok, _ := offline.allow(k, at.Add(failurePause/2)); ok {
			t.Fatal("a repair that failed is repeated at once")
		}
	}
	if slow.forget(now.Add(time.Hour)); len(slow) != 0 {
		t.Error("old repairs are not forgotten")
	}
}

func TestChange(t *testing.T) {
	c := change(drift{Item: thread(verify.Fail, true)})
	if c.Kind != cores.Affinity || c.TID != 7 || c.New != "0" {
		t.Errorf("%+v", c)
	}
	w := verify.Item{Fix: &verify.Fix{Path: "/proc/irq/9/smp_affinity_list", Value: "0"}}
	if c = change(drift{Item: w}); c.Kind != cores.Write || c.Path != "proc/irq/9/smp_affinity_list" ||
		c.Form != cores.List {
		t.Errorf("%+v", c)
	}
}

func TestTools(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &toolLog{}
	l.add(tool{now, 50, "taskset -pc 1 812", "bash (49)"})
	l.add(tool{now, 51, "ethtool -L eth4 combined 2", "bash (49)"})
	for _, c := range []struct {
		subject string
		tid     int
		after   time.Duration
		want    string
	}{
		{"thread 812", 812, time.Second, "taskset -pc 1 812"},
		{"thread 81", 81, time.Second, ""},
		{"thread 812", 812, time.Minute, ""},
		{"rps_cpus eth4/rx-0", 0, time.Second, "ethtool"},
		{"rps_cpus eth5/rx-0", 0, time.Second, ""},
	} {
		got := l.about(c.subject, c.tid, now.Add(c.after))
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s after %v: '%s', want '%s'", c.subject, c.after, got, c.want)
		}
	}
}

func TestMask(t *testing.T) {
	if got := bitsOf("\x03\x80\x00\x01"); got.String() != "0-1,15,24" {
		t.Error(got)
	}
	if mask, ok := affinity(0); !ok || bitsOf(mask).Empty() {
		t.Error("our own CPUs are unknown")
	}
}

func execMessage(pid uint32) []byte {
	m := make([]byte, nlmsgHeader+cnHeader+eventHeader+8)
	binary.NativeEndian.PutUint32(m[nlmsgHeader+cnHeader:], procExec)
	binary.NativeEndian.PutUint32(m[nlmsgHeader+cnHeader+eventHeader+4:], pid)
	return m
}

func FuzzExec(f *testing.F) {
	f.Add(execMessage(77))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, message []byte) {
		if pid := execOf(message); pid != 0 && len(message) < nlmsgHeader+cnHeader+eventHeader+8 {
			t.Error("read behind the end")
		}
	})
}

func TestExec(t *testing.T) {
	if execOf(execMessage(77)) != 77 || execOf(execMessage(77)[:40]) != 0 || execOf(make([]byte, 100)) != 0 {
		t.Error("the start of a program is not recognised")
	}
	if s := subscription(true); len(s) != nlmsgHeader+cnHeader+8 || binary.NativeEndian.Uint32(s) != uint32(len(s)) {
		t.Errorf("%x", s)
	}
}

// A plan for another machine is refused: it would move threads off CPUs that mean nothing here.
func TestPlanOfAnotherMachine(t *testing.T) {
	m := topologytest.Machine(t, "four-socket")
	p, err := plan.Make(m, plan.Request{Forwarding: 4})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = Watch(ctx, Options{Plan: p, Every: time.Hour, Report: func(e Event) { t.Errorf("reported: %s", e) }})
	if !input.Is(err) || !strings.Contains(err.Error(), "it was made for quad, not for ") {
		t.Errorf("%v", err)
	}
}
