// SPDX-License-Identifier: Apache-2.0
package router_test

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/wait"
)

// rig is a router with the generator at its ports.
type rig struct {
	router.Instance
	generator *generator.Generator
}

func newRig(t *testing.T, r router.Router, s scenario.Scenario) *rig {
	t.Helper()
	env, place := places(t)
	if _, err := r.Version(t.Context()); err != nil {
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
	t.Cleanup(func() { stopped(t, r.Name(), instance.Stop) })
	place.Netns = instance.Netns()
	g, err := generator.Start(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopped(t, "generator", g.Close) })
	p := profile(t, r, b)
	p.Ports = instance.Devices()
	if err := g.Configure(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitUp(t.Context(), wait.Patience); err != nil {
		t.Fatal(err)
	}
	return &rig{instance, g}
}

// pass sends frames and checks that all come back as expected.
func (x *rig) pass(t *testing.T) {
	t.Helper()
	w := work(t, x.run)
	if w.Sent != workFrames || w.Received != w.Sent || w.Lost+w.Reordered+w.Duplicated+w.Corrupt+w.Misplaced+
		w.WrongHeader+w.Foreign > 0 {
		counters, err := x.Counters(t.Context())
		t.Errorf("sent %d, received %d, lost %d, reordered %d, duplicated %d, corrupt %d, misplaced %d, wrong header "+
			"%d, foreign %d; %v, %v\nwrong: %s %s\nforeign: %s",
			w.Sent, w.Received, w.Lost, w.Reordered, w.Duplicated, w.Corrupt, w.Misplaced, w.WrongHeader, w.Foreign,
			counters.Drops, err,
			w.WrongStream, hex.EncodeToString(w.WrongFrame), hex.EncodeToString(w.ForeignFrame))
	}
}

func (x *rig) run(t *testing.T, drain time.Duration) *apiv1.GeneratorWindow {
	t.Helper()
	w, err := runHandful(t.Context(), x.generator, drain)
	if err != nil {
		if end := x.Stop(); crashed(end) { // a peer that crashed in its work tells nothing about the adapter
			t.Skip(end)
		}
		t.Fatal(err)
	}
	return w
}

func TestPeersDoTheScenariosWork(t *testing.T) {
	for _, r := range []router.Router{&router.OVS{}, &router.Linux{}} {
		for _, s := range rounds.Pairs(works(r.Name()), settings) {
			t.Run(fmt.Sprintf("%s/%s/%s", r.Name(), s.Name, s.Summary), func(t *testing.T) {
				if err := r.Supports(&s); err != nil {
					t.Skip(err)
				}
				newRig(t, r, s).pass(t)
			})
		}
	}
}

// works returns the scenarios of the catalogue and their variants, without what a peer never supports: that is in
// TestOVSSupports and TestLinuxSupports.
func works(name string) (list []scenario.Scenario) {
	for _, s := range scenario.List() {
		s.Both = true
		for _, v := range []struct {
			name   string
			change func(*scenario.Scenario)
		}{
			{"plain", func(*scenario.Scenario) {}},
			{"tracked", func(s *scenario.Scenario) { s.Stateful, s.Tenants = true, 3 }},
			{"of IPv6", func(s *scenario.Scenario) {
				s.IPv6, s.Underlay6, s.Tenants, s.Sizes = true, s.Overlay != scenario.Plain, 2, []int{100}
			}},
			{"of many routes", func(s *scenario.Scenario) {
				s.Routes, s.Sizes, s.Both = 1000, append([]int{9000}, scenario.IMIX...), false
			}},
		} {
			s := s
			v.change(&s)
			s.Summary = v.name
			never := s.Overlay == scenario.MPLSoUDP || name == "linux" && (s.Bridged && s.Stateful ||
				s.Overlay == scenario.MPLSoGRE || s.Overlay == scenario.Geneve)
			if !never && s.Validate() == nil {
				list = append(list, s)
			}
		}
	}
	return list
}
