// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
)

// witness says who caused a drift, from what it can know: who a thread is and where it comes from, which tools were
// started just before, and which services are known to do such things. It says so when it does not know.
type witness struct {
	machine *topology.Machine
	look    *looker
	tools   *toolLog // may be nil: the kernel does not tell of new programs
	now     time.Time
}

func (w *witness) who(d drift) string {
	parts := []string{}
	tid := 0
	if rest, is := strings.CutPrefix(d.subject, "thread "); is {
		tid, _ = strconv.Atoi(rest)
	}
	if tid != 0 {
		if moved, was := w.look.before[tid]; was {
			parts = append(parts, fmt.Sprintf("it could run on CPUs %s at the look before", moved))
		}
		parts = append(parts, origin(d.PID, tid, w.now)...)
	}
	if w.tools != nil {
		if tool := w.tools.about(d.subject, tid, w.now); tool != "" {
			return strings.Join(append(parts, "changed by "+tool), "; ")
		}
	}
	if s := w.suspect(d); s != "" {
		return strings.Join(append(parts, s), "; ")
	}
	if tid == 0 || w.look.before[tid].Len() > 0 {
		parts = append(parts, "who changed it is not known")
	}
	return strings.Join(parts, "; ")
}

// suspect is a service that runs and does such things by itself. It is no proof.
func (w *witness) suspect(d drift) string {
	s := w.machine.Services
	switch {
	case strings.HasPrefix(d.subject, "thread ") && s.Tuned != "" && running("tuned"):
		return fmt.Sprintf("TuneD (%s) runs and moves threads whose names its ps_blacklist does not spare", s.Tuned)
	case strings.HasPrefix(d.subject, "irq ") && running("irqbalance"):
		return "irqbalance runs and moves interrupts"
	case strings.HasPrefix(d.check, "cgroup.") && running("kubelet"):
		return "kubelet runs and writes control groups"
	case strings.HasPrefix(d.check, "place.online") && strings.EqualFold(s.Nova["cpu_power_management"], "true"):
		return "Nova's cpu_power_management takes unused CPUs offline"
	case strings.HasPrefix(d.check, "knobs.") && running("tuned"):
		return fmt.Sprintf("TuneD (%s) runs and changes such settings", s.Tuned)
	}
	return ""
}

// origin is where a thread comes from: age, parent, command, control group.
func origin(pid, tid int, now time.Time) []string {
	t, err := procfs.Host.Thread(pid, tid)
	if err != nil {
		return nil
	}
	var parts []string
	if up, err := procfs.Host.Uptime(); err == nil {
		if age := up - float64(t.Started)/procfs.TicksPerSecond; age >= 0 && age < 60 {
			begun := now.Add(-time.Duration(age * 1e9)).Format("15:04:05.0")
			parts = append(parts, fmt.Sprintf("new, started %.1f s ago (%s)", age, begun))
		}
	}
	if t.PPID > 0 {
		parts = append(parts, fmt.Sprintf("parent %s (%d)", procfs.Host.Name(t.PPID), t.PPID))
	}
	if line := commandLine(pid); line != "" {
		parts = append(parts, "command '"+line+"'")
	}
	return parts
}

// commandLine is what a process was started with, the first 120 bytes.
func commandLine(pid int) string {
	line := procfs.Host.CommandLine(pid)
	if len(line) > 120 {
		line = line[:117] + "..."
	}
	return strings.ToValidUTF8(line, "?")
}

// running says whether a process of that name is there.
func running(name string) bool {
	pids, _ := procfs.Host.Processes()
	return slices.ContainsFunc(pids, func(pid int) bool { return procfs.Host.Name(pid) == name })
}
