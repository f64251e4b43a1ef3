// SPDX-License-Identifier: Apache-2.0
package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Handicap makes a process slower while it has its CPU.
type Handicap struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`        // a sentence
	Fix    string `json:"fix,omitempty"` // a command that does it
	// it can begin and end while the process runs; the others are usual for it
	Passing bool `json:"passing"`
	// packets run into it, so that interruptions need not explain what they cost
	InPath bool `json:"in_path,omitempty"`
}

// Handicaps returns what makes a process on these CPUs slower, as far as /proc and /sys tell.
func (r Root) Handicaps(pid int, cpus []int) (out []Handicap) {
	for _, look := range []func(int) (Handicap, bool){r.probed, r.sampled, r.ftraced, r.kprobed, r.unoptimized,
		r.smallPages} {
		if h, ok := look(pid); ok {
			out = append(out, h)
		}
	}
	for _, cpu := range cpus {
		for _, look := range []func(int, int) (Handicap, bool){r.slowClock, r.farMemory} {
			if h, ok := look(pid, cpu); ok {
				out = append(out, h)
			}
		}
	}
	return out
}

// sampled looks for programs that have opened performance counters.
func (r Root) sampled(int) (h Handicap, found bool) {
	var who, pids []string
	for _, pid := range r.samplers() {
		who = append(who, fmt.Sprintf("%s (%d)", r.proc().Name(pid), pid))
		pids = append(pids, strconv.Itoa(pid))
	}
	all := strings.Join(who, ", ")
	return Handicap{What: "performance counters are open: " + all, Remedy: "end the profiler: " + all, Passing: true,
		Fix: "kill " + strings.Join(pids, " ")}, len(who) > 0
}

// samplers returns the processes that have opened performance counters.
func (r Root) samplers() (pids []int) {
	links, _ := filepath.Glob(r.path("proc/[0-9]*/fd/*")) // the pattern is well formed
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || !strings.Contains(to, "perf_event") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if pid != os.Getpid() && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (r Root) ftraced(int) (h Handicap, found bool) {
	dir := r.tracing()
	tracer, err := r.text(dir, "current_tracer")
	return Handicap{What: "the kernel's tracer '" + tracer + "' is on",
			Remedy: "end the kernel's tracing:", Fix: "echo nop > /" + dir + "/current_tracer", Passing: true},
		dir != "" && err == nil && tracer != "nop"
}

func (r Root) kprobed(int) (h Handicap, found bool) {
	text, _ := r.text("sys/kernel/debug/kprobes/list")
	n := 0
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "[DISABLED]") {
			n++
		}
	}
	h = Handicap{What: fmt.Sprintf("%d kprobes are set in the kernel", n),
		Remedy: "end what set them (/sys/kernel/debug/kprobes/list)", Passing: true}
	if events := r.probes("kprobe_events"); len(events) > 0 { // the list is in another file system
		n = max(n, len(events))
		h.What = fmt.Sprintf("%d kprobes are set in the kernel, by its tracing: %s", n, namesOf(events))
		h.Remedy, h.Fix = "switch them off and remove them:", r.endOf("kprobe_events", events)
	}
	return h, n > 0
}

func (r Root) smallPages(pid int) (h Handicap, found bool) {
	keys, err := r.proc().Status("proc/" + strconv.Itoa(pid))
	return Handicap{What: "the process has no hugepages", Remedy: "reserve hugepages and start corelaned again"},
		err == nil && keys["HugetlbPages"] == "0 kB"
}

const slowest = 0.8 // of a CPU's highest clock

func (r Root) slowClock(_, cpu int) (h Handicap, found bool) {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq", cpu)
	now, _ := r.text(dir, "scaling_cur_freq")
	most, _ := r.text(dir, "cpuinfo_max_freq")
	limit, _ := r.text(dir, "scaling_max_freq")
	governor, _ := r.text(dir, "scaling_governor")
	h = Handicap{What: fmt.Sprintf("CPU %d runs at %d MHz, although it could at %d (governor %s)", cpu,
		count(now)/1000, count(most)/1000, governor), Remedy: "let the CPU run at its full speed:",
		Fix: fmt.Sprintf("echo performance > /%s/scaling_governor", dir), Passing: true}
	switch {
	case count(limit) > 0 && float64(count(limit)) < slowest*float64(count(most)):
		h.What += fmt.Sprintf("; somebody limits it to %d MHz", count(limit)/1000)
		h.Fix = fmt.Sprintf("echo %s > /%s/scaling_max_freq\n%s", most, dir, h.Fix)
	case governor == "performance": // the hardware slows it down
		h.Remedy, h.Fix = "look for heat and power limits: turbostat, the BMC, intel-speed-select", ""
	}
	return h, count(now) > 0 && float64(count(now)) < slowest*float64(count(most))
}

// throttled reads how often the hardware slowed each CPU down for heat since boot. Virtual machines do not know.
func (r Root) throttled() map[int]int64 {
	out := map[int]int64{}
	files, _ := filepath.Glob(r.path("sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		dir := filepath.Base(filepath.Dir(filepath.Dir(file)))
		cpu, err2 := strconv.Atoi(strings.TrimPrefix(dir, "cpu"))
		if err == nil && err2 == nil {
			out[cpu] += count(strings.TrimSpace(string(text)))
		}
	}
	return out
}

// Hot says that a CPU was slowed down for heat in a window, so many times.
func Hot(cpu int, times int64) (h Handicap, found bool) {
	return Handicap{What: fmt.Sprintf("the hardware slowed CPU %d down %d times, because it or its package was too hot",
		cpu, times), Remedy: "look for fans, airflow and power limits: turbostat, the BMC", Passing: true}, times > 0
}
