// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/wait"
)

// Load is the work of CPUs in a span of time, from the counters of /proc/stat, /proc/interrupts and /proc/softirqs
// (proc(5)).
type Load struct {
	Seconds   float64       `json:"seconds"`
	SinceBoot bool          `json:"since_boot,omitempty"` // from one reading: all since boot, not the present load
	CPUs      []CPULoad     `json:"cpus"`
	Threads   map[int]int64 `json:"threads,omitempty"` // clock ticks by TID; only between two readings
}

// CPULoad is the load of one CPU. Times are in clock ticks of 10 ms (USER_HZ).
type CPULoad struct {
	CPU        int              `json:"cpu"`
	User       int64            `json:"user"` // includes nice
	System     int64            `json:"system"`
	Idle       int64            `json:"idle"` // includes iowait
	Irq        int64            `json:"irq"`
	Softirq    int64            `json:"softirq"`
	Steal      int64            `json:"steal"` // the hypervisor ran other guests
	Interrupts map[string]int64 `json:"interrupts,omitempty"`
	Softirqs   map[string]int64 `json:"softirqs,omitempty"`
}

// ReadLoad reads the counters since boot. Missing files are left out, but /proc/stat is required.
func ReadLoad(tree Tree) (*Load, error) {
	l := &Load{SinceBoot: true}
	if text, err := tree.Read("proc/uptime"); err == nil {
		l.Seconds, _ = procfs.ParseUptime(text)
	}
	stat, err := tree.Read("proc/stat")
	if err != nil {
		return nil, err
	}
	times, err := procfs.ParseStat(stat)
	if err != nil {
		return nil, err
	}
	interrupts, interruptsRead := readCounts(tree, "proc/interrupts")
	softirqs, _ := readCounts(tree, "proc/softirqs")
	for _, id := range slices.Sorted(maps.Keys(times)) {
		t := times[id]
		cpu := CPULoad{CPU: id, User: t.User + t.Nice, System: t.System, Idle: t.Unused(), Irq: t.IRQ,
			Softirq: t.Softirq, Steal: t.Steal, Softirqs: softirqs[id]}
		if interruptsRead {
			cpu.Interrupts = orEmpty(interrupts[id])
		}
		l.CPUs = append(l.CPUs, cpu)
	}
	return l, nil
}

// readCounts reads a table of interrupts by CPU and row, without zeros. A row's key is its label, with the driver's
// name for device interrupts: "38 virtio2-input.0".
func readCounts(tree Tree, name string) (table map[int]map[string]int64, ok bool) {
	text, err := tree.Read(name)
	if err != nil {
		return nil, false
	}
	rows, _, _ := procfs.ParseInterrupts(text) // irqs reports malformed lines
	table = map[int]map[string]int64{}
	for _, row := range rows {
		key := row.Label
		if _, numbered := row.IRQ(); numbered && row.Name != "" {
			key += " " + row.Name[strings.LastIndexByte(row.Name, ' ')+1:]
		}
		for cpu, n := range row.Counts {
			if n == 0 {
				continue
			}
			if table[cpu] == nil {
				table[cpu] = map[string]int64{}
			}
			table[cpu][key] = n
		}
	}
	return table, true
}

func orEmpty(rows map[string]int64) map[string]int64 {
	if rows == nil {
		return map[string]int64{}
	}
	return rows
}

// ReadOver is Read of the running machine, with the load of a span of time instead of the load since boot.
func ReadOver(ctx context.Context, span time.Duration) (*Machine, error) {
	first, err := Read("/")
	if err != nil || first.Load == nil {
		return first, err
	}
	begun := time.Now()
	if err := wait.For(ctx, span); err != nil {
		return nil, err
	}
	m, err := Read("/")
	if err != nil || m.Load == nil {
		return m, err
	}
	m.Load = m.Load.Since(first.Load, time.Since(begun).Seconds())
	before := map[int]int64{}
	for i := range first.Threads {
		before[first.Threads[i].TID] = first.Threads[i].CPUTicks
	}
	m.Load.Threads = map[int]int64{}
	for i := range m.Threads {
		if d := m.Threads[i].CPUTicks - before[m.Threads[i].TID]; d > 0 {
			m.Load.Threads[m.Threads[i].TID] = d
		}
	}
	return m, nil
}

func (r *reader) load() {
	l, err := ReadLoad(r.tree)
	if err != nil {
		if !missing(err) {
			r.trouble("proc/stat", "%s", reason(err))
		}
		return
	}
	r.m.Load = l
}

// Since returns the load since an earlier reading, which was taken seconds before this one.
func (l *Load) Since(before *Load, seconds float64) *Load {
	old := map[int]CPULoad{}
	for _, c := range before.CPUs {
		old[c.CPU] = c
	}
	d := &Load{Seconds: seconds}
	for _, c := range l.CPUs {
		b := old[c.CPU]
		d.CPUs = append(d.CPUs, CPULoad{CPU: c.CPU, User: c.User - b.User, System: c.System - b.System, Idle: c.Idle -
			b.Idle, Irq: c.Irq - b.Irq, Softirq: c.Softirq - b.Softirq, Steal: c.Steal - b.Steal,
			Interrupts: stat.GrownBy(c.Interrupts, b.Interrupts), Softirqs: stat.GrownBy(c.Softirqs, b.Softirqs)})
	}
	return d
}

// Of returns the load of a CPU, or nil when it is not known.
func (l *Load) Of(cpu int) *CPULoad {
	if l == nil {
		return nil
	}
	for i := range l.CPUs {
		if l.CPUs[i].CPU == cpu {
			return &l.CPUs[i]
		}
	}
	return nil
}
