// SPDX-License-Identifier: Apache-2.0
package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
)

func build(r *result.Result) view {
	list, common := groups(r)
	p := newPalette(r)
	v := view{Style: template.CSS(styleText), Verdict: verdict(r, list), Facts: facts(r, common), Command: r.Command,
		Footer: fmt.Sprintf("Corelane %s, format %d of results.", cmp.Or(r.Manifest.Corelane, "of an unknown version"),
			r.Version)}
	if !r.Complete {
		v.Incomplete = fmt.Sprintf("The run was interrupted, or a part of it failed. %s began. Everything shown here "+
			"was measured.",
			plural(len(r.Runs), "measurement"))
	}
	for _, s := range []section{summary(r, list), throughput(r, list, p), curves(list, p), searches(list, p),
		latencies(list, p), nodes(r, list), limits(list), machine(r), notes(r)} {
		if len(s.Figures)+len(s.Bullets) > 0 || s.Table != nil && len(s.Table.Rows) > 0 {
			v.Sections = append(v.Sections, s)
		}
	}
	return v
}

func facts(r *result.Result, common string) []string {
	var list []string
	for _, fact := range []string{r.Manifest.CPU, r.Manifest.Host, took(r), common} {
		if fact != "" {
			list = append(list, fact)
		}
	}
	return list
}

func took(r *result.Result) string {
	if r.Started.IsZero() {
		return ""
	}
	text := r.Started.Format("2 January 2006 15:04 MST")
	switch seconds := int(r.Ended.Sub(r.Started).Seconds()); {
	case seconds >= 60:
		text += fmt.Sprintf(", took %d min %d s", seconds/60, seconds%60)
	case seconds > 0:
		text += fmt.Sprintf(", took %d s", seconds)
	}
	return text
}

// summary has a row for each run.
func summary(r *result.Result, list []*group) section {
	t :=
		table{Heads: append(append(left("Router"), right("Mpps", "10th to 90th percentile", "Of the ceiling",
			"NDR, Mpps", "PDR, Mpps", "99th percentile at half load, µs")...),
			left("Limited by")...)}
	for _, g := range list {
		t.Rows = append(t.Rows, tableRow{Cells: []string{g.Title}, Group: true})
		for _, run := range g.Runs {
			t.Rows = append(t.Rows, summaryRow(r, run))
		}
	}
	t = t.filled()
	return section{ID: "summary", Title: "Summary", Text: state(r), Table: &t}
}

const someFar = 0.05 // share of far windows that a reader should know of

// state describes the state of the machine during the run where it matters.
func state(r *result.Result) string {
	near, far, all := r.Near(), 0, 0
	for _, run := range r.Runs {
		for _, w := range run.Windows {
			all++
			if !near(w) {
				far++
			}
		}
	}
	if float64(far) <= someFar*float64(all) {
		return ""
	}
	return fmt.Sprintf("In %.0f %% of the windows the machine had put the two CPUs far from each other, which slows "+
		"every router down. Ratios to the ceiling compare windows of the same state where there are enough.",
		100*float64(far)/float64(all))
}

func summaryRow(r *result.Result, run *result.Run) tableRow {
	if run.Error != "" {
		return tableRow{Cells: []string{run.Router}, Note: run.Error}
	}
	s, list := r.Summary(run), received(run)
	loss := lossRow(run).Cells
	between := none
	if len(list) > 0 {
		between = span(stat.Percentile(list, 0.1), stat.Percentile(list, 0.9), mpps)
	}
	return tableRow{Cells: []string{run.Router, mpps(s.Median), between, ofCeiling(run, s), loss[1], loss[2],
		halfLoad(run), cmp.Or(run.Bottleneck.Component, none)}}
}

// halfLoad is the 99th percentile of the latency at half of the NDR.
func halfLoad(run *result.Run) string {
	for _, l := range run.Latency {
		if strings.HasPrefix(l.Load, "50%") && l.P99 > 0 {
			return number(l.P99)
		}
	}
	return none
}

// limits shows what limited each run, what was dropped, and how many frames were checked.
func limits(list []*group) section {
	t := table{Heads: append(left("Router", "Limited by", "What tells"), right("Frames checked")...)}
	for _, g := range list {
		t.Rows = append(t.Rows, tableRow{Cells: []string{g.Title}, Group: true})
		for _, run := range g.Runs {
			if run.Error != "" {
				t.Rows = append(t.Rows, tableRow{Cells: []string{run.Router}, Note: "Not measured: " + run.Error})
				continue
			}
			t.Rows = append(t.Rows,
				tableRow{Cells: []string{run.Router, cmp.Or(run.Bottleneck.Component, none), evidence(run),
					count(run.Checked)}})
		}
	}
	return section{ID: "limits", Title: "What limited the rate",
		Text: "The checked frames of every router had the headers that the scenario asks for.", Table: &t}
}

func evidence(run *result.Run) string {
	text := cmp.Or(run.Bottleneck.Why, none)
	var drops []string
	for _, d := range run.Drops {
		drops = append(drops, fmt.Sprintf("%s %s", d.Reason, count(d.Frames)))
	}
	if len(drops) > 0 {
		text += "; dropped by the router: " + strings.Join(drops, ", ")
	}
	return text
}

// machine shows the manifest.
func machine(r *result.Result) section {
	m := &r.Manifest
	t := table{Heads: left("", "")}
	add := func(name, value string) {
		t.Rows = append(t.Rows, tableRow{Cells: []string{name, cmp.Or(value, "none")}})
	}
	add("Host", m.Host)
	add("CPU", fmt.Sprintf("%s, %s%s%s", cmp.Or(m.CPU, "unknown"), plural(m.CPUs, "CPU"), frequency(m.TSCHz),
		map[bool]string{true: ", virtual machine"}[m.Hypervisor]))
	routers := strings.Trim(fmt.Sprint(m.RouterCPUs), "[]")
	add("CPUs used", fmt.Sprintf("routers %s, generator and everything else %d", routers, m.GeneratorCPU))
	add("Kernel", m.Kernel)
	add("Kernel arguments", m.KernelArgs)
	add("Isolated CPUs", m.Isolated)
	add("CPUs without timer tick", m.NoHzFull)
	add("Frequency governor", m.Governor)
	var pages []string
	for _, size := range slices.Sorted(maps.Keys(m.Hugepages)) {
		pages = append(pages, fmt.Sprintf("%s of %s", count(m.Hugepages[size]), size))
	}
	add("Hugepages", strings.Join(pages, ", "))
	add("DPDK", m.DPDK)
	add("Compiler", m.Compiler)
	add("Corelane", strings.TrimSpace(m.Corelane+" "+m.Commit))
	seen := map[string]bool{}
	for _, run := range r.Runs {
		if !seen[run.Router] && run.RouterVersion != "" {
			seen[run.Router] = true
			add("Router "+run.Router, run.RouterVersion)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		add("Setting "+strings.ReplaceAll(name, "_", " "), m.Settings[name])
	}
	return section{ID: "machine", Title: "Machine and settings", Table: &t}
}

func frequency(hz uint64) string {
	if hz == 0 {
		return ""
	}
	return fmt.Sprintf(", time stamp counter at %s GHz", number(float64(hz)/1e9))
}

func notes(r *result.Result) section {
	s := section{ID: "notes", Title: "Notes"}
	for _, text := range r.Notes {
		s.Bullets = append(s.Bullets, bullet{Text: text})
	}
	return s
}
