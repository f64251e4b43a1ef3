// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/lab"
)

type hostPathFlags struct {
	ipv6                           bool
	rounds, seconds, pings         int
	forwardingCPU, hostCPU, memory int
	daemon                         string
}

func newBenchHostPath(a *app) *cobra.Command {
	f := &hostPathFlags{}
	cmd := verb("host-path", "Measure whether an overloaded data plane slows the host's own traffic",
		"  corelane bench host-path\n  corelane bench host-path --rounds 9 --seconds 5 --ipv6", nil)
	cmd.Long = `Measure the five cases of DPVS's table on its KNI worker: the host's own traffic (ping, and TCP by
iperf3, from another host) without a host-path worker, with one, with one and the address steered to it, and the
last two while each loop of the forwarding worker takes 1 ms longer. They run in a lab of namespaces, which is
removed afterwards. It needs root, ping and iperf3.

Each round measures all cases in turn; figures are medians over the rounds, ratios are computed within a round. The
forwarding worker has a CPU for itself, so that its overload affects nothing else. With three CPUs or more the
host-path worker has one, too; with two it shares the other one with ping, iperf3 and the kernel, and sleeps when
idle.`
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.benchHostPath(cmd.Context(), f) }
	s := cmd.Flags()
	s.BoolVar(&f.ipv6, "ipv6", false, "over IPv6")
	s.IntVar(&f.rounds, "rounds", 5, "rounds, each of which measures all cases, 1 to 100")
	s.IntVar(&f.seconds, "seconds", 3, "seconds of TCP in each case, 1 to 60")
	s.IntVar(&f.pings, "pings", 40, "echo requests in each case, 1 to 1000")
	s.IntVar(&f.forwardingCPU, "forwarding-cpu", -1, "CPU of the forwarding worker (default: the last one)")
	s.IntVar(&f.hostCPU, "host-cpu", -1, "CPU of the host-path worker (default: the one before, or with two CPUs the "+
		"first)")
	s.IntVar(&f.memory, "memory", 0, "memory of corelaned in MB (default 256)")
	s.StringVar(&f.daemon, "corelaned", "", "path of corelaned (default: the one beside this program, or in PATH)")
	return cmd
}

func (f *hostPathFlags) options() (o lab.HostPathOptions, err error) {
	for _, n := range []struct {
		flag       string
		value, max int
	}{{"--rounds", f.rounds, 100}, {"--seconds", f.seconds, 60}, {"--pings", f.pings, 1000}} {
		if n.value < 1 || n.value > n.max {
			return o, input.Errorf(n.flag, fmt.Sprintf("1 to %d", n.max), "'%d' is out of range", n.value)
		}
	}
	o = lab.HostPathOptions{Options: lab.Options{Underlay: lab.IPv4, Daemon: f.daemon, MemoryMB: f.memory},
		Rounds: f.rounds, Seconds: f.seconds, Pings: f.pings}
	if f.ipv6 {
		o.Underlay = lab.IPv6
	}
	if o.Placement, err = lab.PlaceHostPath(); err != nil {
		return o, &input.Error{Field: "machine", Text: err.Error()}
	}
	if f.forwardingCPU >= 0 {
		o.Placement.Forwarding = f.forwardingCPU
	}
	if f.hostCPU >= 0 {
		o.Placement.HostPath = f.hostCPU
	}
	return o, nil
}

func (a *app) benchHostPath(ctx context.Context, f *hostPathFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	o.Say = func(text string) { fmt.Fprintln(a.stderr, "  "+text) }
	o.Measured = func(round int, row lab.HostPathRow) {
		s := row.Samples[len(row.Samples)-1]
		fmt.Fprintf(a.stderr, "  round %d: %-48s ping %.3f ms, %s, %.0f packets/s\n", round+1, row.Name, s.Ping.AvgMs,
			lab.BitRate(s.TCP.BitsPerSecond), s.Pps)
	}
	r, err := lab.RunHostPath(ctx, o)
	if err != nil {
		return err
	}
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	return a.hostPathTable(r)
}

// Rows of the table that are compared with each other.
const (
	hostPathWorkerIdle = iota + 1
	hostPathSteeredIdle
	hostPathWorkerOverloaded
	hostPathSteeredOverloaded
)

func (a *app) hostPathTable(r lab.HostPathReport) error {
	err := a.rows([]string{"CASE", "PING MIN/AVG/MAX MS", "TCP", "PACKETS/S", "DPVS: PING AVG", "TCP", "PACKETS/S"},
		func(add func(...string) error) error {
			for _, row := range r.Rows {
				low := row.Median(func(s lab.HostPathSample) float64 { return s.Ping.MinMs })
				high := row.Median(func(s lab.HostPathSample) float64 { return s.Ping.MaxMs })
				if err := add(row.Name, fmt.Sprintf("%.3f/%.3f/%.3f", low, row.PingMs(), high), lab.BitRate(row.Bps()),
					fmt.Sprintf("%.0f", row.Pps()), fmt.Sprintf("%.3f ms", row.PublishedPingMs),
					lab.BitRate(row.PublishedBps), fmt.Sprintf("%.0f", row.PublishedPps)); err != nil {
					return err
				}
			}
			return nil
		})
	rate := func(s lab.HostPathSample) float64 { return s.TCP.BitsPerSecond }
	ping := func(s lab.HostPathSample) float64 { return s.Ping.AvgMs }
	fmt.Fprintf(a.stdout, `
Overloaded against idle: with steering %.2f of the rate (goal: at least 0.95; DPVS %.2f), ping %.2f times (at most
1.2; DPVS %.2f); without it %.2f of the rate (DPVS %.2f), ping %.2f times (DPVS %.2f). Steering: %s. CPUs:
forwarding worker %d, host-path worker %d, everything else %v.`,
		r.Ratio(hostPathSteeredOverloaded, hostPathSteeredIdle, rate), 4.53/4.57,
		r.Ratio(hostPathSteeredOverloaded, hostPathSteeredIdle, ping), 2.139/2.346,
		r.Ratio(hostPathWorkerOverloaded, hostPathWorkerIdle, rate), 0.341/4.54,
		r.Ratio(hostPathWorkerOverloaded, hostPathWorkerIdle, ping), 29.88/2.102,
		r.Rows[hostPathSteeredIdle].Steering, r.Placement.Forwarding, r.Placement.HostPath, r.Placement.Others)
	return err
}
