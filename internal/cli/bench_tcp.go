// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/lab"
	"github.com/corelane/corelane/internal/stat"
)

type bulkFlags struct {
	list, check, quick      bool
	paths                   []string
	mtus, connections       []int
	rounds, seconds, memory int
	idle, daemon            string
}

func newBenchTCP(a *app) *cobra.Command {
	f := &bulkFlags{}
	cmd := verb("tcp", "Measure TCP connections between guests, and between the kernel's own bridges and tunnels",
		"  corelane bench tcp --check\n  corelane bench tcp --path VXLAN --connections 1 --rounds 9\n"+
			"  corelane bench tcp --list", nil)
	cmd.Long = `Measure TCP between two guests by iperf3: on one node, and between two nodes through each encapsulation,
which a memif or a veth pair with packet sockets connects. In turn with them: a kernel bridge between veth pairs, Open
vSwitch in its place, and the kernel's VXLAN whose underlay carries packets of MTU size or whole segments of 64 KB. It
runs in labs of namespaces, which are removed afterwards, and needs root, iperf3 and, for its row, Open vSwitch with
DPDK.

Each round measures all paths in turn, there and back; figures are medians over the rounds, with their ranges. CPU time
is that of the whole machine per gigabyte, so nothing else should run meanwhile; it includes the polling of idle
workers, which --idle limits. --check fails if a path is slower than its target in comparison with another one.

Exit code: 0 done, 1 a target is missed (--check) or a path failed, 2 wrong input, 130 interrupted.`
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.benchTCP(cmd.Context(), f) }
	s := cmd.Flags()
	s.BoolVar(&f.list, "list", false, "list the paths and the targets")
	s.BoolVar(&f.check, "check", false, "exit with 1 if a target is missed")
	s.BoolVar(&f.quick, "quick", false, "one connection, an MTU of 1500, three rounds of a second, and VXLAN as the "+
		"only tunnel: about three minutes")
	s.StringArrayVar(&f.paths, "path", nil, "only paths whose name contains this text; may be repeated")
	s.IntSliceVar(&f.mtus, "mtu", []int{1500, 9000}, "MTU of the guests")
	s.IntSliceVar(&f.connections, "connections", []int{1, 8}, "connections at the same time, 1 to 100")
	s.IntVar(&f.rounds, "rounds", 5, "rounds, each of which measures all paths, 1 to 100")
	s.IntVar(&f.seconds, "seconds", 2, "seconds of each measurement, 1 to 60")
	s.IntVar(&f.memory, "memory", 0, "memory of each corelaned in MB (default 256)")
	s.StringVar(&f.idle, "idle", "", "idle policy of the workers (default sleep)")
	s.StringVar(&f.daemon, "corelaned", "", "path of corelaned (default: the one beside this program, or in PATH)")
	return cmd
}

// quickPaths are those of the comparisons with other routers.
var quickPaths = []string{"tap to tap", "kernel", "Open vSwitch", "vhost-user", "VXLAN, memif", "VXLAN, veth"}

func (f *bulkFlags) options() (o lab.BulkOptions, err error) {
	if f.quick {
		f.paths, f.mtus, f.connections, f.rounds, f.seconds = quickPaths, []int{1500}, []int{1}, 3, 1
	}
	check := func(flag string, value, most int) {
		if (value < 1 || value > most) && err == nil {
			err = input.Errorf(flag, fmt.Sprintf("1 to %d", most), "'%d' is out of range", value)
		}
	}
	check("--rounds", f.rounds, 100)
	check("--seconds", f.seconds, 60)
	for _, n := range f.connections {
		check("--connections", n, 100)
	}
	for _, mtu := range f.mtus {
		if mtu != 1500 && mtu != 9000 && err == nil {
			err = input.Errorf("--mtu", "1500, 9000", "'%d' is not measured", mtu)
		}
	}
	for _, text := range f.paths {
		if !slices.ContainsFunc(lab.BulkPaths(), func(p lab.BulkPath) bool { return strings.Contains(p.Name, text) }) &&
			err == nil {
			err = input.Errorf("--path", "see --list", "no path contains '%s'", text)
		}
	}
	o = lab.BulkOptions{Options: lab.Options{Underlay: lab.IPv4, Daemon: f.daemon, MemoryMB: f.memory, Idle: f.idle},
		Rounds: f.rounds, Seconds: f.seconds, Connections: f.connections}
	for _, p := range lab.BulkPaths() {
		named := len(f.paths) == 0 || slices.ContainsFunc(f.paths, func(text string) bool {
			return strings.Contains(p.Name, text)
		})
		if named && slices.Contains(f.mtus, p.MTU) {
			o.Paths = append(o.Paths, p)
		}
	}
	if len(o.Paths) == 0 && err == nil {
		err = input.Errorf("--mtu", "see --list", "the named paths have another MTU")
	}
	return o, err
}

