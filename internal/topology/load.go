// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"bufio"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Load is what CPUs did in a span of time, from counters that only grow: /proc/stat, /proc/interrupts, /proc/softirqs (proc(5)).
type Load struct {
	Seconds   float64       `json:"seconds"`
	SinceBoot bool          `json:"since_boot,omitempty"` // one reading only: says what was, not what is
	CPUs      []CPULoad     `json:"cpus"`
	Threads   map[int]int64 `json:"threads,omitempty"` // clock ticks by TID; only between two readings
}

// CPULoad is one CPU's share. Times are in clock ticks of 10 ms (USER_HZ).
type CPULoad struct {
	CPU        int              `json:"cpu"`
	User       int64            `json:"user"` // nice included
	System     int64            `json:"system"`
	Idle       int64            `json:"idle"` // waiting for devices included
	Irq        int64            `json:"irq"`
	Softirq    int64            `json:"softirq"`
	Steal      int64            `json:"steal"` // the hypervisor ran somebody else
	Interrupts map[string]int64 `json:"interrupts,omitempty"`
	Softirqs   map[string]int64 `json:"softirqs,omitempty"`
}

// TicksPerSecond is USER_HZ of every Linux on the machines that DPDK runs on.
const TicksPerSecond = 100

// ReadLoad reads the counters since boot. What is missing is left out; without /proc/stat there is nothing to say.
func ReadLoad(tree Tree) (*Load, error) {
	l := &Load{SinceBoot: true}
	if text, err := tree.Read("proc/uptime"); err == nil {
		up, _, _ := strings.Cut(text, " ")
		l.Seconds, _ = strconv.ParseFloat(up, 64)
	}
	stat, err := tree.Read("proc/stat")
	if err != nil {
		return nil, err
	}
	if l.CPUs = parseCPUStat(stat); len(l.CPUs) == 0 {
		return nil, errors.New("names no CPU")
	}
	interrupts, err := tree.Read("proc/interrupts")
	rows, softirqs := parseCPUTable(interrupts), map[int]map[string]int64{}
	if text, err2 := tree.Read("proc/softirqs"); err2 == nil {
		softirqs = parseCPUTable(text)
	}
	for i := range l.CPUs {
		if err == nil {
			l.CPUs[i].Interrupts = orEmpty(rows[l.CPUs[i].CPU])
		}
		l.CPUs[i].Softirqs = softirqs[l.CPUs[i].CPU]
	}
	return l, nil
}

func orEmpty(rows map[string]int64) map[string]int64 {
	if rows == nil {
		return map[string]int64{}
	}
	return rows
}

// ReadOver is Read of the running machine, with the load of a span of time instead of all since boot.
func ReadOver(ctx context.Context, span time.Duration) (*Machine, error) {
	first, err := Read("/")
	if err != nil || first.Load == nil {
		return first, err
	}
	begun := time.Now()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(span):
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

// parseCPUStat reads the lines "cpuN user nice system idle iowait irq softirq steal ..." of /proc/stat.
func parseCPUStat(text string) []CPULoad {
	var cpus []CPULoad
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		id, err := strconv.ParseUint(f[0][3:], 10, 16)
		if err != nil {
			continue // the line of all CPUs
		}
		var v [8]int64
		for i := range v {
			v[i], _ = strconv.ParseInt(f[i+1], 10, 64)
		}
		cpus = append(cpus, CPULoad{CPU: int(id), User: v[0] + v[1], System: v[2], Idle: v[3] + v[4], Irq: v[5], Softirq: v[6], Steal: v[7]})
	}
	return cpus
}

// parseCPUTable reads a table with a column for each CPU that is online; its head names them. A row's key is its first word, with
// the driver's name for device interrupts: "38 virtio2-input.0".
func parseCPUTable(text string) map[int]map[string]int64 {
	table := map[int]map[string]int64{}
	in := bufio.NewScanner(strings.NewReader(text))
	in.Buffer(nil, 1<<20)
	var columns []int
	for in.Scan() {
		f := strings.Fields(in.Text())
		if columns == nil {
			if columns = cpuColumns(f); columns == nil {
				return table
			}
			continue
		}
		if len(f) < len(columns)+1 || !strings.HasSuffix(f[0], ":") {
			continue // ERR and MIS have one column
		}
		key := strings.TrimSuffix(f[0], ":")
		if _, err := strconv.Atoi(key); err == nil && len(f) > len(columns)+1 {
			key += " " + f[len(f)-1]
		}
		for i, cpu := range columns {
			if n, err := strconv.ParseInt(f[i+1], 10, 64); err == nil && n > 0 {
				if table[cpu] == nil {
					table[cpu] = map[string]int64{}
				}
				table[cpu][key] = n
			}
		}
	}
	return table
}

func cpuColumns(head []string) []int {
	var ids []int
	for _, word := range head {
		id, err := strconv.ParseUint(strings.TrimPrefix(word, "CPU"), 10, 16)
		if err != nil {
			return nil
		}
		ids = append(ids, int(id))
	}
	return ids
}

// Since is what happened after an earlier reading, seconds before this one.
func (l *Load) Since(before *Load, seconds float64) *Load {
	old := map[int]CPULoad{}
	for _, c := range before.CPUs {
		old[c.CPU] = c
	}
	d := &Load{Seconds: seconds}
	for _, c := range l.CPUs {
		b := old[c.CPU]
		d.CPUs = append(d.CPUs, CPULoad{CPU: c.CPU, User: c.User - b.User, System: c.System - b.System, Idle: c.Idle - b.Idle, Irq: c.Irq - b.Irq,
			Softirq: c.Softirq - b.Softirq, Steal: c.Steal - b.Steal, Interrupts: less(c.Interrupts, b.Interrupts), Softirqs: less(c.Softirqs, b.Softirqs)})
	}
	return d
}

func less(now, before map[string]int64) map[string]int64 {
	d := map[string]int64{}
	for key, n := range now {
		if n > before[key] {
			d[key] = n - before[key]
		}
	}
	return d
}

// Of is the load of a CPU; nil where it is not known.
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
