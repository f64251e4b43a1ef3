// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/input"
)

type explainFlags struct {
	explain.Options
	follow bool
}

func newExplainCmd(a *app) *cobra.Command {
	f := &explainFlags{}
	cmd := verb("explain", "Say what holds the workers back, who does it, and what mends it", `  corelane explain
  corelane explain --window 5s
  corelane explain --follow -o json`,
		func(ctx context.Context, _ []string) error { return a.explain(ctx, f) })
	cmd.Long = `Look at the daemon and at its workers' CPUs for a while, and say who or what took the workers' time and packets: the thread
or interrupt by name, why it was there, what it cost, how sure that is, and the command that mends it. The first line is the
answer. That nothing is wrong, or that more is offered than a core can do, are answers too.

The kernel's own events on the workers' CPUs are watched with eBPF, which needs root (CAP_BPF and CAP_PERFMON) and a kernel with
type information (/sys/kernel/btf/vmlinux). Elsewhere the counters in /proc have to do; the answer then says that it is weaker.`
	s := cmd.Flags()
	s.DurationVar(&f.Window, "window", explain.DefaultWindow, "how long to look, 100ms to 1h")
	s.BoolVar(&f.follow, "follow", false, "window after window, until interrupted")
	s.BoolVar(&f.NoTrace, "no-trace", false, "do without events of the kernel")
	return cmd
}

func (a *app) explain(ctx context.Context, f *explainFlags) error {
	if f.Window < 100*time.Millisecond || f.Window > time.Hour {
		return input.Errorf("--window", "100ms to 1h", "%v is no time to look", f.Window)
	}
	f.Socket = a.socket
	s, err := explain.Open(ctx, f.Options)
	if err != nil {
		return err
	}
	return errors.Join(a.explainWindows(ctx, s, f), s.Close())
}

func (a *app) explainWindows(ctx context.Context, s *explain.Session, f *explainFlags) error {
	for {
		r, err := s.Next(ctx)
		if err != nil {
			if f.follow && ctx.Err() != nil {
				return nil
			}
			return err
		}
		if a.json() {
			err = json.NewEncoder(a.stdout).Encode(r)
		} else {
			err = r.WriteText(a.stdout)
		}
		if err != nil || !f.follow {
			return err
		}
	}
}
