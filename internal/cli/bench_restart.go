// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench"
	"github.com/corelane/corelane/internal/bench/restart"
	"github.com/corelane/corelane/internal/input"
)

func newBenchRestart(a *app) *cobra.Command {
	o := restart.Options{Worker: 1, Ports: 100, Routes: 100000, Connections: 1000, Rate: 10000}
	check := false
	cmd := verb("restart", "Measure what a restart of the router costs",
		"  corelane bench restart --check\n  corelane bench restart --event 'kill -9' --kind tap --ports 10 "+
			"--routes 1000", nil)
	cmd.Long = `Measure what traffic loses when corelaned is restarted or killed, and when what is around it fails. A
router with many ports and routes carries a paced stream through each kind of port, and TCP connections through source
NAT. The router is started again at once; it brings its state back by itself (--state-dir).

The outage is the longest time in which nothing of a stream arrives, in steps of 5 ms; lost are the packets that were
sent, or found no room at the router, and did not arrive. Those that a generator did not send, because it waited for its
CPU, are late. A connection survives that echoes within 10 seconds of the event. --check fails if an outage is longer
than the limit of its row, or a connection broke.

Events: planned restart is systemctl restart (two takeovers), takeover is corelane upgrade, cold restart is SIGTERM and
a new start, and in "disk full" the file system of --state-dir has no room.

It runs in namespaces of its own, which are removed afterwards, and needs root and two CPUs.

Exit code: 0 done, 1 a row falls short (--check) or could not be measured, 2 wrong input, 130 interrupted.`
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.benchRestart(cmd.Context(), o, check) }
	s := cmd.Flags()
	s.BoolVar(&check, "check", false, "exit with 1 if a row falls short")
	s.StringArrayVar(&o.Events, "event", nil, "only this event; may be repeated: "+
		strings.Join(restart.Events(), ", "))
	s.StringArrayVar(&o.Kinds, "kind", nil, "only ports of this kind; may be repeated: "+
		strings.Join(restart.Kinds, ", "))
	s.IntVar(&o.Ports, "ports", o.Ports, "ports of the router, 10 to 250")
	s.IntVar(&o.Routes, "routes", o.Routes, "routes of the router, 0 to 1000000")
	s.IntVar(&o.Connections, "connections", o.Connections, "TCP connections, 1 to 10000")
	s.IntVar(&o.Rate, "rate", o.Rate, "packets per second of each stream, 1000 to 100000")
	s.IntVar(&o.Worker, "cpu", o.Worker, "CPU of the worker")
	s.IntVar(&o.Other, "generator-cpu", o.Other, "CPU of the traffic generators and of everything else")
	return cmd
}

func checkBenchRestart(o *restart.Options) error {
	for _, f := range []struct {
		flag               string
		value, least, most int
	}{{"--ports", o.Ports, 10, 250}, {"--routes", o.Routes, 0, 1000000}, {"--connections", o.Connections, 1, 10000},
		{"--rate", o.Rate, 1000, 100000}} {
		if f.value < f.least || f.value > f.most {
			return input.Errorf(f.flag, fmt.Sprintf("%d to %d", f.least, f.most), "'%d' is out of range", f.value)
		}
	}
	if o.Worker == o.Other {
		return input.Errorf("--cpu", "another CPU than --generator-cpu", "'%d' is also that of the generators",
			o.Worker)
	}
	return nil
}

func (a *app) benchRestart(ctx context.Context, o restart.Options, check bool) error {
	if err := checkBenchRestart(&o); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return &input.Error{Field: "--event, --kind", Text: err.Error()}
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
	r, err := restart.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := a.restartTable(r); err != nil || !check {
		return err
	}
	short := 0
	for _, row := range r.Rows {
		if row.Short() {
			short++
			fmt.Fprintf(a.stderr, "%s, %s: falls short\n", row.Event, row.Kind)
		}
	}
	if short > 0 {
		return fmt.Errorf("%d of %d rows fall short", short, len(r.Rows))
	}
	return nil
}

func (a *app) restartTable(r *restart.Result) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	head := []string{"EVENT", "PORT", "OUTAGE MS", "AT MOST", "LOST", "OF", "LATE", "ANSWERS MS", "CONNECTIONS"}
	return a.rows(head, func(add func(...string) error) error {
		for _, row := range r.Rows {
			answers := "-"
			if row.StartMS > 0 {
				answers = fmt.Sprintf("%.0f", row.StartMS)
			}
			if err := add(row.Event, row.Kind, fmt.Sprintf("%.0f", row.OutageMS), fmt.Sprintf("%.0f", row.MostMS),
				fmt.Sprint(row.Lost), fmt.Sprint(row.Sent), fmt.Sprint(row.Late), answers,
				fmt.Sprintf("%d of %d", row.Survived, row.Connections)); err != nil {
				return err
			}
		}
		return nil
	})
}
