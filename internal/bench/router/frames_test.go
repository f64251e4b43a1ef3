// SPDX-License-Identifier: Apache-2.0
package router_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// Every router must do the same work: each frame leaves by the right port, with the right headers. These tests send a
// few frames at a rate that any router keeps up with, and check each of them.
const (
	workFrames = 4000
	workRate   = 20000
)

// places returns where a test with real programs runs them. CORELANED names corelaned; corelane-gen is beside it.
func places(t *testing.T) (router.Env, generator.Place) {
	t.Helper()
	bin := filepath.Dir(os.Getenv("CORELANED"))
	if os.Geteuid() != 0 || bin == "." {
		t.Skip("needs root and CORELANED, with corelane-gen beside it")
	}
	if _, err := os.Stat(filepath.Join(bin, "corelane-gen")); err != nil {
		t.Skip(err)
	}
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs: router and generator poll")
	}
	dir, err := os.MkdirTemp("", "corelane-work-") // t.TempDir() has names that are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return router.Env{Dir: dir, CPUs: []int{1}, ControlCPU: 0, Bin: bin},
		generator.Place{Bin: bin, Dir: dir, CPU: 0, ControlCPU: 0, RoundTripCPU: -1}
}

// testRouter is a running router with a generator at its ports.
type testRouter struct {
	instance  router.Instance
	generator *generator.Generator
	profile   *apiv1.GeneratorProfile
}

func open(t *testing.T, r router.Router, s scenario.Scenario) *testRouter {
	t.Helper()
	env, place := places(t)
	if _, err := r.Version(t.Context()); err != nil && r.Name() != "corelane" { // it is not beside this program
		t.Skip(err)
	}
	if err := r.Supports(&s); err != nil {
		t.Skip(err)
	}
	b, err := scenario.Build(s, env.Dir, 1024)
	if err != nil {
		t.Fatal(err)
	}
	l := &testRouter{profile: profile(t, r, b)}
	if l.instance, err = r.Start(t.Context(), &env, b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the router first, as testbed.Bed does
		stopped(t, r.Name(), l.instance.Stop)
		if l.generator != nil {
			stopped(t, "generator", l.generator.Close)
		}
	})
	place.Netns = l.instance.Netns()
	if l.generator, err = generator.Start(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if devices := l.instance.Devices(); devices != nil {
		l.profile.Ports = devices
	}
	return l
}

// trial sends all frames and checks each of them.
func (l *testRouter) trial(t *testing.T) *apiv1.GeneratorWindow {
	t.Helper()
	if err := l.generator.Configure(t.Context(), l.profile); err != nil {
		t.Fatal(err)
	}
	if err := l.generator.WaitUp(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	spec := &apiv1.GeneratorTrial{Packets: workFrames, PacketsPerSecond: workRate, DrainMs: 1000,
		Verify: apiv1.GeneratorVerify_GENERATOR_VERIFY_ALL}
	var total *apiv1.GeneratorWindow
	for range 5 { // a router may lose frames right after its ports came up, and others may take the generator's CPU
		var err error
		if total, err = l.generator.Run(t.Context(), spec, nil); err != nil {
			t.Fatal(err)
		}
		if total.Lost == 0 && total.Sent >= workFrames/20 {
			break
		}
	}
	return total
}

// stopped stops what a test has started. A peer that crashes after its work, as Open vSwitch 3.1 does now and then when
// it ends, has a defect that is not ours.
func stopped(t *testing.T, name string, stop func() error) {
	if err := stop(); name == "ovs" && crashed(err) {
		t.Log(err)
	} else if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func crashed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSEGV
}

func profile(t *testing.T, r router.Router, b *scenario.Setup) *apiv1.GeneratorProfile {
	t.Helper()
	make := b.Profile
	if r.Unchanged() {
		make = b.Unchanged
	}
	p, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func judge(t *testing.T, p *apiv1.GeneratorProfile, w *apiv1.GeneratorWindow) {
	t.Helper()
	// On a shared CPU the generator skips frames when it is late.
	if w.Sent < workFrames/20 || w.Sent+w.Late+w.NoRoom != workFrames || w.Received != w.Sent {
		t.Errorf("%d sent, %d late, %d without room, %d received", w.Sent, w.Late, w.NoRoom, w.Received)
	}
	if bad := w.Lost + w.Reordered + w.Duplicated + w.Corrupt + w.Misplaced + w.WrongHeader; bad > 0 {
		t.Errorf("%d lost, %d reordered, %d duplicated, %d corrupt, %d misplaced, %d with a wrong header", w.Lost,
			w.Reordered, w.Duplicated, w.Corrupt, w.Misplaced, w.WrongHeader)
	}
	for _, s := range p.Streams {
		if s.Name == w.WrongStream && w.WrongHeader > 0 {
			t.Errorf("%s:\n got      % x\n expected % x\n mask     % x", s.Name, w.WrongFrame, s.Expected,
				s.ExpectedMask)
		}
	}
	if w.Foreign > 0 {
		t.Logf("%d foreign frames, the first of them % x", w.Foreign, w.ForeignFrame)
	}
}

// variants of a scenario. Together they have each option that changes the headers or the path of frames.
var variants = []struct {
	name   string
	change func(*scenario.Scenario)
}{
	{"plain", func(*scenario.Scenario) {}},
	{"mixed", func(s *scenario.Scenario) {
		s.Both, s.Sizes = true, scenario.IMIX
		if !s.Bridged {
			s.Routes = 1000
		}
	}},
	{"large6", func(s *scenario.Scenario) {
		s.IPv6, s.Underlay6, s.Tenants, s.Sizes = true, s.Overlay != scenario.Plain, 3, []int{9000, 78}
	}},
}

// Testpmd passes frames on unchanged, so one variant is enough to show that both ends of the generator agree.
func TestRoutersDoTheWork(t *testing.T) {
	for _, r := range []router.Router{&router.Corelane{}, &router.Testpmd{}} {
		for _, s := range scenario.List() {
			for _, v := range variants {
				s := s
				v.change(&s)
				t.Run(fmt.Sprintf("%s/%s/%s", r.Name(), s.Name, v.name), func(t *testing.T) { checkWork(t, r, s) })
				if r.Unchanged() {
					break
				}
			}
		}
	}
}

func checkWork(t *testing.T, r router.Router, s scenario.Scenario) {
	l := open(t, r, s)
	judge(t, l.profile, l.trial(t))
	if t.Failed() {
		n, err := l.instance.Counters(t.Context())
		t.Logf("drops %v, %v", n.Drops, err)
	}
}

// A router that does other work is detected. Here the expectation is changed instead of the router.
func TestOtherWorkIsFound(t *testing.T) {
	s, err := scenario.Find("vxlan-encap")
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, &router.Corelane{}, s)
	stream := l.profile.Streams[0]
	for what, at := range map[string]int{"outer MAC address": 5, "remote": 33, "VNI": 48, "inner MAC address": 55,
		"TTL": 72} {
		stream.Expected[at]++
		w := l.trial(t)
		if w.Received == 0 || w.WrongHeader != w.Received || w.WrongStream != stream.Name {
			t.Errorf("%s: of %d frames, %d are found wrong, in stream '%s'", what, w.Received, w.WrongHeader,
				w.WrongStream)
		}
		stream.Expected[at]--
	}
	stream.RxPort = "tenant0"
	if w := l.trial(t); w.Misplaced == 0 || w.Misplaced != w.Lost {
		t.Errorf("of %d frames out of the wrong port, %d are found", w.Lost, w.Misplaced)
	}
}
