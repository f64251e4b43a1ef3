// SPDX-License-Identifier: Apache-2.0
package procfs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxCPU is one more than the highest id of a CPU that is taken: more than any kernel has.
const maxCPU = 1 << 16

// CPUTime is the time of a CPU since boot by use, in ticks. Guests' time is part of User.
type CPUTime struct{ User, Nice, System, Idle, IOWait, IRQ, Softirq, Steal int64 }

// Total is the whole time.
func (t CPUTime) Total() int64 {
	return t.User + t.Nice + t.System + t.Idle + t.IOWait + t.IRQ + t.Softirq + t.Steal
}

// Unused is the idle time, including waits for I/O.
func (t CPUTime) Unused() int64 { return t.Idle + t.IOWait }

// Since is the time since an earlier reading. Idle and IOWait may go back a little in the kernel, which counts as 0.
func (t CPUTime) Since(before CPUTime) CPUTime {
	return CPUTime{
		User: grown(before.User, t.User), Nice: grown(before.Nice, t.Nice), System: grown(before.System, t.System),
		Idle: grown(before.Idle, t.Idle), IOWait: grown(before.IOWait, t.IOWait), IRQ: grown(before.IRQ, t.IRQ),
		Softirq: grown(before.Softirq, t.Softirq), Steal: grown(before.Steal, t.Steal),
	}
}

// grown differs from stat.Grown, which takes a counter that went back for one that was reset.
func grown(before, after int64) int64 { return max(0, after-before) }

// ParseStat reads the lines "cpuN user nice system idle iowait irq softirq steal ..." of /proc/stat, by N.
func ParseStat(text string) (map[int]CPUTime, error) {
	times := map[int]CPUTime{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "cpu" || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		id, err := cpuID(f[0], "cpu")
		if err != nil {
			return nil, err
		}
		if times[id], err = cpuTime(f[1:]); err != nil {
			return nil, fmt.Errorf("%s: %w", f[0], err)
		}
	}
	if len(times) == 0 {
		return nil, errors.New("names no CPU")
	}
	return times, nil
}

func cpuTime(words []string) (t CPUTime, err error) {
	fields := []*int64{&t.User, &t.Nice, &t.System, &t.Idle, &t.IOWait, &t.IRQ, &t.Softirq, &t.Steal}
	if len(words) < len(fields) {
		return t, fmt.Errorf("has %d times, not %d or more", len(words), len(fields))
	}
	for i, field := range fields {
		if *field, err = count(words[i]); err != nil {
			return t, err
		}
	}
	return t, nil
}

// cpuID reads a word like "cpu3".
func cpuID(word, prefix string) (int, error) {
	digits, ok := strings.CutPrefix(word, prefix)
	id, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || id >= maxCPU {
		return 0, fmt.Errorf("'%.40s' is not a CPU", strings.ToValidUTF8(word, "?"))
	}
	return int(id), nil
}

// count reads a number that is not negative.
func count(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("'%.40s' is not a count", strings.ToValidUTF8(word, "?"))
	}
	return n, nil
}
