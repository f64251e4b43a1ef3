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
	cmd := verb("vhost", "Let explain find and move a receiver on the CPU of its softirqs",
		"  corelane lab intrude vhost",
		func(ctx context.Context, _ []string) error {
			return a.intrudeRun(ctx, &o, func(ctx context.Context) error { return a.intrudeVhost(ctx, o) })
		})
	cmd.Long = `Receive the kernel's traffic in a thread on the CPU that also runs its softirqs, as the vhost threads
of "KVM vhost performance tuning to enhance ADC VE throughput" (2017) did. Then let corelane explain --thread find that,
run the command that it prints, and receive again. A sender on the generator's CPU floods a veth pair between two
network namespaces; receive packet steering moves the packets of the far end to --cpu. With only two CPUs the receiver
then shares the sender's CPU, which reduces the gain.

Exit code 1 when explain does not name softirqs first, or its command does not help.`
	intrudeFlags(cmd, &o)
	cmd.Flags().IntVar(&o.Repetitions, "runs", o.Repetitions, "repetitions")
	cmd.Flags().DurationVar(&o.Window, "window", o.Window, "how long explain watches, up to 10s")
	return cmd
}

func (a *app) intrudeVhost(ctx context.Context, o intrude.Options) error {
	var failed []error
	enc := json.NewEncoder(a.stdout)
	if !a.json() {
		fmt.Fprint(a.stdout, "| receiver's CPUs | Mpps before | found first | seconds | command | CPUs | Mpps after "+
			"| gain |\n|---|---|---|---|---|---|---|---|\n")
	}
	err := intrude.MeasureReceiver(ctx, o, func(r intrude.Receiver) {
		c := r.Report.Causes[0]
		if c.Kind != explain.Softirq || r.After <= r.Before {
			failed = append(failed, fmt.Errorf("%s: from %.3f to %.3f Mpps", r.Report.Verdict, r.Before/1e6,
				r.After/1e6))
		}
		if a.json() {
			_ = enc.Encode(r)
			return
		}
		fmt.Fprintf(a.stdout, "| %s | %.3f | %s: %s | %.1f | `%s` | %s | %.3f | %.2f x |\n", r.CPUs[0], r.Before/1e6,
			c.Kind, c.Name, r.Seconds, r.Command, r.CPUs[1], r.After/1e6, r.After/r.Before)
	})
	if !a.json() {
		fmt.Fprintf(a.stdout, "\nKVM vhost performance tuning (2017): %.2f Gbit/s, and %.2f after its vhost threads "+
			"were moved, %.2f x.\n", intrude.ReportedVhost[0], intrude.ReportedVhost[1],
			intrude.ReportedVhost[1]/intrude.ReportedVhost[0])
	}
	return errors.Join(append(failed, err)...)
}
