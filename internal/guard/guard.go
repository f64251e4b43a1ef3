// SPDX-License-Identifier: Apache-2.0

// Package guard watches whether a machine keeps to the plan of its CPUs. Each second it compares what can change with
// the plan, reports each drift once, with the evidence about its cause, and repairs it if it may. Package verify
// defines what a drift is.
package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

// Kind of an event.
type Kind string

// The kinds.
const (
	Initial     Kind = "initial"     // differed already at the first look
	Drift       Kind = "drift"       // differs from now on
	Cleared     Kind = "cleared"     // matches the plan again
	Repaired    Kind = "repaired"    // by the guard
	Failed      Kind = "failed"      // the guard could not repair it
	Oscillating Kind = "oscillating" // each repair was undone: the guard pauses
	Daemon      Kind = "daemon"      // the data plane's own event
	Notice      Kind = "notice"      // about the guard itself
)

// Event is one thing that happened.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Check   string    `json:"check,omitempty"`   // ID of a check of verify
	Subject string    `json:"subject,omitempty"` // "thread 812", "irq 38"
	Text    string    `json:"text"`
	Cause   string    `json:"cause,omitempty"` // evidence about it
	Fix     string    `json:"fix,omitempty"`   // the command that fixes it
}

// String returns the event as one line.
func (e Event) String() string {
	line := e.Time.Format("2006-01-02 15:04:05.000") + " " + string(e.Kind)
	for _, word := range []string{e.Check, e.Subject} {
		if word != "" {
			line += " " + word
		}
	}
	line += ": " + e.Text
	if e.Cause != "" {
		line += "; cause: " + e.Cause
	}
	if e.Fix != "" {
		line += "; fix: " + e.Fix
	}
	return line
}

// watched lists prefixes of the checks whose items are watched. The others change only with a boot, or are counters.
var watched = []string{
	"isolation.state", "plan.machine", "place.online", "threads.", "irq.affinity", "net.rps", "net.xps",
	"workqueue.mask", "boot.watchdog",
	"boot.irqaffinity", "cgroup.", "tuned.", "irqbalance.bans", "nova.power", "guests.", "memory.hugepages", "knobs.",
}

// key identifies a drift.
type key struct{ check, subject string }

// drift is an item that does not match the plan.
type drift struct {
	key
	verify.Item
	since   time.Time
	initial bool // at the first look
}

// drifts selects the watched items of findings. On a machine that isolates nothing every thread may run everywhere.
// That is one drift; of its threads only those that can run on workers' CPUs only are drifts of their own.
func drifts(findings []verify.Finding) map[key]drift {
	open := false
	for _, f := range findings {
		open = open || f.ID == "isolation.state" && f.Verdict > verify.Unknown
	}
	all := map[key]drift{}
	for _, f := range findings {
		if !slices.ContainsFunc(watched, func(p string) bool { return strings.HasPrefix(f.ID, p) }) {
			continue
		}
		for _, i := range f.Evidence {
			floats := open && !i.Pinned && (f.ID == "threads.foreign" || f.ID == "threads.kernel")
			if i.Verdict <= verify.Unknown || i.Subject == "" || floats {
				continue
			}
			k := key{f.ID, i.Subject}
			if _, twice := all[k]; !twice {
				all[k] = drift{key: k, Item: i}
			}
		}
	}
	return all
}

// command returns the shell command that fixes an item.
func command(i verify.Item) string {
	if i.Fix != nil {
		return i.Fix.Command()
	}
	first, _, _ := strings.Cut(i.Command, "\n")
	return first
}

// tracker remembers the drifts that were reported.
type tracker struct {
	known map[key]drift
	begun bool
}

// update compares the current drifts with the known ones and returns the events. cause returns the evidence for a new
// drift.
func (t *tracker) update(now time.Time, found map[key]drift, cause func(drift) string) []Event {
	var events []Event
	kind := Drift
	if !t.begun {
		kind, t.begun, t.known = Initial, true, map[key]drift{}
	}
	for k, d := range found {
		if old, known := t.known[k]; known {
			d.since, d.initial = old.since, old.initial
		} else {
			d.since, d.initial = now, kind == Initial
			events = append(events, Event{Time: now, Kind: kind, Check: k.check, Subject: k.subject, Text: d.Text,
				Cause: cause(d), Fix: command(d.Item)})
		}
		t.known[k] = d
	}
	for k, d := range t.known {
		if _, still := found[k]; !still {
			events = append(events, Event{Time: now, Kind: Cleared, Check: k.check, Subject: k.subject,
				Text: fmt.Sprintf("matches the plan again after %.0f s", now.Sub(d.since).Seconds())})
			delete(t.known, k)
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return strings.Compare(a.Check+" "+a.Subject, b.Check+" "+b.Subject)
	})
	return events
}

// ownThread reports whether an item is about a thread of a running corelaned, which moves its threads back itself.
func ownThread(m *topology.Machine, i verify.Item) bool {
	return i.PID != 0 && slices.ContainsFunc(m.Threads, func(t topology.Thread) bool {
		return t.PID == i.PID && t.Process == "corelaned"
	})
}
