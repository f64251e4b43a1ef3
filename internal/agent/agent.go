// SPDX-License-Identifier: Apache-2.0

// Package agent is the service beside a data plane: it guards the CPUs that a plan gives to it, and restores the
// configuration of a data plane that was restarted.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/fleet"
	"github.com/corelane/corelane/internal/guard"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
)

// DefaultPlan is the plan of this machine. Without it the intent is derived from the machine's own settings.
const DefaultPlan = "/etc/corelane/plan.json"

// Options of Run.
type Options struct {
	Plan     string        // file; empty: DefaultPlan if it exists
	NodeFile string        // desired state of the data plane, docs/node-yaml.md; empty: none
	Socket   string        // of corelaned
	Journal  string        // directory of repairs, and of the record of the node file
	Every    time.Duration // interval between two checks
	Repair   bool
	Report   func(guard.Event)
	Dial     func(ctx context.Context, socket string) (*api.Client, error)
	Fleet    fleet.Options // Intent empty: this node is no member of a fleet
}

// Run guards until ctx is over. It notifies systemd after the first check.
func Run(ctx context.Context, o Options) (err error) {
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
	n := node{file: o.NodeFile, record: filepath.Join(o.Journal, "node-file")}
	if n.file != "" {
		if _, err := n.load(); err != nil {
			return err
		}
	}
	dial := func(ctx context.Context) (*api.Client, error) { return o.Dial(ctx, o.Socket) }
	notices := make(chan guard.Event, 16)
	connected := func(c *api.Client) {
		if n.file == "" {
			return
		}
		if e := n.restore(ctx, c); e != nil {
			select {
			case notices <- *e:
			case <-ctx.Done():
			}
		}
	}
	if o.Fleet.Intent != "" {
		o.Fleet.Dial = func(ctx context.Context) (*api.Client, error) {
			return api.DialAs(ctx, o.Socket, "corelane-agent", fleet.Owner)
		}
		o.Fleet.Report = func(text string) {
			select {
			case notices <- guard.Event{Time: time.Now(), Kind: guard.Notice, Text: "fleet: " + text}:
			case <-ctx.Done():
			}
		}
		ended := make(chan struct{})
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		go func() {
			defer close(ended)
			cancel(fleet.Run(ctx, o.Fleet))
		}()
		defer func() {
			cancel(nil)
			<-ended
			if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
				err = cause
			}
		}()
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

// merge passes on the events of both channels, until ctx is over.
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
