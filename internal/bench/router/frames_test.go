// SPDX-License-Identifier: Apache-2.0
package router_test

import (
	"bytes"
	"context"
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
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/wait"
)

// Every router must do the same work: each frame leaves by the right port, with the right headers. These tests send
// frames by the handful and wait for each handful: rings and queues hold it, so that no frame is lost because a program
// did not get its CPU, however long that takes.
const (
	handful    = 64
	workFrames = 32 * handful
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

// configure gives the generator its streams, and waits for its ports.
func (l *testRouter) configure(t *testing.T) {
	t.Helper()
	if err := l.generator.Configure(t.Context(), l.profile); err != nil {
		t.Fatal(err)
	}
	if err := l.generator.WaitUp(t.Context(), wait.Patience); err != nil {
		t.Fatal(err)
	}
}

// run is a trial whose frames are sent as the ports take them.
func (l *testRouter) run(t *testing.T, drain time.Duration) *apiv1.GeneratorWindow {
	t.Helper()
	w, err := runHandful(t.Context(), l.generator, drain)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func runHandful(ctx context.Context, g *generator.Generator, drain time.Duration) (*apiv1.GeneratorWindow, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait.Patience+drain, errors.New("a port takes no frames"))
	defer cancel()
	return g.Run(ctx, &apiv1.GeneratorTrial{Packets: handful, DrainMs: uint32(drain.Milliseconds()),
		Verify: apiv1.GeneratorVerify_GENERATOR_VERIFY_ALL}, nil)
}

// work sends all frames and returns their sum. The generator waits for the frames that are missing, and no longer. A
// router may lose frames right after its ports came up: the work begins when a handful has come back.
func work(t *testing.T, run func(*testing.T, time.Duration) *apiv1.GeneratorWindow) *apiv1.GeneratorWindow {
	t.Helper()
	var first *apiv1.GeneratorWindow
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		first = run(t, time.Second)
		return first.Lost == 0, nil
	}); err != nil {
		return first
	}
	sum := &apiv1.GeneratorWindow{}
	for sum.Sent < workFrames && sum.Lost == 0 {
		add(sum, run(t, wait.Patience))
	}
	return sum
}

func add(sum, w *apiv1.GeneratorWindow) {
	if sum.WrongHeader == 0 {
		sum.WrongFrame, sum.WrongStream = w.WrongFrame, w.WrongStream
	}
	sum.Sent += w.Sent
	sum.Received += w.Received
	sum.Lost += w.Lost
	sum.Reordered += w.Reordered
	sum.Duplicated += w.Duplicated
	sum.Corrupt += w.Corrupt
	sum.Misplaced += w.Misplaced
	sum.WrongHeader += w.WrongHeader
	if ofRouter(w) {
		return
	}
	if sum.Foreign == 0 {
		sum.ForeignFrame = w.ForeignFrame
	}
	sum.Foreign += w.Foreign
}

// ofRouter tells whether a foreign frame is one of those that IPv6 sends by itself, now and then, to a multicast group.
func ofRouter(w *apiv1.GeneratorWindow) bool {
	return bytes.HasPrefix(w.ForeignFrame, []byte{0x33, 0x33})
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
	if w.Sent != workFrames || w.Received != w.Sent {
		t.Errorf("%d sent, %d received", w.Sent, w.Received)
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
		var all []scenario.Scenario
		for _, s := range scenario.List() {
			for _, v := range variants {
				s := s
				v.change(&s)
				s.Summary = v.name
				all = append(all, s)
				if r.Unchanged() {
					break
				}
			}
		}
		for _, s := range rounds.Pairs(all, settings) {
			t.Run(fmt.Sprintf("%s/%s/%s", r.Name(), s.Name, s.Summary), func(t *testing.T) { checkWork(t, r, s) })
		}
	}
}

// settings of a scenario whose summary is its variant.
func settings(s scenario.Scenario) []string {
	return []string{"overlay " + string(s.Overlay), fmt.Sprint("bridged ", s.Bridged), string(s.Direction), s.Summary}
}

func checkWork(t *testing.T, r router.Router, s scenario.Scenario) {
	l := open(t, r, s)
	l.configure(t)
	judge(t, l.profile, work(t, l.run))
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
		l.configure(t)
		w := work(t, l.run)
		if w.Received == 0 || w.WrongHeader != w.Received || w.WrongStream != stream.Name {
			t.Errorf("%s: of %d frames, %d are found wrong, in stream '%s'", what, w.Received, w.WrongHeader,
				w.WrongStream)
		}
		stream.Expected[at]--
	}
	stream.RxPort = "tenant0"
	l.configure(t)
	var w *apiv1.GeneratorWindow
	if err := wait.Patiently(t.Context(), func() (bool, error) { // a frame that comes too late is lost only
		w = l.run(t, time.Second)
		return w.Sent == handful && w.Lost == handful && w.Misplaced == handful, nil
	}); err != nil {
		t.Errorf("of %d frames out of the wrong port, %d are found: %v", w.Lost, w.Misplaced, err)
	}
}
