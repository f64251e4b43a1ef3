// SPDX-License-Identifier: Apache-2.0
package router

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/state"
)

func setup(t *testing.T, name, dir string, change func(*scenario.Scenario)) *scenario.Setup {
	t.Helper()
	s, err := scenario.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&s)
	}
	b, err := scenario.Build(s, dir, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The state is valid when it is written to a file and loaded.
func TestCorelaneStateIsValid(t *testing.T) {
	for _, s := range scenario.List() {
		for _, v6 := range []bool{false, true} {
			b := setup(t, s.Name, "/run/bench", func(s *scenario.Scenario) {
				s.IPv6, s.Underlay6, s.Tenants, s.Sizes, s.Both = v6, v6 && s.Overlay != scenario.Plain, 3, []int{100},
					true
			})
			var text strings.Builder
			want := corelaneState(b)
			if err := state.Write(&text, want); err != nil {
				t.Fatal(err)
			}
			got, err := state.Load("node.yaml", []byte(text.String()))
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
			} else if ops := state.Diff(want, got); len(ops) > 0 {
				t.Errorf("%s: %v", s.Name, ops)
			}
		}
	}
}

func TestCorelaneRoutes(t *testing.T) {
	b := setup(t, "mplsogre-decap", "/run/bench", func(s *scenario.Scenario) { s.Routes, s.Flows = 100000, 100000 })
	count := map[uint32]int{}
	for _, r := range corelaneState(b).Routes {
		count[r.Nexthop]++
	}
	if count[wireNexthop] != 1 || count[tunnelNexthop] != 1 || count[portNexthop] != 100000 {
		t.Errorf("routes by next hop: %v", count)
	}
}

func TestCorelaneOptions(t *testing.T) {
	env := &Env{Dir: "/run/bench", CPUs: []int{2, 3}, ControlCPU: 1, Memory: 512}
	got := strings.Join(corelanedOptions(env, setup(t, "vxlan-encap", "/run/bench", nil), "/run/bench/s"), " ")
	want := "--run-dir /run/bench --socket /run/bench/s --worker-cpus 2,3 --control-cpus 1 --memory 512 --router-mac " +
		"02:c1:00:00:01:01"
	if got != want {
		t.Errorf("%s\nnot %s", got, want)
	}
	env.Memory = 0
	got = strings.Join(corelanedOptions(env, setup(t, "routed", "/run/bench", nil), "/run/bench/s"), " ")
	if want := "--run-dir /run/bench --socket /run/bench/s --worker-cpus 2,3 --control-cpus 1 --no-huge"; got != want {
		t.Errorf("%s\nnot %s", got, want)
	}
}

func TestCorelaneSupports(t *testing.T) {
	for _, bridged := range []bool{false, true} {
		if err := new(Corelane).Supports(&scenario.Scenario{Stateful: true, Bridged: bridged}); err != nil {
			t.Error(err)
		}
	}
}

// Ports keep flows, and have the rules and limits of the scenario, whether they are routed or bridged.
func TestCorelaneTracksFlows(t *testing.T) {
	for _, name := range []string{"routed", "bridged"} {
		s := corelaneState(setup(t, name, "/run/bench", func(s *scenario.Scenario) {
			s.Stateful, s.Rules, s.FlowLimit = true, 2, 100
		}))
		for _, p := range s.Ports {
			if !p.Stateful || p.IngressRules != ruleList || p.EgressRules != ruleList || p.FlowLimit != 100 {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}

// environment returns that of a test with real routers.
func environment(t *testing.T) *Env {
	t.Helper()
	program := os.Getenv("CORELANED")
	if os.Geteuid() != 0 || program == "" {
		t.Skip("needs root and CORELANED")
	}
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	return &Env{Dir: t.TempDir(), CPUs: []int{1}, ControlCPU: 0, Bin: filepath.Dir(program)}
}

// corelaned accepts the state, and reports its counters.
func TestCorelaneStarts(t *testing.T) {
	for _, name := range []string{"mplsoudp-decap", "vxlan-bridge-encap", "routed"} {
		t.Run(name, func(t *testing.T) {
			env := environment(t)
			b := setup(t, name, env.Dir, func(s *scenario.Scenario) {
				if !s.Bridged {
					s.Routes, s.Flows = 100000, 100000
				}
			})
			instance, err := new(Corelane).Start(t.Context(), env, b)
			if err != nil {
				t.Fatal(err)
			}
			checkInstance(t, instance)
			c := instance.(*corelaneInstance)
			have, err := state.Read(t.Context(), c.client)
			if err != nil {
				t.Fatal(err)
			}
			want := corelaneState(b)
			want.Workers = have.Workers
			if ops := state.Diff(want, have); len(ops) > 0 {
				t.Errorf("%d differences, the first: %v", len(ops), ops[0])
			}
			workers, err := api.Collect(t.Context(), c.client, apiv1.NewWorkersClient, apiv1.WorkersClient.List,
				&apiv1.WorkerListRequest{})
			if err != nil || len(workers) != 1 || workers[0].Cpu != 1 {
				t.Errorf("workers %v, %v", workers, err)
			}
			n, err := instance.Counters(t.Context())
			if err != nil || n.Idle == 0 || !slices.ContainsFunc(n.Nodes, func(c NodeCounter) bool {
				return c.Name == "port_rx"
			}) {
				t.Errorf("%+v, %v", n, err)
			}
			if err := instance.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkInstance checks that an instance does not run while it is paused.
func checkInstance(t *testing.T, instance Instance) {
	t.Helper()
	for range 2 {
		if err := instance.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := instance.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCorelaneThatCannotStart(t *testing.T) {
	env := environment(t)
	env.CPUs = []int{1000}
	if _, err := new(Corelane).Start(t.Context(), env, setup(t, "routed", env.Dir, nil)); err == nil {
		t.Error("runs on CPU 1000")
	}
	env.CPUs, env.Bin = []int{1}, env.Dir
	_, err := new(Corelane).Start(t.Context(), env, setup(t, "routed", env.Dir, nil))
	if err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("%v", err)
	}
}
