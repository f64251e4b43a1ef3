// SPDX-License-Identifier: Apache-2.0
package host

import (
	"fmt"
	"os"
	"strings"
)

// tracing returns the folder of the kernel's tracing, "" if it is not mounted.
func (r Root) tracing() string {
	for _, dir := range []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"} {
		if _, err := os.Stat(r.path(dir, "current_tracer")); err == nil {
			return dir
		}
	}
	return ""
}

// probe is an event that somebody defined in the kernel's tracing, as "p:group/event /usr/bin/x:0x1234".
type probe struct{ group, event, where string }

// probes returns the events of a file of the kernel's tracing, uprobe_events or kprobe_events, that are switched on.
func (r Root) probes(file string) (out []probe) {
	text, _ := r.text(r.tracing(), file) // not every kernel has it
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		_, name, ok := strings.Cut(name, ":")
		group, event, ok2 := strings.Cut(name, "/")
		where, _, _ := strings.Cut(rest, " ")
		on, err := r.text(r.tracing(), "events", group, event, "enable")
		if ok && ok2 && (err != nil || !strings.HasPrefix(on, "0")) {
			out = append(out, probe{group, event, where})
		}
	}
	return out
}

// endOf is the command that switches events off and removes them from a file of the kernel's tracing.
func (r Root) endOf(file string, list []probe) string {
	dir := "/" + r.tracing()
	var lines []string
	for _, p := range list {
		lines = append(lines, fmt.Sprintf("echo 0 > %s/events/%s/%s/enable", dir, p.group, p.event),
			fmt.Sprintf("echo '-:%s/%s' >> %s/%s", p.group, p.event, dir, file))
	}
	return strings.Join(lines, "\n")
}

func namesOf(list []probe) string {
	var names []string
	for _, p := range list {
		names = append(names, p.group+"/"+p.event)
	}
	return strings.Join(names, ", ")
}
