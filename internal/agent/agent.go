// SPDX-License-Identifier: Apache-2.0

// Package agent is the service beside a data plane: it guards the CPUs that a plan gives it, and gives a data plane
// that was restarted its configuration again.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/guard"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/state"
)

// DefaultPlan is where the plan of this machine is looked for. Without it the machine itself says what is intended.
const DefaultPlan = "/etc/corelane/plan.json"

// Options of Run.
type Options struct {
	Plan     string        // file; empty: DefaultPlan where it is there
	NodeFile string        // desired state of the data plane, docs/node-yaml.md; empty: none
	Socket   string        // of corelaned
	Journal  string        // directory of repairs
	Every    time.Duration // between looks
	Repair   bool
	Report   func(guard.Event)
	Dial     func(ctx context.Context, socket string) (*api.Client, error)
}

// Run works until ctx is over. systemd is told when it watches.
func Run(ctx context.Context, o Options) error {
	switch {
	case o.Every < 100*time.Millisecond || o.Every > time.Hour:
		return input.Errorf("--every", "100ms to 1h", "%v is out of range", o.Every)
	case o.Repair && os.Geteuid() != 0:
		return input.Errorf("--repair", "run it as root", "moving threads and interrupts needs root")
	}
	p, err := loadPlan(o.Plan)
	if err != nil {
		return err
	}
	want, err := loadState(o.NodeFile)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context) (*api.Client, error) { return o.Dial(ctx, o.Socket) }
	notices := make(chan guard.Event, 16)
	connected := func(c *api.Client) {
		if want != nil {
			restore(ctx, c, want, notices)
		}
	}
	ready := false
	return guard.Watch(ctx, guard.Options{
		Plan: p, Every: o.Every, Repair: o.Repair, Journal: o.Journal, Tools: true, Report: o.Report,
		Daemon: merge(ctx, guard.Follow(ctx, dial, connected), notices),
		Looked: func(s guard.Status) {
			if !ready {
				_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // without systemd it does nothing
				ready = true
			}
			_, _ = daemon.SdNotify(false, fmt.Sprintf("STATUS=%d things differ from the plan", s.Drifts))
		},
	})
}

func loadPlan(file string) (*plan.Plan, error) {
	if file == "" {
		if _, err := os.Stat(DefaultPlan); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		file = DefaultPlan
	}
	return plan.Load(file)
}

func loadState(file string) (*state.State, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, input.Errorf("--node-file", "a file of docs/node-yaml.md", "%v", err)
	}
	return state.Load(file, text)
}

// restore makes a data plane what the node file says: at the start of either, and after a restart.
func restore(ctx context.Context, c *api.Client, want *state.State, notices chan<- guard.Event) {
	tell := func(kind guard.Kind, format string, args ...any) {
		select {
		case notices <- guard.Event{Time: time.Now(), Kind: kind, Text: fmt.Sprintf(format, args...)}:
		case <-ctx.Done():
		}
	}
	have, err := state.Read(ctx, c)
	if err != nil {
		tell(guard.Failed, "the data plane's state: %v", err)
		return
	}
	ops := state.Diff(want, have)
	if len(ops) == 0 {
		return
	}
	done, err := state.Apply(ctx, c, ops, func(state.Op) {})
	if err != nil {
		tell(guard.Failed, "node file: %v", err)
		return
	}
	tell(guard.Repaired, "the data plane is what the node file says: %v", done)
}

// merge passes on what comes from either, until ctx is over.
func merge(ctx context.Context, a, b <-chan guard.Event) <-chan guard.Event {
	out := make(chan guard.Event)
	go func() {
		for {
			var e guard.Event
			var open bool
			select {
			case e, open = <-a:
				if !open {
					return
				}
			case e = <-b:
			case <-ctx.Done():
				return
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
