// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/guard"
	"github.com/corelane/corelane/internal/input"
)

type guardFlags struct {
	plan, journal string
	every         time.Duration
	repair        bool
}

func newCoresGuard(a *app) *cobra.Command {
	var o guardFlags
	cmd := verb("guard", "Watch whether the data plane's CPUs stay as planned", `  corelane cores guard
  corelane cores guard --plan /etc/corelane/plan.json --repair`,
		func(ctx context.Context, _ []string) error { return a.guardCores(ctx, o) })
	cmd.Long = `Check at an interval for drift: threads that come to workers' CPUs, workers and service threads that
are moved, interrupts, RPS and XPS, control groups, TuneD's profile, settings of the kernel, CPUs that go offline.
Each drift is reported once, with what is known about its cause, and again when it is over; events of a running
corelaned are reported, too. --repair undoes drift that begins from then on, and logs that for 'corelane cores
rollback'. A setting that something else changes back five times in a minute is left alone for ten minutes, and
reported.

guard runs until interrupted. corelane-agent does the same as a service. Without --plan the intent is derived from the
machine's own settings at the start, as in 'corelane cores verify'. A plan for another machine is refused.`
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "",
		"the plan, a file that 'corelane plan' wrote; default: derived from the machine's settings")
	f.BoolVar(&o.repair, "repair", false, "undo drift; needs root")
	f.DurationVar(&o.every, "every", time.Second, "interval between two checks")
	f.StringVar(&o.journal, "journal", cores.Dir, "directory where repairs are logged for 'corelane cores rollback'")
	_ = cmd.MarkFlagFilename("plan", "json", "yaml")
	return cmd
}

func (a *app) guardCores(ctx context.Context, o guardFlags) error {
	if o.every < 100*time.Millisecond || o.every > time.Hour {
		return input.Errorf("--every", "100ms to 1h", "%v is out of range", o.every)
	}
	if o.repair && os.Geteuid() != 0 {
		return input.Errorf("--repair", "run it as root", "moving threads and interrupts needs root")
	}
	p, err := a.planOrNone(o.plan)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context) (*api.Client, error) { return a.dial(ctx, a.socket) }
	return guard.Watch(ctx, guard.Options{
		Plan: p, Every: o.every, Repair: o.repair, Journal: o.journal, Tools: true,
		Daemon: guard.Follow(ctx, dial, nil), Report: func(e guard.Event) {
			if a.json() {
				_ = json.NewEncoder(a.stdout).Encode(e)
				return
			}
			fmt.Fprintln(a.stdout, e)
		},
	})
}
