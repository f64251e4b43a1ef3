// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/state"
)

// Corelane is this project's router.
type Corelane struct{}

// Name of the router.
func (*Corelane) Name() string { return "corelane" }

const corelanedProgram = "corelaned"

// Version returns the version of the corelaned in this program's directory.
func (*Corelane) Version(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, err := findCorelaned(filepath.Dir(self))
	if err != nil {
		return "", err
	}
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func findCorelaned(bin string) (string, error) {
	path := filepath.Join(bin, corelanedProgram)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("corelane: %w; 'make build' builds it", err)
	}
	return path, nil
}

// Supports everything.
func (*Corelane) Supports(*scenario.Scenario) error { return nil }

// Unchanged is false: it does the work.
func (*Corelane) Unchanged() bool { return false }

const startTimeout = time.Minute // EAL without hugepages clears all of its memory

// Start starts a corelaned and programs it.
func (*Corelane) Start(ctx context.Context, env *Env, b *scenario.Setup) (Instance, error) {
	c := &corelaneInstance{}
	if err := c.start(ctx, env, b); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

type corelaneInstance struct {
	*process.Process
	client *api.Client
}

func (c *corelaneInstance) start(ctx context.Context, env *Env, b *scenario.Setup) error {
	path, err := findCorelaned(env.Bin)
	if err != nil {
		return err
	}
	socket := filepath.Join(env.Dir, "corelaned.sock")
	c.Process, err = process.Start(process.Command{
		Name: corelanedProgram,
		Argv: append([]string{path}, corelanedOptions(env, b, socket)...),
		Env:  env.eal(),
		Log:  filepath.Join(env.Dir, "corelaned.log"),
		CPUs: append([]int{env.ControlCPU}, env.CPUs...),
	})
	if err != nil {
		return err
	}
	err = c.Await(ctx, startTimeout, func(ctx context.Context) (err error) {
		c.client, err = api.Dial(ctx, socket, "corelane bench")
		return err
	})
	if err != nil {
		return err
	}
	if err := c.program(ctx, b); err != nil {
		return fmt.Errorf("corelane: %w", err)
	}
	return nil
}

func corelanedOptions(env *Env, b *scenario.Setup, socket string) []string {
	o := []string{"--run-dir", env.Dir, "--socket", socket, "--worker-cpus", cpuList(env.CPUs), "--control-cpus",
		strconv.Itoa(env.ControlCPU)}
	if b.Stateful {
		o = append(o, "--flows", strconv.Itoa(max(2*b.Flows+4*b.NewFlows+2*b.FlowLimit, 1024))) // with ended flows
	}
	if env.Memory > 0 {
		o = append(o, "--memory", strconv.Itoa(env.Memory))
	} else {
		o = append(o, "--no-huge")
	}
	if wire := b.Ports[len(b.Ports)-1]; wire.Wire {
		o = append(o, "--router-mac", wire.MAC.String())
	}
	return append(o, env.Options...)
}

func cpuList(cpus []int) string {
	words := make([]string, len(cpus))
	for i, cpu := range cpus {
		words[i] = strconv.Itoa(cpu)
	}
	return strings.Join(words, ",")
}

func (c *corelaneInstance) program(ctx context.Context, b *scenario.Setup) error {
	have, err := state.Read(ctx, c.client)
	if err != nil {
		return err
	}
	_, err = state.Apply(ctx, c.client, state.Diff(corelaneState(b), have), nil)
	return err
}

// Pid of the daemon.
func (c *corelaneInstance) Pid() int { return c.Process.Pid }

// Client of the daemon's API.
func (c *corelaneInstance) Client() *api.Client { return c.client }

// Devices returns nil: the ports are memif sockets.
func (*corelaneInstance) Devices() []*apiv1.GeneratorPort { return nil }

// Netns returns none.
func (*corelaneInstance) Netns() string { return "" }

// Stop the daemon.
func (c *corelaneInstance) Stop() error { return c.end() }

func (c *corelaneInstance) end() error {
	if c.client != nil {
		_ = c.client.Close()
	}
	return c.Process.Stop()
}

// Counters reads the API, which does not answer while the daemon is paused.
func (c *corelaneInstance) Counters(ctx context.Context) (Counters, error) {
	n := Counters{Drops: map[string]uint64{}}
	drops, err := api.Collect(ctx, c.client, apiv1.NewStatsClient, apiv1.StatsClient.Drops, &apiv1.DropListRequest{})
	if err != nil {
		return n, fmt.Errorf("drops: %w", err)
	}
	for _, d := range drops {
		n.Drops[d.Reason] += d.Packets
	}
	nodes, err := api.Collect(ctx, c.client, apiv1.NewStatsClient, apiv1.StatsClient.Graph, &apiv1.NodeListRequest{})
	if err != nil {
		return n, fmt.Errorf("nodes: %w", err)
	}
	for _, node := range nodes {
		n.Nodes = append(n.Nodes, NodeCounter{node.Name, node.Calls, node.Packets, node.Cycles})
	}
	workers, err := api.Collect(ctx, c.client, apiv1.NewWorkersClient, apiv1.WorkersClient.List,
		&apiv1.WorkerListRequest{})
	if err != nil {
		return n, fmt.Errorf("workers: %w", err)
	}
	for _, w := range workers {
		n.Busy += w.State.GetBusyCycles()
		n.Idle += w.State.GetIdleCycles()
	}
	return n, c.missed(ctx, n.Drops)
}

// missed adds the packets that never reached the graph.
func (c *corelaneInstance) missed(ctx context.Context, drops map[string]uint64) error {
	ports, err := api.Collect(ctx, c.client, apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{})
	if err != nil {
		return fmt.Errorf("ports: %w", err)
	}
	for _, p := range ports {
		if n := p.GetState().GetCounters().GetRxMissed(); n > 0 {
			drops["rx_missed "+p.Name] = n
		}
	}
	return nil
}
