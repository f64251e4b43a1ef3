// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench/neighbor"
)

type neighborFlags struct {
	neighbor.Options
	list, quick, check bool
	trialSeconds       float64
}

func newBenchNeighbor(a *app) *cobra.Command {
	f := &neighborFlags{Options: neighbor.Default()}
	f.trialSeconds = f.Trial.Seconds()
	cmd := verb("neighbor", "Measure what a tenant loses while another tenant attacks",
		"  corelane bench neighbor\n  corelane bench neighbor --attack new-flows --check\n"+
			"  corelane bench neighbor --list", func(ctx context.Context, _ []string) error {
			return a.benchNeighbor(ctx, f)
		})
	cmd.Long = `Measure what one tenant loses while another tenant of the same worker attacks the router. The observed
tenant sends packets of a thousand known flows at half of its fair share, which is a quarter of what the worker
forwards. It is measured alone, beside the attacker and, where the attack is packets, beside an ordinary neighbour
that sends packets of known flows at the rate of the attack, or whole frames instead of chains (BUSY). Meanwhile a
host on the fabric asks for the router's MAC address, and the API is called in a loop.

The targets of each row: the observed tenant keeps 0.90 of the rate that it has alone. Its 99th percentile of latency,
the median over windows of 20 ms, is at most 1/0.90 times as long as beside the ordinary neighbour or, where BUSY is
"-", as alone; at most twice as long for truncate, messages and full-call. All ARP requests are answered, no call of
the API and no turn of the router's master takes more than 100 ms, and each lost packet has a drop reason. Repeated
trials show the noise of this machine: a figure that noise alone can move across its target is "within noise". --check
fails for rows that miss a target by more.

It needs root and two CPUs. The result is a JSON file.

Exit code: 0 done, 1 a row misses a target (--check) or the router failed, 2 wrong input, 130 interrupted.`
	s := cmd.Flags()
	s.BoolVar(&f.list, "list", false, "list the attacks")
	s.BoolVar(&f.quick, "quick", false, "short and coarse, to see whether it works at all")
	s.BoolVar(&f.check, "check", false, "exit with 1 if a row misses a target")
	s.StringSliceVar(&f.Attacks, "attack", nil, "only this attack; may be repeated")
	s.StringSliceVar(&f.Ports, "port", nil, "only this kind of port of the attacker: "+
		strings.Join(neighbor.PortKinds(), ", "))
	s.IntVar(&f.Repetitions, "reps", f.Repetitions,
		"trials of each kind: alone, beside an ordinary neighbour, beside the attacker")
	s.Float64Var(&f.trialSeconds, "trial-seconds", f.trialSeconds, "length of a trial")
	s.Float64Var(&f.Rate, "rate", 0, "frames per second of the observed tenant; default: half of its fair share")
	s.IntVar(&f.FlowLimit, "flow-limit", 0, "most flows of the attacker's port, 0 = no limit")
	s.IntVar(&f.FlowRate, "flow-rate", 0, "most new flows per second of the attacker's port, 0 = no limit")
	s.IntVar(&f.WorkerCPU, "cpu", f.WorkerCPU, "CPU of the worker")
	s.IntVar(&f.Generator, "generator-cpu", f.Generator, "CPU of the traffic generator and of everything else")
	s.StringVar(&f.Out, "out", f.Out, "directory of the result")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.RegisterFlagCompletionFunc("attack", a.complete(fixed(neighbor.AttackNames()...)))
	_ = cmd.RegisterFlagCompletionFunc("port", a.complete(fixed(neighbor.PortKinds()...)))
	return cmd
}