func (a *app) benchTCP(ctx context.Context, f *bulkFlags) error {
	if f.list {
		return a.tcpList()
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	o.Say = func(text string) { fmt.Fprintln(a.stderr, "  "+text) }
	o.Measured = func(round int, row lab.BulkRow) {
		text := row.Error
		if text == "" {
			s := row.Samples[len(row.Samples)-1]
			text = fmt.Sprintf("%s, %d retransmits, %.2f CPU s/GB", lab.BitRate(s.BitsPerSecond), s.Retransmits,
				s.CPUSeconds)
		}
		fmt.Fprintf(a.stderr, "  round %d: %s: %s\n", round+1, strings.Join(tcpKey(row), ", "), text)
	}
	r, err := lab.RunBulk(ctx, o)
	if err != nil {
		return err
	}
	if a.json() {
		err = json.NewEncoder(a.stdout).Encode(r)
	} else {
		err = a.tcpTable(r)
	}
	if err != nil {
		return err
	}
	return f.judge(r)
}

func (f *bulkFlags) judge(r lab.BulkReport) error {
	failed, missed := 0, 0
	for _, row := range r.Rows {
		if row.Error != "" {
			failed++
		}
	}
	for _, c := range r.Compare() {
		if c.Ratio.Median < c.Least {
			missed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rows could not be measured", failed, len(r.Rows))
	}
	if f.check && missed > 0 {
		return fmt.Errorf("%d of %d targets are missed", missed, len(r.Compare()))
	}
	return nil
}

func (a *app) tcpList() error {
	if a.json() {
		enc := json.NewEncoder(a.stdout)
		for _, p := range lab.BulkPaths() {
			if err := enc.Encode(p); err != nil {
				return err
			}
		}
		return nil
	}
	return a.rows([]string{"PATH", "MTU", "TARGETS, ONE CONNECTION"}, func(add func(...string) error) error {
		for _, p := range lab.BulkPaths() {
			var targets []string
			for _, t := range lab.BulkTargets() {
				if t.Of == p.Name && p.MTU == 1500 {
					targets = append(targets, fmt.Sprintf("%g x %s", t.Least, t.To))
				}
			}
			if err := add(p.Name, fmt.Sprint(p.MTU), strings.Join(targets, "; ")); err != nil {
				return err
			}
		}
		return nil
	})
}

// tcpKey names a row.
func tcpKey(r lab.BulkRow) []string {
	way := "there"
	if r.Back {
		way = "back"
	}
	return []string{r.Name, fmt.Sprint(r.MTU), fmt.Sprint(r.Connections), way}
}

func spreadText(s stat.Spread, digits int) string {
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, s.Median, digits, s.Low, digits, s.High)
}

func (a *app) tcpTable(r lab.BulkReport) error {
	head := []string{"PATH", "MTU", "CONNECTIONS", "WAY", "GBIT/S", "RETRANSMITS", "CPU S/GB"}
	err := a.rows(head, func(add func(...string) error) error {
		for _, row := range r.Rows {
			figures := []string{row.Error, "", ""}
			if row.Error == "" {
				figures = []string{spreadText(row.Gbps(), 2), fmt.Sprintf("%.0f", row.Retransmits().Median),
					spreadText(row.CPU(), 2)}
			}
			if err := add(append(tcpKey(row), figures...)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	list := r.Compare()
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return a.rows([]string{"TARGET: ONE CONNECTION, MTU 1500", "IN COMPARISON WITH", "RATIO", "AT LEAST", "AIM", ""},
		func(add func(...string) error) error {
			for _, c := range list {
				aim, verdict := "-", "holds"
				if c.Aim > 0 {
					aim = fmt.Sprintf("%g", c.Aim)
				}
				if c.Ratio.Median < c.Least {
					verdict = "misses"
				}
				if err := add(c.Of, c.To, spreadText(c.Ratio, 2), fmt.Sprintf("%g", c.Least), aim,
					verdict); err != nil {
					return err
				}
			}
			return nil
		})
}
