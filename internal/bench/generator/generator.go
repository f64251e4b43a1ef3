// SPDX-License-Identifier: Apache-2.0

// Package generator drives corelane-gen, the traffic generator and sink.
package generator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/wait"
)

// Place says where a generator runs.
type Place struct {
	Bin          string // folder of corelane-gen
	Dir          string // for its socket and log; removed by the caller
	CPU          int    // of the thread that sends and receives
	ControlCPU   int    // for everything else; may be the same
	RoundTripCPU int    // CPU of a router, to which the round trip is probed; -1: none
	Netns        string // named network namespace; empty: that of this program
}

// Generator is a running generator.
type Generator struct {
	process *process.Process
	client  *api.Client
}

const (
	program      = "corelane-gen"
	startTimeout = time.Minute
	pollEvery    = 10 * time.Millisecond
)

// Start starts a generator. It has no ports until it is configured.
func Start(ctx context.Context, at Place) (*Generator, error) {
	path := filepath.Join(at.Bin, program)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the generator: %w; 'make build' builds it", err)
	}
	socket := filepath.Join(at.Dir, program+".sock")
	p, err := process.Start(process.Command{
		Name:  program,
		Argv:  append([]string{path}, options(at, socket)...),
		Log:   filepath.Join(at.Dir, program+".log"),
		CPUs:  []int{at.CPU, at.ControlCPU},
		Netns: at.Netns,
	})
	if err != nil {
		return nil, err
	}
	g := &Generator{process: p}
	err = p.Await(ctx, startTimeout, func(ctx context.Context) (err error) {
		g.client, err = api.Dial(ctx, socket, "corelane bench")
		return err
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func options(at Place, socket string) []string {
	o := []string{"--socket", socket, "--cpu", strconv.Itoa(at.CPU)}
	if at.RoundTripCPU >= 0 {
		o = append(o, "--round-trip-cpu", strconv.Itoa(at.RoundTripCPU))
	}
	return o
}

// Close ends the generator. It is an error when it had ended by itself.
func (g *Generator) Close() error {
	if g.client != nil {
		_ = g.client.Close()
	}
	return g.process.Stop()
}

// explain adds to an error how the process ended, if it has.
func (g *Generator) explain(ctx context.Context, err error) error {
	var gone *api.Unavailable
	if !errors.As(err, &gone) {
		return fmt.Errorf("the generator: %w", err)
	}
	ended := g.process.Await(ctx, time.Second, func(context.Context) error { return err }) // it is about to end
	return fmt.Errorf("the generator: %w", ended)
}

// Pid of the process.
func (g *Generator) Pid() int { return g.process.Pid }

// Sender is the id of the thread that sends and receives.
func (g *Generator) Sender() (int, error) {
	tid, err := procfs.Host.ThreadNamed(g.Pid(), "gen-poll")
	if err != nil {
		err = fmt.Errorf("the generator: %w", err)
	}
	return tid, err
}

// Stop ends the running trial. Its Run returns what was counted.
func (g *Generator) Stop(ctx context.Context) error {
	_, err := api.Call(ctx, g.client, apiv1.NewGeneratorClient, apiv1.GeneratorClient.Stop, &apiv1.Empty{})
	if err != nil {
		return g.explain(ctx, err)
	}
	return nil
}

// Configure replaces all ports and streams.
func (g *Generator) Configure(ctx context.Context, p *apiv1.GeneratorProfile) error {
	_, err := api.Call(ctx, g.client, apiv1.NewGeneratorClient, apiv1.GeneratorClient.Configure, p)
	if err != nil {
		return g.explain(ctx, err)
	}
	return nil
}

// WaitUp returns when all ports are connected to a peer.
func (g *Generator) WaitUp(ctx context.Context, timeout time.Duration) error {
	late := errors.New("timeout")
	limited, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	var down []string
	err := wait.Until(limited, pollEvery, func() (bool, error) {
		p, err := api.Call(ctx, g.client, apiv1.NewGeneratorClient, apiv1.GeneratorClient.Ports, &apiv1.Empty{})
		if err != nil {
			return false, g.explain(ctx, err)
		}
		down = downPorts(p)
		return len(down) == 0, nil
	})
	if errors.Is(err, late) {
		return fmt.Errorf("the generator: still down after %v: %s", timeout, strings.Join(down, ", "))
	}
	return err
}

// downPorts names the ports that are not connected, with their devices.
func downPorts(p *apiv1.GeneratorProfile) []string {
	var list []string
	for _, port := range p.Ports {
		if port.Up {
			continue
		}
		device := port.GetDevargs()
		if m := port.GetMemif(); m != nil {
			device = m.Socket
		}
		list = append(list, fmt.Sprintf("port %s (%s)", port.Name, device))
	}
	return list
}

// Run runs a trial and returns its counters. each is called with every window at its end. The end of ctx ends the
// trial.
func (g *Generator) Run(ctx context.Context, t *apiv1.GeneratorTrial,
	each func(*apiv1.GeneratorWindow)) (*apiv1.GeneratorWindow, error) {
	var total *apiv1.GeneratorWindow
	err := api.Stream(ctx, g.client, apiv1.NewGeneratorClient, apiv1.GeneratorClient.Run, t,
		func(w *apiv1.GeneratorWindow) error {
			if w.Total {
				total = w
			} else if each != nil {
				each(w)
			}
			return nil
		})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, g.explain(ctx, err)
	case total == nil:
		return nil, errors.New("the generator: a trial ended without its counters")
	}
	return total, nil
}