func (a *app) benchNeighbor(ctx context.Context, f *neighborFlags) error {
	if f.list {
		return a.neighborList()
	}
	f.Trial = time.Duration(f.trialSeconds * float64(time.Second))
	if f.quick {
		f.Quick()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f.Bin, f.Command, f.Version, f.Commit = filepath.Dir(self), strings.Join(os.Args, " "), Version, Commit
	ctx, done := untilHangup(ctx)
	defer done()
	p := newBenchProgress(a.stderr)
	r, err := neighbor.Run(ctx, f.Options, p)
	p.end()
	if r == nil {
		return err
	}
	base := filepath.Join(f.Out, "corelane-neighbor-"+r.Started.Format("20060102-150405"))
	err = errors.Join(err, saveBench(base, r, nil), a.neighborTable(base+".json", r, f.Trial))
	if missed := r.Missed(); err == nil && f.check && len(missed) > 0 {
		return fmt.Errorf("%d of %d rows miss a target", len(missed), len(r.Rows))
	}
	return err
}

func (a *app) neighborList() error {
	if a.json() {
		return jsonLines(a.stdout, neighbor.Attacks())
	}
	return a.rows([]string{"ATTACK", "PORTS", "WHAT THE ATTACKER DOES"}, func(add func(...string) error) error {
		for _, attack := range neighbor.Attacks() {
			if err := add(attack.Name, strings.Join(attack.Ports, ", "), attack.Summary); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) neighborTable(path string, r *neighbor.Result, trial time.Duration) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	header := []string{"ATTACK", "PORT", "MPPS", "KEPT", "(RANGE)", "P99 US", "BUSY", "ATTACKED", "TIMES", "VERDICT",
		"LOOP US", "ATTACKED", "ARP", "API MS", "MASTER", "ATTACK MPPS", "PASSED", "DROPPED BY"}
	err := a.rows(header, func(add func(...string) error) error {
		for _, row := range r.Rows {
			if err := add(neighborRow(row, trial)...); err != nil {
				return err
			}
		}
		return nil
	})
	for _, n := range r.Noise {
		fmt.Fprintf(a.stdout, "noise, %s: %s\n", n.Port, noiseText(n))
	}
	for _, row := range r.Rows {
		if len(row.Missed) > 0 {
			fmt.Fprintf(a.stdout, "misses: %s, %s: %s\n", row.Name, row.Port, strings.Join(row.Missed, "; "))
		}
		if len(row.Unsure) > 0 {
			fmt.Fprintf(a.stdout, "within noise: %s, %s: %s\n", row.Name, row.Port, strings.Join(row.Unsure, "; "))
		}
	}
	fmt.Fprintf(a.stdout, "Written: %s\n", path)
	return err
}

// attackRate is in Mpps, and in times per second for what is much rarer, such as connections.
func attackRate(v float64) string {
	if v < 1e4 {
		return fmt.Sprintf("%.0f/s", v)
	}
	return fmt.Sprintf("%.2f", v/1e6)
}

// noiseText says by which factor figures stray without an attack.
func noiseText(n neighbor.Noise) string {
	text := fmt.Sprintf("medians of %d pairs of the same trial differ by a factor of up to %.2f in the rate",
		n.Pairs, n.Kept)
	if n.P99 > 0 {
		text += fmt.Sprintf(" and %.2f in p99", n.P99)
	}
	return text
}

func neighborRow(row *neighbor.Row, trial time.Duration) []string {
	mpps := func(v float64) string { return fmt.Sprintf("%.2f", v/1e6) }
	micro := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", v)
	}
	quick, slow := row.Loops()
	times := "-"
	if slower := row.Slower().Median; slower > 0 {
		times = fmt.Sprintf("%.2f", slower)
	}
	kept := row.Kept()
	without, busy, with := row.P99()
	answered, asked := row.ARP()
	var why []string
	for _, d := range row.Drops(trial) {
		why = append(why, fmt.Sprintf("%s %s", d.Reason, mpps(d.Rate)))
	}
	return []string{row.Name, row.Port, mpps(row.Offered), fmt.Sprintf("%.2f", kept.Median),
		fmt.Sprintf("(%.2f to %.2f)", kept.Low, kept.High), micro(without), micro(busy), micro(with), times,
		row.Verdict(), micro(quick.Median), micro(slow.Median),
		fmt.Sprintf("%d of %d", answered, asked),
		fmt.Sprintf("%.1f", row.CallMS()), fmt.Sprintf("%.1f", row.MasterMS()),
		attackRate(row.Of(func(p neighbor.Pair) float64 { return p.With.Attack }).Median),
		mpps(row.Of(func(p neighbor.Pair) float64 { return p.With.Passed }).Median), strings.Join(why, ", ")}
}
