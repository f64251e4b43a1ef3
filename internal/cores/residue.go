// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/wait"
)

// Residue counts what still interrupts a CPU, per second.
type Residue struct {
	CPU     int     `json:"cpu"`
	Timer   float64 `json:"timer"`   // local timer interrupts: the tick
	IPI     float64 `json:"ipi"`     // function calls, rescheduling, TLB shootdowns
	Devices float64 `json:"devices"` // interrupts with a number
	RCU     float64 `json:"rcu"`     // softirqs: callbacks of RCU
	Softirq float64 `json:"softirq"` // all other softirqs
	Busy    float64 `json:"busy"`    // share of time not idle: an idle CPU has fewer timer ticks than one that polls
}

// Remains counts during a time what interrupts CPUs, from /proc/interrupts, /proc/softirqs and /proc/stat.
func Remains(ctx context.Context, root string, cpus cpuset.Set, during time.Duration) ([]Residue, error) {
	h := host{root: root}
	before, err := h.interruptions()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := wait.For(ctx, during); err != nil {
		return nil, err
	}
	after, err := h.interruptions()
	if err != nil {
		return nil, err
	}
	return remains(before, after, cpus, time.Since(begun).Seconds()), nil
}

// remains is what was counted between two looks, per second.
func remains(before, after interruptions, cpus cpuset.Set, seconds float64) (list []Residue) {
	interrupts := procfs.Since(before.interrupts, after.interrupts)
	softirqs := procfs.Since(before.softirqs, after.softirqs)
	for _, id := range cpus.IDs() {
		r := Residue{CPU: id}
		for _, row := range interrupts {
			*r.field(row.Label) += float64(row.Counts[id]) / seconds
		}
		for _, row := range softirqs {
			if n := float64(row.Counts[id]) / seconds; row.Label == "RCU" {
				r.RCU += n
			} else {
				r.Softirq += n
			}
		}
		if did := after.times[id].Since(before.times[id]); did.Total() > 0 {
			r.Busy = 1 - float64(did.Unused())/float64(did.Total())
		}
		list = append(list, r)
	}
	return list
}

// field returns the counter to which a row of /proc/interrupts belongs.
func (r *Residue) field(row string) *float64 {
	var nowhere float64
	switch {
	case row == "LOC":
		return &r.Timer
	case row == "CAL" || row == "RES" || row == "TLB":
		return &r.IPI
	case row != "" && row[0] >= '0' && row[0] <= '9':
		return &r.Devices
	}
	return &nowhere
}

func (r Residue) String() string {
	text := fmt.Sprintf("CPU %d: %.0f timer interrupts/s, %.0f from other CPUs, %.0f of devices, %.0f RCU and %.0f "+
		"other softirqs/s",
		r.CPU, r.Timer, r.IPI, r.Devices, r.RCU, r.Softirq)
	if r.Busy < 0.9 {
		text += fmt.Sprintf(" (the CPU was busy for %.0f %% of the time; polling causes more timer interrupts)",
			100*r.Busy)
	}
	return text
}

// interruptions holds counters since boot.
type interruptions struct {
	interrupts, softirqs []procfs.Row
	times                map[int]procfs.CPUTime
}

func (h host) interruptions() (all interruptions, err error) {
	interrupts, err1 := h.read("proc/interrupts")
	softirqs, err2 := h.read("proc/softirqs")
	stat, err3 := h.read("proc/stat")
	if err := errors.Join(err1, err2, err3); err != nil {
		return all, err
	}
	all.interrupts, _, err1 = procfs.ParseInterrupts(interrupts)
	all.softirqs, _, err2 = procfs.ParseInterrupts(softirqs)
	all.times, err3 = procfs.ParseStat(stat)
	for name, err := range map[string]error{"interrupts": err1, "softirqs": err2, "stat": err3} {
		if err != nil {
			return all, fmt.Errorf("/proc/%s: %w", name, err)
		}
	}
	return all, nil
}
