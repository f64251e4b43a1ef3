// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
)

// Testpmd is DPDK's test program, which sends every frame out of the other port unchanged. No router is faster.
type Testpmd struct{}

// Name of the router.
func (*Testpmd) Name() string { return "testpmd" }

const testpmdProgram = "dpdk-testpmd"

// Version returns the version of the DPDK that testpmd was built with.
func (*Testpmd) Version(ctx context.Context) (string, error) {
	path, err := exec.LookPath(testpmdProgram)
	if err != nil {
		return "", fmt.Errorf("testpmd: %w; it is in the package dpdk-dev", err)
	}
	text, err := exec.CommandContext(ctx, path, "-v", "--help").CombinedOutput()
	version := regexp.MustCompile(`DPDK [0-9][^']*`).Find(text)
	if version == nil {
		return "", fmt.Errorf("%s -v prints no version: %w", path, err)
	}
	return string(version), nil
}

// Supports refuses more than two ports.
func (*Testpmd) Supports(s *scenario.Scenario) error {
	if s.Tenants != 1 {
		return fmt.Errorf("testpmd: it connects two ports; %d tenants have more", s.Tenants)
	}
	return nil
}

// Unchanged is true.
func (*Testpmd) Unchanged() bool { return true }

// Start starts it with forwarding on.
func (t *Testpmd) Start(ctx context.Context, env *Env, b *scenario.Setup) (Instance, error) {
	if err := t.Supports(&b.Scenario); err != nil {
		return nil, err
	}
	p, err := process.Start(process.Command{
		Name: "testpmd",
		Argv: testpmdArguments(env, b),
		Env:  env.eal(),
		Log:  filepath.Join(env.Dir, "testpmd.log"),
		CPUs: append([]int{env.ControlCPU}, env.CPUs...),
	})
	if err != nil {
		return nil, err
	}
	if err := p.Await(ctx, startTimeout, func(context.Context) error { return listening(b.Ports) }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &testpmdInstance{p}, nil
}

// eal keeps DPDK's files in our directory. Sockets are there as well, so the path of the directory has to be short.
func (e *Env) eal() []string { return []string{"RUNTIME_DIRECTORY=" + e.Dir} }

// mbufs is enough to fill every ring, and for packets in flight.
func mbufs(b *scenario.Setup) int { return len(b.Ports)*b.Workers*2*b.Ports[0].RingSize + 8192 }

func testpmdArguments(env *Env, b *scenario.Setup) []string {
	lcores := fmt.Sprintf("0@%d", env.ControlCPU)
	for i, cpu := range env.CPUs {
		lcores += fmt.Sprintf(",%d@%d", i+1, cpu)
	}
	o := []string{testpmdProgram, "--lcores", lcores, "--main-lcore", "0", "--no-pci", "--no-telemetry"}
	if env.Memory > 0 {
		o = append(o, "--in-memory")
	} else {
		o = append(o, "--no-shconf", "--no-huge", "-m", strconv.Itoa(mbufs(b)*3>>10+64)) // MB: 3 KB for each buffer
	}
	for i, p := range b.Ports {
		o = append(o, "--vdev", fmt.Sprintf("net_memif%d,role=server,id=0,socket=%s,socket-abstract=no,mac=%s", i,
			p.Socket, p.MAC))
	}
	workers := strconv.Itoa(b.Workers)
	return append(o, "--", "--forward-mode=io", "--nb-cores="+workers, "--rxq="+workers, "--txq="+workers,
		"--total-num-mbufs="+strconv.Itoa(mbufs(b)), "--disable-link-check", "--no-lsc-interrupt", "--no-flush-rx")
}

// listening returns nil when all sockets are listened on. It does not connect to them: a memif server of DPDK that
// loses its client at the wrong moment crashes.
func listening(ports []scenario.Port) error {
	text, err := procfs.Host.Read("proc/net/unix")
	if err != nil {
		return err
	}
	accepting := procfs.ParseUnixListeners(text)
	for _, p := range ports {
		if !slices.Contains(accepting, p.Socket) {
			return fmt.Errorf("no process listens on %s", p.Socket)
		}
	}
	return nil
}

type testpmdInstance struct{ *process.Process }

// Devices returns nil: the ports are memif sockets.
func (*testpmdInstance) Devices() []*apiv1.GeneratorPort { return nil }

// Netns returns none.
func (*testpmdInstance) Netns() string { return "" }

// Counters returns none: testpmd has no API.
func (*testpmdInstance) Counters(context.Context) (Counters, error) { return Counters{}, nil }
