// SPDX-License-Identifier: Apache-2.0
package host

import (
	"strings"

	"github.com/corelane/corelane/internal/procfs"
)

type (
	Ticks = procfs.CPUTime // of a CPU, by what it did
	Line  = procfs.Row     // of /proc/interrupts or /proc/softirqs
)

// Task is what /proc/PID/task/TID/stat says of a thread.
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

func taskOf(pid int, t *procfs.Task) Task {
	return Task{TID: t.TID, PID: pid, Name: t.Name, State: string(t.State), PPID: t.PPID, Kernel: t.Kernel(),
		Minor: t.Minor, Major: t.Major, Ticks: t.Ticks, LastCPU: t.LastCPU}
}

// parseKeys reads lines of the form "key value".
func parseKeys(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}
