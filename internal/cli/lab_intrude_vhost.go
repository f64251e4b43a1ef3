// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/lab/intrude"
)

func newIntrudeVhost(a *app) *cobra.Command {
	o := intrude.Default()
	cmd := verb("vhost", "A receiver on the CPU of its own softirqs, found and moved by explain", "  corelane lab intrude vhost",
		func(ctx context.Context, _ []string) error {
			return a.intrudeRun(ctx, &o, func(ctx context.Context) error { return a.intrudeVhost(ctx, o) })
		})
	cmd.Long = `Receive the kernel's own traffic by a thread on the CPU that carries its softirqs, as vhost threads of a field report did; let corelane explain
--thread find that, run the command that it gives, and receive again. A sender on the generator's CPU floods a cable between two network
namespaces whose other end's packets receive packet steering gives to --cpu. On two CPUs the receiver then shares the sender's, which takes
from the gain.

Exit code 1 when explain does not name softirqs first, or its command does not help.`
	intrudeFlags(cmd, &o)
	cmd.Flags().IntVar(&o.Repetitions, "runs", o.Repetitions, "repetitions")
	cmd.Flags().DurationVar(&o.Window, "window", o.Window, "that explain looks, up to 10s")
	return cmd
}

func (a *app) intrudeVhost(ctx context.Context, o intrude.Options) error {
	var failed []error
	enc := json.NewEncoder(a.stdout)
	if !a.json() {
		fmt.Fprint(a.stdout, "| receiver's CPUs | Mpps before | found first | seconds | command | CPUs | Mpps after | gain |\n|---|---|---|---|---|---|---|---|\n")
	}
	err := intrude.MeasureReceiver(ctx, o, func(r intrude.Receiver) {
		c := r.Report.Causes[0]
		if c.Kind != explain.Softirq || r.After <= r.Before {
			failed = append(failed, fmt.Errorf("%s: from %.3f to %.3f Mpps", r.Report.Verdict, r.Before/1e6, r.After/1e6))
		}
		if a.json() {
			_ = enc.Encode(r)
			return
		}
		fmt.Fprintf(a.stdout, "| %s | %.3f | %s: %s | %.1f | `%s` | %s | %.3f | %.2f x |\n", r.CPUs[0], r.Before/1e6, c.Kind, c.Name, r.Seconds, r.Command,
			r.CPUs[1], r.After/1e6, r.After/r.Before)
	})
	if !a.json() {
		fmt.Fprintf(a.stdout, "\nThe field report: %.2f Gbit/s, and %.2f after its vhost threads were moved, %.2f x.\n", intrude.ReportedVhost[0],
			intrude.ReportedVhost[1], intrude.ReportedVhost[1]/intrude.ReportedVhost[0])
	}
	return errors.Join(append(failed, err)...)
}
