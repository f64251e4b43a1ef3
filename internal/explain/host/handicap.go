// SPDX-License-Identifier: Apache-2.0
package host

import (
	"bufio"
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
	Remedy string `json:"remedy"` // a sentence
	// it can begin and end while the process runs; the others are usual for it
	Passing bool `json:"passing"`
}

// Handicaps returns what makes a process on these CPUs slower, as far as /proc and /sys tell.
func (r Root) Handicaps(pid int, cpus []int) (out []Handicap) {
	for _, look := range []func(int) (Handicap, bool){r.probed, r.sampled, r.ftraced, r.kprobed, r.smallPages} {
		if h, ok := look(pid); ok {
			out = append(out, h)
		}
	}
	for _, cpu := range cpus {
		if h, ok := r.slowClock(cpu); ok {
			out = append(out, h)
		}
	}
	return out
}

// probed looks for breakpoints in the program: the kernel copies each page of code that it writes one to.
func (r Root) probed(pid int) (h Handicap, found bool) {
	exe, _ := os.Readlink(r.path("proc", strconv.Itoa(pid), "exe"))
	f, err := os.Open(r.path("proc", strconv.Itoa(pid), "smaps"))
	if err != nil || exe == "" {
		return h, false
	}
	defer f.Close()
	code, kb := false, int64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"): // a mapping: range, rights, offset, device, inode
			code = strings.HasPrefix(fields[1], "r-x") && strings.HasSuffix(lines.Text(), " "+exe)
		case code && len(fields) >= 2 && fields[0] == "Anonymous:":
			kb += count(fields[1])
		}
	}
	what := fmt.Sprintf("somebody set breakpoints in %d kB of the program's code (uprobes, a debugger)", kb)
	return Handicap{What: what,
		Remedy: "end what set them: bpftrace, perf probe (perf probe -d '*'), SystemTap, gdb", Passing: true}, kb > 0
}

// sampled looks for programs that have opened performance counters.
func (r Root) sampled(int) (h Handicap, found bool) {
	var who []string
	links, _ := filepath.Glob(r.path("proc/[0-9]*/fd/*")) // the pattern is well formed
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || !strings.Contains(to, "perf_event") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if name := fmt.Sprintf("%s (%d)", r.proc().Name(pid), pid); pid != os.Getpid() && !slices.Contains(who, name) {
			who = append(who, name)
		}
	}
	all := strings.Join(who, ", ")
	return Handicap{What: "performance counters are open: " + all, Remedy: "end the profiler: " + all, Passing: true},
		len(who) > 0
}

func (r Root) ftraced(int) (h Handicap, found bool) {
	tracer, err := r.text("sys/kernel/tracing/current_tracer")
	return Handicap{What: "the kernel's tracer '" + tracer + "' is on",
		Remedy: "echo nop > /sys/kernel/tracing/current_tracer", Passing: true}, err == nil && tracer != "nop"
}

func (r Root) kprobed(int) (h Handicap, found bool) {
	text, _ := r.text("sys/kernel/debug/kprobes/list")
	n := 0
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "[DISABLED]") {
			n++
		}
	}
	return Handicap{What: fmt.Sprintf("%d kprobes are set in the kernel", n),
		Remedy: "end what set them (/sys/kernel/debug/kprobes/list)", Passing: true}, n > 0
}

func (r Root) smallPages(pid int) (h Handicap, found bool) {
	keys, err := r.proc().Status("proc/" + strconv.Itoa(pid))
	return Handicap{What: "the process has no hugepages", Remedy: "reserve hugepages and start corelaned again"},
		err == nil && keys["HugetlbPages"] == "0 kB"
}

const slowest = 0.8 // of a CPU's highest clock

func (r Root) slowClock(cpu int) (h Handicap, found bool) {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq", cpu)
	now, _ := r.text(dir, "scaling_cur_freq")
	most, _ := r.text(dir, "cpuinfo_max_freq")
	governor, _ := r.text(dir, "scaling_governor")
	return Handicap{What: fmt.Sprintf("CPU %d runs at %d MHz, although it could at %d (governor %s)", cpu,
			count(now)/1000, count(most)/1000, governor),
			Remedy: fmt.Sprintf("echo performance > /%s/scaling_governor", dir), Passing: true},
		count(now) > 0 && float64(count(now)) < slowest*float64(count(most))
}
