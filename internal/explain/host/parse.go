// SPDX-License-Identifier: Apache-2.0
package host

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Ticks of a CPU by what it did, in units of 1/100 s (proc(5), /proc/stat).
type Ticks struct{ User, Nice, System, Idle, IOWait, IRQ, Softirq, Steal int64 }

// parseStat reads the lines "cpuN ..." of /proc/stat.
func parseStat(r io.Reader) (map[int]Ticks, error) {
	out := map[int]Ticks{}
	err := lines(r, func(line string) error {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			return nil
		}
		cpu, err := strconv.Atoi(f[0][3:])
		if err != nil {
			return fmt.Errorf("'%s' is no CPU", f[0])
		}
		var t Ticks
		for i, field := range []*int64{&t.User, &t.Nice, &t.System, &t.Idle, &t.IOWait, &t.IRQ, &t.Softirq, &t.Steal} {
			if *field, err = strconv.ParseInt(f[i+1], 10, 64); err != nil {
				return fmt.Errorf("'%s' is no count of ticks", f[i+1])
			}
		}
		out[cpu] = t
		return nil
	})
	return out, err
}

// Line of /proc/interrupts or /proc/softirqs.
type Line struct {
	Label  string        `json:"label"` // "24", "LOC", "NET_RX"
	Name   string        `json:"name"`  // what the driver calls it, or what the line means
	Counts map[int]int64 `json:"counts"`
}

// parseCounts reads a table that has a column for each CPU that is online.
func parseCounts(r io.Reader) ([]Line, error) {
	var cpus []int
	var out []Line
	err := lines(r, func(line string) error {
		f := strings.Fields(line)
		if cpus == nil {
			return header(f, &cpus)
		}
		if len(f) == 0 || !strings.HasSuffix(f[0], ":") {
			return nil
		}
		l := Line{Label: strings.TrimSuffix(f[0], ":"), Counts: map[int]int64{}}
		f = f[1:]
		for i := 0; i < len(cpus) && len(f) > 0; i++ {
			n, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				break // ERR and MIS have one number for all CPUs
			}
			l.Counts[cpus[i]] = n
			f = f[1:]
		}
		l.Name = strings.Join(f, " ")
		out = append(out, l)
		return nil
	})
	return out, err
}

func header(fields []string, cpus *[]int) error {
	for _, f := range fields {
		cpu, err := strconv.Atoi(strings.TrimPrefix(f, "CPU"))
		if err != nil || !strings.HasPrefix(f, "CPU") {
			return fmt.Errorf("'%s' is no CPU in the first line", f)
		}
		*cpus = append(*cpus, cpu)
	}
	return nil
}

// Task is one line of /proc/PID/task/TID/stat.
type Task struct {
	TID     int    `json:"tid"`
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	State   string `json:"state"` // the kernel's letter
	PPID    int    `json:"ppid"`
	Kernel  bool   `json:"kernel,omitempty"`
	Minor   int64  `json:"minor_faults"`
	Major   int64  `json:"major_faults"`
	Ticks   int64  `json:"ticks"` // user and system time, 1/100 s
	LastCPU int    `json:"last_cpu"`
}

const pfKthread = 0x00200000 // include/linux/sched.h

// parseTask reads what proc(5) calls stat. A name may hold blanks and parentheses.
func parseTask(text string) (t Task, err error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return t, fmt.Errorf("no name in parentheses")
	}
	if t.TID, err = strconv.Atoi(strings.TrimSpace(text[:open])); err != nil {
		return t, fmt.Errorf("no thread id")
	}
	t.Name = text[open+1 : end]
	f := strings.Fields(text[end+1:]) // f[0] is field 3 of the manual
	if len(f) < 37 {
		return t, fmt.Errorf("%d fields, not 37 or more", len(f))
	}
	t.State = f[0]
	number := func(i int) int64 {
		n, e := strconv.ParseInt(f[i-3], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("field %d: '%s' is no number", i, f[i-3])
		}
		return n
	}
	t.PPID, t.Kernel = int(number(4)), number(9)&pfKthread != 0
	t.Minor, t.Major, t.Ticks, t.LastCPU = number(10), number(12), number(14)+number(15), int(number(39))
	return t, err
}

// parseKeys reads lines of "key value" or "Key:\tvalue".
func parseKeys(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if k, v, colon := strings.Cut(line, ":"); colon {
			key, value, ok = strings.TrimSpace(k), strings.TrimSpace(v), true
		}
		if ok {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}

func lines(r io.Reader, each func(string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20) // a machine of 4096 CPUs
	for s.Scan() {
		if err := each(s.Text()); err != nil {
			return err
		}
	}
	return s.Err()
}
