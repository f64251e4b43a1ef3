// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/lab"
)

const demoLab = "overlay"

func newLabDemo(a *app) *cobra.Command {
	o := lab.Options{}
	keep := false
	cmd := verb("demo", "Show that tenants reach each other through every overlay",
		"  corelane lab demo\n  corelane lab demo --keep",
		func(ctx context.Context, _ []string) error { return a.demo(ctx, o, keep) })
	cmd.Long = `Start the lab '` + demoLab + `' and measure, for MPLSoUDP, MPLSoGRE, VXLAN and Geneve over IPv4 and
over IPv6: loss and round trip of ping, rates of TCP and UDP with iperf3, the largest packet that gets through, and
what the routers dropped and why. Then the same for a VXLAN bridge domain that is shared with the kernel's own VXLAN
device on a third host. At the end a guest gets security rules and a floating address, and the workers of a host
change between run-to-completion and hybrid mode under iperf3.

Exit code 1 when a ping is lost or answered against expectation, or when the change of modes loses or reorders packets.`
	labFlags(cmd, &o)
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the lab running")
	return cmd
}

func (a *app) demo(ctx context.Context, o lab.Options, keep bool) error {
	topology, err := findLab(demoLab)
	if err != nil {
		return err
	}
	show := a.stdout
	if a.json() {
		show = a.stderr
	}
	o.Say = func(text string) { fmt.Fprintln(show, "  "+text) }
	fmt.Fprintf(show, "Lab %s: %s\n", topology.Name, topology.Title)
	l, err := lab.BringUp(ctx, topology, o)
	if err != nil {
		return err
	}
	report, err := l.Demo(ctx, &demoProgress{w: show})
	if err == nil {
		err = a.demoResult(report)
	}
	if keep {
		if !a.json() {
			a.tryNext(l)
		}
		return err
	}
	err = errors.Join(err, lab.TakeDown(l.Name, o))
	if !a.json() {
		fmt.Fprintln(show, "\nThe lab has been removed. To keep one running: make demo KEEP=1, or")
		for _, command := range append([]string{program() + " lab up " + l.Name}, l.Try(program())[:4]...) {
			fmt.Fprintln(show, "  "+command)
		}
	}
	return err
}

// demoProgress writes a line for each row while it is being measured.
type demoProgress struct {
	w    io.Writer
	last lab.Underlay
}

func (p *demoProgress) Begin(row lab.Row) {
	if row.Underlay != p.last {
		fmt.Fprintf(p.w, "Underlay %s\n", row.Underlay)
		p.last = row.Underlay
	}
	fmt.Fprintf(p.w, "  %-12s %-9s > %-9s", row.Overlay, row.From, row.To)
}

func (p *demoProgress) Step(text string) { fmt.Fprint(p.w, "  "+text) }

func (p *demoProgress) End(row lab.Row) {
	fmt.Fprintln(p.w)
	if row.Error != "" {
		fmt.Fprintln(p.w, "    "+row.Error)
	}
}

func (a *app) demoResult(report lab.Report) error {
	var err error
	if a.json() {
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		err = enc.Encode(report)
	} else {
		err = a.demoTable(report)
	}
	if err == nil && !report.OK() {
		err = errors.New("demo: not every ping came back, or a step failed: see above")
	}
	return err
}

func (a *app) demoWorkers(s lab.Switching) {
	fmt.Fprintln(a.stdout, "\nWorkers:")
	fmt.Fprintf(a.stdout, "  %s changed %d times between run-to-completion and hybrid on two workers while %d "+
		"datagrams passed: %d reordered, %d lost in the routers\n",
		s.Host, s.Changes, s.UDP.Packets, s.UDP.OutOfOrder, s.Lost)
	before := map[uint32]uint64{}
	for _, w := range s.Before {
		before[w.Id] = w.GetState().GetPackets()
	}
	for _, w := range s.After {
		fmt.Fprintf(a.stdout, "    %s on CPU %d: %d packets\n", w.GetState().GetThread(), w.Cpu,
			w.GetState().GetPackets()-before[w.Id])
	}
	for _, line := range strings.Split(s.Top, "\n") {
		fmt.Fprintln(a.stdout, "    "+line)
	}
	if s.Error != "" {
		fmt.Fprintln(a.stdout, "    "+s.Error)
	}
}

func (a *app) demoTable(report lab.Report) error {
	fmt.Fprintln(a.stdout)
	head := []string{"OVERLAY", "UNDERLAY", "FROM", "TO", "PING IPV4/IPV6", "TCP", "UDP AT HALF OF IT", "MTU",
		"DROPPED", "LOST OUTSIDE THE ROUTERS"}
	err := a.rows(head, func(add func(...string) error) error {
		for _, r := range report.Rows {
			err := add(r.Overlay, string(r.Underlay), r.From, r.To, lab.PingText(r.Ping4, r.Ping6),
				lab.BitRate(r.TCP.BitsPerSecond), lab.UDPText(r.UDP), r.MTU.String(), lab.LossText(r.Drops),
				lab.LossText(r.Outside))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "\nOn the wire (tshark):")
	for _, r := range report.Rows {
		for _, frame := range r.Wire {
			fmt.Fprintln(a.stdout, "  "+frame)
		}
	}
	fmt.Fprintln(a.stdout, "\nSecurity rules and address translation:")
	for _, c := range report.Policy {
		fmt.Fprintf(a.stdout, "  %s: %d of %d echoes came back\n", c.Text, c.Ping.Received, c.Ping.Sent)
		for _, more := range []string{c.Flow, c.Error} {
			if more != "" {
				fmt.Fprintln(a.stdout, "    "+more)
			}
		}
		if c.Drops != "none" {
			fmt.Fprintln(a.stdout, "    dropped: "+c.Drops)
		}
	}
	a.demoWorkers(report.Workers)
	fmt.Fprintf(a.stdout, "\n%d paths measured in %.0f s.\n", len(report.Rows), report.Seconds)
	return nil
}
