// SPDX-License-Identifier: Apache-2.0
package router_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// What all routers have in common is the work: each frame comes out where it should, with the headers that it should have.
// Few frames at a rate that any router keeps up with, each of them looked at.
const (
	workFrames = 4000
	workRate   = 20000
)

// places of a test with real routers: CORELANED's folder has corelane-gen, too.
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

// work runs a scenario on a router and compares what comes out.
func work(t *testing.T, r router.Router, s scenario.Scenario) {
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
	instance, err := r.Start(t.Context(), &env, b)
	if err != nil {
		t.Fatal(err)
	}
	defer stopped(t, r.Name(), instance.Stop)
	place.Netns = instance.Netns()
	g, err := generator.Start(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	defer stopped(t, "generator", g.Close)
	p := profile(t, r, b)
	if devices := instance.Devices(); devices != nil {
		p.Ports = devices
	}
	if err := g.Configure(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitUp(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	spec := &apiv1.GeneratorTrial{Packets: workFrames, PacketsPerSecond: workRate, DrainMs: 3000, Verify: apiv1.GeneratorVerify_GENERATOR_VERIFY_ALL}
	var total *apiv1.GeneratorWindow
	for range 3 { // a router may lose frames in the first moments after its ports came up
		if total, err = g.Run(t.Context(), spec, nil); err != nil {
			t.Fatal(err)
		}
		if total.Lost == 0 {
			break
		}
	}
	judge(t, p, total)
	if t.Failed() {
		n, err := instance.Counters(t.Context())
		t.Logf("drops %v, %v", n.Drops, err)
	}
}

func stopped(t *testing.T, name string, stop func() error) {
	if err := stop(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
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
	// On a CPU that others have, too, the generator gives up frames that it is too late for.
	if w.Sent < workFrames/20 || w.Sent+w.Late+w.NoRoom != workFrames || w.Received != w.Sent {
		t.Errorf("%d sent, %d late, %d without room, %d received", w.Sent, w.Late, w.NoRoom, w.Received)
	}
	if bad := w.Lost + w.Reordered + w.Duplicated + w.Corrupt + w.Misplaced + w.WrongHeader; bad > 0 {
		t.Errorf("%d lost, %d reordered, %d duplicated, %d corrupt, %d misplaced, %d with a wrong header", w.Lost, w.Reordered, w.Duplicated,
			w.Corrupt, w.Misplaced, w.WrongHeader)
	}
	for _, s := range p.Streams {
		if s.Name == w.WrongStream && w.WrongHeader > 0 {
			t.Errorf("%s:\n got      % x\n expected % x\n mask     % x", s.Name, w.WrongFrame, s.Expected, s.ExpectedMask)
		}
	}
	if w.Foreign > 0 {
		t.Logf("%d frames that nobody sent, the first of them % x", w.Foreign, w.ForeignFrame)
	}
}

// variants of a scenario: together they have each option that changes what frames look like or where they go.
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

// Options are the scenario's matter: with testpmd, a scenario as it is shows that both ends of the generator agree.
func TestWork(t *testing.T) {
	for _, r := range []router.Router{&router.Corelane{}, &router.Testpmd{}} {
		for _, s := range scenario.List() {
			for _, v := range variants {
				s := s
				v.change(&s)
				t.Run(fmt.Sprintf("%s/%s/%s", r.Name(), s.Name, v.name), func(t *testing.T) { work(t, r, s) })
				if r.Unchanged() {
					break
				}
			}
		}
	}
}
