// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Switching is the result of a stream of datagrams through a host while its workers and modes changed.
type Switching struct {
	Host    string          `json:"host"`
	Changes int             `json:"changes"`
	UDP     Rate            `json:"udp"`
	Lost    uint64          `json:"lost_in_routers"`
	Second  uint64          `json:"second_worker_packets"`
	Before  []*apiv1.Worker `json:"-"` // of the host, before and after the stream
	After   []*apiv1.Worker `json:"-"`
	Top     string          `json:"-"` // last table of 'corelane worker top' during the stream
	Error   string          `json:"error,omitempty"`
}

// OK says whether both workers had packets, and none was lost in the routers or reordered.
func (s Switching) OK() bool {
	return s.Error == "" && s.Changes > 0 && s.UDP.PacketsPerSec > 0 && s.Second > 0 && s.Lost == 0 &&
		s.UDP.OutOfOrder == 0
}

const (
	switchBps   = 40e6 // low enough for the socket of the receiving guest
	switchFlows = 16   // so many that a hash gives some to each of two workers
	switchEvery = 100 * time.Millisecond
)

// Workers switches a port of the sending host between modes, with an additional worker, while iperf3 runs. It restores
// the lab afterwards.
func (l *Lab) Workers(ctx context.Context) (s Switching) {
	p := l.paths(l.Networks[0])[0]
	s.Host = p.From.Host.Name
	if err := l.switching(ctx, p, &s); err != nil {
		s.Error = err.Error()
	}
	return s
}

func (l *Lab) switching(ctx context.Context, p Path, s *Switching) (err error) {
	client, err := l.Dial(ctx, p.From.Host)
	if err != nil {
		return err
	}
	defer client.Close()
	extra, err := addTwin(ctx, client)
	if err != nil {
		return err
	}
	defer func() {
		back := context.WithoutCancel(ctx)
		_, e := api.Call(back, client, apiv1.NewWorkersClient, apiv1.WorkersClient.Del,
			&apiv1.WorkerDelRequest{Id: extra})
		err = errors.Join(err, setMode(back, client, p.From.Port(), apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION), e)
	}()
	before, err := l.losses(ctx, p)
	if err != nil {
		return err
	}
	if s.Before, err = workersOf(ctx, client); err != nil {
		return err
	}
	if err := l.switchWhileStreaming(ctx, client, p, s); err != nil {
		return err
	}
	if s.After, err = workersOf(ctx, client); err != nil {
		return err
	}
	for _, w := range s.After {
		if w.Id == extra {
			s.Second = w.GetState().GetPackets()
		}
	}
	if s.Second == 0 {
		return errors.New("no packet reached the second worker, so that nothing was shown")
	}
	after, err := l.losses(ctx, p)
	for _, n := range after.since(before).drops {
		s.Lost += n
	}
	return err
}

func (l *Lab) switchWhileStreaming(ctx context.Context, client *api.Client, p Path, s *Switching) error {
	done := make(chan error, 1)
	top := l.watchTop(ctx, p.From.Host)
	defer func() { s.Top = top() }()
	go func() {
		var err error
		s.UDP, err = l.UDP(ctx, p, switchBps, switchFlows)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(switchEvery):
		}
		mode := apiv1.PortMode_PORT_MODE_HYBRID
		if s.Changes%2 == 1 {
			mode = apiv1.PortMode_PORT_MODE_RUN_TO_COMPLETION
		}
		if err := setMode(ctx, client, p.From.Port(), mode); err != nil {
			return errors.Join(err, <-done)
		}
		s.Changes++
	}
}

// watchTop runs 'corelane worker top' on a host. The returned function ends it and returns its last table.
func (l *Lab) watchTop(ctx context.Context, h Host) func() string {
	self, err := os.Executable()
	if err != nil {
		return func() string { return "" }
	}
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, "--socket", l.Socket(h), "worker", "top", "--plain", "--interval", "1s")
	var out strings.Builder
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	err = cmd.Start()
	return func() string {
		stop()
		if err == nil {
			err = cmd.Wait() // it was ended
		}
		return lastTable(out.String())
	}
}

// lastTable returns the last of several tables, which are separated by empty lines.
func lastTable(text string) string {
	text = strings.Trim(text, "\n")
	if at := strings.LastIndex(text, "\n\n"); at >= 0 {
		return text[at+2:]
	}
	return text
}

func setMode(ctx context.Context, client *api.Client, port string, mode apiv1.PortMode) error {
	_, err := api.Call(ctx, client, apiv1.NewPortsClient, apiv1.PortsClient.Set,
		&apiv1.PortSetRequest{Port: &apiv1.Port{Name: port, Mode: mode}, Fields: []string{"mode"}})
	return err
}

// addTwin adds a worker like the first one, on the same CPU.
func addTwin(ctx context.Context, client *api.Client) (uint32, error) {
	workers, err := workersOf(ctx, client)
	if err != nil || len(workers) == 0 {
		return 0, errors.Join(err, fmt.Errorf("the host has no worker"))
	}
	w, err := api.Call(ctx, client, apiv1.NewWorkersClient, apiv1.WorkersClient.Add,
		&apiv1.WorkerAddRequest{AutoId: true,
			Worker: &apiv1.Worker{Cpu: workers[0].Cpu, Idle: workers[0].Idle}})
	if err != nil {
		return 0, err
	}
	return w.Id, nil
}

func workersOf(ctx context.Context, client *api.Client) ([]*apiv1.Worker, error) {
	return api.Collect(ctx, client, apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{})
}
