// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/bench/fleet"
	"github.com/corelane/corelane/internal/input"
)

func newBenchFleet(a *app) *cobra.Command {
	o := fleet.Options{Worker: 1, Agent: 450, Paths: 100000, Some: 10000}
	check := false
	cmd := verb("fleet", "Measure how fast received paths become routes",
		"  corelane bench fleet --check\n  corelane bench fleet --paths 10000 --some 1000", nil)
	cmd.Long = `Measure a node of a fleet: a peer sends paths of VPNv4 as fast as the agent reads them, and the time
counts until the last route is in the data plane; a full table is withdrawn; the agent and the peer are killed. --check
fails if a row falls short of its limit. The limits are those of the default numbers of paths.

It runs in a namespace and directory of its own, which are removed afterwards, and needs root and two CPUs.

Exit code: 0 done, 1 a row falls short (--check) or could not be measured, 2 wrong input, 130 interrupted.`
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.benchFleet(cmd.Context(), o, check) }
	s := cmd.Flags()
	s.BoolVar(&check, "check", false, "exit with 1 if a row falls short")
	s.IntVar(&o.Paths, "paths", o.Paths, "paths of a full table, 1000 to 1000000")
	s.IntVar(&o.Some, "some", o.Some, "paths that are withdrawn, or there when something is killed, 100 to 1000000")
	s.IntVar(&o.Agent, "agent-memory", o.Agent,
		"MB from which on the agent's garbage is collected eagerly, as by GOMEMLIMIT, 50 to 100000")
	s.IntVar(&o.Worker, "cpu", o.Worker, "CPU of the worker")
	s.IntVar(&o.Other, "control-cpu", o.Other, "CPU of the agent and of the router's control plane")
	return cmd
}

func (a *app) benchFleet(ctx context.Context, o fleet.Options, check bool) error {
	for _, f := range []struct {
		flag               string
		value, least, most int
	}{{"--paths", o.Paths, 1000, 1000000}, {"--some", o.Some, 100, 1000000}, {"--agent-memory", o.Agent, 50, 100000}} {
		if f.value < f.least || f.value > f.most {
			return input.Errorf(f.flag, fmt.Sprintf("%d to %d", f.least, f.most), "'%d' is out of range", f.value)
		}
	}
	if o.Worker == o.Other {
		return input.Errorf("--cpu", "another CPU than --control-cpu", "'%d' is also that of the agent", o.Worker)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	free, err := bench.FreeHugepages("/")
	if err != nil {
		return err
	}
	o.Bin, o.Memory = filepath.Dir(self), min(free, 512)
	o.Say = func(text string) { fmt.Fprintln(a.stderr, "  "+text) }
	ctx, done := untilHangup(ctx)
	defer done()
	r, err := fleet.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := a.fleetTable(r); err != nil || !check {
		return err
	}
	short := 0
	for _, row := range r.Rows {
		if row.Short() {
			short++
			fmt.Fprintf(a.stderr, "%s: falls short\n", row.What)
		}
	}
	if short > 0 {
		return fmt.Errorf("%d of %d rows fall short", short, len(r.Rows))
	}
	return nil
}

func (a *app) fleetTable(r *fleet.Result) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	return a.rows([]string{"WHAT", "VALUE", "LIMIT", "UNIT"}, func(add func(...string) error) error {
		for _, row := range r.Rows {
			bound := "at most"
			if row.Least {
				bound = "at least"
			}
			if err := add(row.What, fmt.Sprintf("%.4g", row.Value), fmt.Sprintf("%s %g", bound, row.Limit),
				row.Unit); err != nil {
				return err
			}
		}
		return nil
	})
}
