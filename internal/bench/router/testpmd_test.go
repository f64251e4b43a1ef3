// SPDX-License-Identifier: Apache-2.0
package router

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/scenario"
)

func TestTestpmdArguments(t *testing.T) {
	env := &Env{Dir: "/run/bench", CPUs: []int{2, 3}, ControlCPU: 1}
	b := setup(t, "vxlan-encap", "/run/bench", func(s *scenario.Scenario) { s.Workers = 2 })
	got := strings.Join(testpmdArguments(env, b), " ")
	for _, want := range []string{"--lcores 0@1,1@2,2@3", "--no-huge -m ",
		"net_memif0,role=server,id=0,socket=/run/bench/tenant0.sock,",
		"net_memif1,role=server,id=0,socket=/run/bench/wire.sock,",
		"--nb-cores=2 --rxq=2 --txq=2 --total-num-mbufs=16384"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	env.Memory = 512
	if got := strings.Join(testpmdArguments(env, b), " "); strings.Contains(got, "--no-huge") {
		t.Errorf("without hugepages: %s", got)
	}
}

func TestTestpmdSupports(t *testing.T) {
	if err := new(Testpmd).Supports(&scenario.Scenario{Tenants: 2}); err == nil {
		t.Error("joins more than two ports")
	}
}

func needTestpmd(t *testing.T) *Env {
	t.Helper()
	env := environment(t)
	if _, err := exec.LookPath(testpmdProgram); err != nil {
		t.Skip(err)
	}
	return env
}

func TestTestpmdStarts(t *testing.T) {
	env := needTestpmd(t)
	version, err := new(Testpmd).Version(t.Context())
	if err != nil || !strings.HasPrefix(version, "DPDK 2") {
		t.Errorf("version %q, %v", version, err)
	}
	instance, err := new(Testpmd).Start(t.Context(), env, setup(t, "vxlan-encap", env.Dir, nil))
	if err != nil {
		t.Fatal(err)
	}
	checkInstance(t, instance)
	if err := instance.Stop(); err != nil {
		t.Error(err)
	}
}

func TestTestpmdThatCannotStart(t *testing.T) {
	env := needTestpmd(t)
	env.CPUs = []int{1000}
	_, err := new(Testpmd).Start(t.Context(), env, setup(t, "vxlan-encap", env.Dir, nil))
	if err == nil || !strings.Contains(err.Error(), "testpmd: has ended") {
		t.Errorf("%v", err)
	}
}
