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

// witness collects evidence about the cause of a drift: the identity and origin of a thread, tools that were started
// just before, and running services that are known to make such changes. It reports when the cause is not known.
type witness struct {
	machine *topology.Machine
	look    *scanner
	tools   *toolLog // nil: the kernel does not report starts of programs
	now     time.Time
}

func (w *witness) cause(d drift) string {
	parts := []string{}
	tid := 0
	if rest, is := strings.CutPrefix(d.subject, "thread "); is {
		tid, _ = strconv.Atoi(rest)
	}
	if tid != 0 {
		if moved, was := w.look.before[tid]; was {
			parts = append(parts, fmt.Sprintf("at the previous look it could run on CPUs %s", moved))
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
		parts = append(parts, "the cause is not known")
	}
	return strings.Join(parts, "; ")
}

// suspect names a running service that is known to make such changes. This is not a proof.
func (w *witness) suspect(d drift) string {
	s := w.machine.Services
	switch {
	case strings.HasPrefix(d.subject, "thread ") && s.Tuned != "" && running("tuned"):
		return fmt.Sprintf("TuneD (%s) is running and moves threads that its ps_blacklist does not name", s.Tuned)
	case strings.HasPrefix(d.subject, "irq ") && running("irqbalance"):
		return "irqbalance is running and moves interrupts"
	case strings.HasPrefix(d.check, "cgroup.") && running("kubelet"):
		return "kubelet is running and writes control groups"
	case strings.HasPrefix(d.check, "place.online") && strings.EqualFold(s.Nova["cpu_power_management"], "true"):
		return "Nova's cpu_power_management takes unused CPUs offline"
	case strings.HasPrefix(d.check, "knobs.") && running("tuned"):
		return fmt.Sprintf("TuneD (%s) is running and changes such settings", s.Tuned)
	}
	return ""
}

// origin describes where a thread comes from: age, parent and command.
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

// commandLine returns the first 120 bytes of a process' command line.
func commandLine(pid int) string {
	line := procfs.Host.CommandLine(pid)
	if len(line) > 120 {
		line = line[:117] + "..."
	}
	return strings.ToValidUTF8(line, "?")
}

// running reports whether a process with this name exists.
func running(name string) bool {
	pids, _ := procfs.Host.Processes()
	return slices.ContainsFunc(pids, func(pid int) bool { return procfs.Host.Name(pid) == name })
}
