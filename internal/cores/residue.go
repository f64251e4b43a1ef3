// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/cpuset"
)

// Residue is what a CPU is still interrupted by, per second.
type Residue struct {
	CPU     int     `json:"cpu"`
	Timer   float64 `json:"timer"`   // local timer interrupts: the tick
	IPI     float64 `json:"ipi"`     // function calls, rescheduling, TLB shootdowns
	Devices float64 `json:"devices"` // interrupts with a number
	RCU     float64 `json:"rcu"`     // softirqs: callbacks of RCU
	Softirq float64 `json:"softirq"` // all others
	Busy    float64 `json:"busy"`    // share of the time that it was not idle: an idle CPU has fewer ticks than one that polls
}

// Remains counts for a while what CPUs are interrupted by, from /proc/interrupts, /proc/softirqs and /proc/stat.
func Remains(ctx context.Context, root string, cpus cpuset.Set, during time.Duration) ([]Residue, error) {
	h := host{root}
	before, err := h.interruptions()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(during):
	}
	after, err := h.interruptions()
	if err != nil {
		return nil, err
	}
	seconds := time.Since(begun).Seconds()
	var list []Residue
	for _, id := range cpus.IDs() {
		a, b := before[id], after[id]
		r := Residue{CPU: id}
		for row, n := range b {
			*r.field(row) += float64(n-a[row]) / seconds
		}
		if all := b["all"] - a["all"]; all > 0 {
			r.Busy = 1 - float64(b["idle"]-a["idle"])/float64(all)
		}
		list = append(list, r)
	}
	return list, nil
}

// field is where a row of the counters belongs.
func (r *Residue) field(row string) *float64 {
	var nowhere float64
	switch {
	case row == "LOC":
		return &r.Timer
	case row == "CAL" || row == "RES" || row == "TLB":
		return &r.IPI
	case row == "softirq RCU":
		return &r.RCU
	case strings.HasPrefix(row, "softirq "):
		return &r.Softirq
	case row != "" && row[0] >= '0' && row[0] <= '9':
		return &r.Devices
	}
	return &nowhere
}

func (r Residue) String() string {
	text := fmt.Sprintf("CPU %d: %.0f timer interrupts/s, %.0f from other CPUs, %.0f of devices, %.0f RCU and %.0f other softirqs/s",
		r.CPU, r.Timer, r.IPI, r.Devices, r.RCU, r.Softirq)
	if r.Busy < 0.9 {
		text += fmt.Sprintf(" (it was busy for %.0f %% of the time: more timer interrupts when it polls)", 100*r.Busy)
	}
	return text
}

// interruptions are the counters by CPU and row.
func (h host) interruptions() (map[int]map[string]int64, error) {
	all := map[int]map[string]int64{}
	for name, prefix := range map[string]string{"proc/interrupts": "", "proc/softirqs": "softirq "} {
		text, err := h.read(name)
		if err != nil {
			return nil, err
		}
		countRows(all, text, prefix)
	}
	stat, err := h.read("proc/stat")
	if err == nil {
		countTime(all, stat)
	}
	return all, err
}

// countRows adds a table whose head is CPU0 CPU1 ... and whose rows begin with a name and a colon.
func countRows(all map[int]map[string]int64, text, prefix string) {
	head, rows, _ := strings.Cut(text, "\n")
	var cpus []int
	for word := range strings.FieldsSeq(head) {
		if id, err := strconv.Atoi(strings.TrimPrefix(word, "CPU")); err == nil {
			cpus = append(cpus, id)
		}
	}
	for line := range strings.Lines(rows) {
		name, counts, _ := strings.Cut(line, ":")
		words := strings.Fields(counts)
		for i, id := range cpus {
			if i >= len(words) {
				break // rows like ERR have one number for all
			}
			n, err := strconv.ParseInt(words[i], 10, 64)
			if err != nil {
				break
			}
			if all[id] == nil {
				all[id] = map[string]int64{}
			}
			all[id][prefix+strings.TrimSpace(name)] = n
		}
	}
}

// countTime adds the lines "cpuN user nice system idle iowait ..." of /proc/stat, in clock ticks.
func countTime(all map[int]map[string]int64, stat string) {
	for line := range strings.Lines(stat) {
		words := strings.Fields(line)
		if len(words) < 6 || !strings.HasPrefix(words[0], "cpu") {
			continue
		}
		id, err := strconv.Atoi(words[0][3:])
		if err != nil || all[id] == nil {
			continue
		}
		for i, word := range words[1:] {
			n, _ := strconv.ParseInt(word, 10, 64)
			if i < 8 { // what follows is part of user and nice
				all[id]["all"] += n
			}
			if i == 3 || i == 4 {
				all[id]["idle"] += n
			}
		}
	}
}
