// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/bench/flowtable"
	"github.com/corelane/corelane/internal/bench/report"
)

type flowTableFlags struct {
	quick, ipv6  bool
	out          string
	cpu          int
	slots, loads []int
}

func newBenchFlowTable(a *app) *cobra.Command {
	f := &flowTableFlags{}
	cmd := verb("flow-table", "Measure lookups in the flow table, and compare other designs",
		"  corelane bench flow-table --quick\n  corelane bench flow-table --slots 21,25 --load 50,90", nil)
	cmd.Long = `Measure the cycles of a lookup in the flow table, and compare it with a table of linked lists, as
older routers have it, with each proposed improvement, and with DPDK's rte_hash. All of them hold the same flows at
the same load and take turns in one process. It needs no root; with free hugepages (tools/with-hugepages.sh) DPDK's
table has large pages like the others.

The result is a JSON file and an HTML page.`
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.benchFlowTable(cmd.Context(), f) }
	s := cmd.Flags()
	s.BoolVar(&f.quick, "quick", false, "fewer windows, and at most 100,000 flows")
	s.BoolVar(&f.ipv6, "ipv6", false, "IPv6 keys")
	s.IntVar(&f.cpu, "cpu", 1, "CPU to run on, -1: any")
	s.IntSliceVar(&f.slots, "slots", nil,
		"sizes of the tables, each as the power of two of its slots, 10 to 25; default: 11,18,21 (a million flows)")
	s.IntSliceVar(&f.loads, "load", nil, "percentages of the slots that are in use, 1 to 98; default: 90")
	s.StringVar(&f.out, "out", ".", "directory of the result")
	return cmd
}

func (a *app) benchFlowTable(ctx context.Context, f *flowTableFlags) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := flowtable.Options{Bin: filepath.Dir(self), Quick: f.quick, IPv6: f.ipv6, Sizes: f.slots, Loads: f.loads,
		CPU: f.cpu}
	if f.quick && len(f.slots) == 0 {
		o.Sizes = []int{11, 18}
	}
	r, err := flowtable.Run(ctx, o, nil)
	if err != nil {
		return err
	}
	base := filepath.Join(f.out, "corelane-flow-table-"+time.Now().Format("20060102-150405"))
	if err := saveBench(base, r, func(w io.Writer) error { return flowTablePage(w, r) }); err != nil {
		return err
	}
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	for _, p := range r.Points() {
		if err := a.flowTablePoint(p); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(a.stdout, note)
	}
	if !r.Hugepages {
		fmt.Fprintln(a.stdout, "rte_hash had pages of 4 KiB, the others transparent huge ones: give it hugepages for "+
			"a fair comparison.")
	}
	fmt.Fprintf(a.stdout, "Written: %s.json and .html\n", base)
	return nil
}

func flowTablePage(w io.Writer, r *flowtable.Result) error {
	pages := "rte_hash on pages of 4 KiB, the others on transparent huge ones"
	if r.Hugepages {
		pages = "pages of 2 MiB for all"
	}
	return report.WriteFlowTable(w, r,
		[]string{time.Now().Format("2 January 2006"), fmt.Sprintf("TSC %.1f GHz", r.TSC/1e9), pages})
}

func (a *app) flowTablePoint(p *flowtable.Point) error {
	fmt.Fprintf(a.stdout, "%d flows (%s), %d %% of the slots taken; cycles per lookup by share of present "+
		"keys\n", p.Flows, p.Family, p.Load)
	err := a.rows([]string{"STEP", "100 %", "90 %", "50 %", "0 %", "GAIN", "OVER", "RTE_HASH: 100 %", "0 %",
		"M INSERTS/S", "WHAT"},
		func(add func(...string) error) error {
			for _, s := range p.Steps {
				if err := add(flowTableRow(&s)...); err != nil {
					return err
				}
			}
			return nil
		})
	fmt.Fprintln(a.stdout)
	return err
}

func flowTableRow(s *flowtable.Step) []string {
	row := []string{s.Backend}
	for _, c := range s.Cycles {
		row = append(row, strconv.FormatFloat(c, 'f', 1, 64))
	}
	gain, over, hits, misses, inserts := "-", "-", "-", "-", "-"
	if s.Gain > 0 {
		gain, over = fmt.Sprintf("%.2fx", s.Gain), s.Against
	}
	if len(s.OfHash) == len(flowtable.Hits) {
		hits, misses = fmt.Sprintf("%.2fx", s.OfHash[0]), fmt.Sprintf("%.2fx", s.OfHash[len(s.OfHash)-1])
	}
	if s.Insert > 0 {
		inserts = fmt.Sprintf("%.2f", s.Insert/1e6)
	}
	return append(row, gain, over, hits, misses, inserts, s.Text)
}
