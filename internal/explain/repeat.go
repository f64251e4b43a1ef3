// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/explain/kernel"
)

// endRepeater makes the remedy of a cause end the process that does it again and again: one that did it repeatedly, or
// the one that started several that did.
func endRepeater(e *Evidence, c *Cause, did func(*kernel.Sum) bool) {
	if e.Trace == nil {
		return
	}
	times, started, names := map[int]int64{}, map[int]map[int]bool{}, map[int]string{}
	for i := range e.Trace.Sums {
		if s := &e.Trace.Sums[i]; did(s) {
			times[s.PID] += s.Count
			names[s.PID], names[s.Parent] = s.Name, s.ParentName
			if started[s.Parent] == nil {
				started[s.Parent] = map[int]bool{}
			}
			started[s.Parent][s.PID] = true
		}
	}
	pid, most, how := 0, int64(1), ""
	for p, n := range times {
		if n > most && e.mayEnd(p) {
			pid, most, how = p, n, "does it again and again"
		}
	}
	for p, children := range started {
		if len(children) > 1 && e.mayEnd(p) {
			pid, how = p, fmt.Sprintf("started %d processes that did it", len(children))
		}
	}
	if pid != 0 {
		c.FixNote, c.Fix = fmt.Sprintf("%s (%d) %s; end it:", names[pid], pid, how), fmt.Sprintf("kill %d", pid)
	}
}

// alive says whether a thread was still there when the window ended.
func (e *Evidence) alive(tid int) bool {
	t, met := e.Host.Threads[tid]
	return met && !t.Ended
}

// hasEnded is what to do about a culprit that is no longer there.
func hasEnded(name string, pid int) string {
	return fmt.Sprintf("%s (%d) has ended: nothing is to do, unless it comes back", name, pid)
}

// mayEnd says whether a process is there and is neither the first one, nor the kernel's, nor corelaned.
func (e *Evidence) mayEnd(pid int) bool {
	return pid > kthreadd && pid != e.Daemon && e.alive(pid) && !e.Host.Threads[pid].Kernel
}

// then adds a command to the remedy.
func (c *Cause) then(format string, args ...any) {
	c.Fix = strings.TrimPrefix(c.Fix+"\n"+fmt.Sprintf(format, args...), "\n")
}
