// SPDX-License-Identifier: Apache-2.0
package host

import (
	"strings"

	"github.com/corelane/corelane/internal/procfs"
)

// Ticks of a CPU by what it did, and a Line of /proc/interrupts or /proc/softirqs.
type (
	Ticks = procfs.CPUTime
	Line  = procfs.Row
)

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

func parseTask(text string) (Task, error) {
	t, err := procfs.ParseTask(text)
	return Task{TID: t.TID, Name: t.Name, State: string(t.State), PPID: t.PPID, Kernel: t.Kernel(), Minor: t.Minor, Major: t.Major,
		Ticks: t.Ticks, LastCPU: t.LastCPU}, err
}

// parseKeys reads lines of "key value".
func parseKeys(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}
