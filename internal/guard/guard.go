// SPDX-License-Identifier: Apache-2.0

// Package guard watches whether a machine stays what the plan of its CPUs says. It looks each second at what moves, tells each
// drift once, with the best that is known about who caused it, and puts it right when it may. What a drift is says package verify.
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
	Found    Kind = "found"    // differs already at the first look
	Drift    Kind = "drift"    // differs from now on
	Well     Kind = "well"     // is again as it should be
	Repaired Kind = "repaired" // by the guard
	Failed   Kind = "failed"   // the guard could not repair it
	Fight    Kind = "fight"    // somebody undoes the repairs: the guard pauses
	Daemon   Kind = "daemon"   // the data plane's own event
	Notice   Kind = "notice"   // about the guard itself
)

// Event is one thing that happened.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Check   string    `json:"check,omitempty"`   // of verify
	Subject string    `json:"subject,omitempty"` // "thread 812", "irq 38"
	Text    string    `json:"text"`
	Who     string    `json:"who,omitempty"`  // the evidence about its cause
	Mend    string    `json:"mend,omitempty"` // the command that mends it
}

// String is the event as a line.
func (e Event) String() string {
	line := e.Time.Format("2006-01-02 15:04:05.000") + " " + string(e.Kind)
	for _, word := range []string{e.Check, e.Subject} {
		if word != "" {
			line += " " + word
		}
	}
	line += ": " + e.Text
	if e.Who != "" {
		line += "; who: " + e.Who
	}
	if e.Mend != "" {
		line += "; mend: " + e.Mend
	}
	return line
}

// watched are the checks of which each item is watched. Others change with a boot, or are counters.
var watched = []string{
	"isolation.state", "plan.machine", "place.online", "threads.", "irq.affinity", "net.rps", "net.xps", "workqueue.mask", "boot.watchdog",
	"boot.irqaffinity", "cgroup.", "tuned.", "irqbalance.bans", "nova.power", "guests.", "memory.hugepages", "knobs.",
}

// key is what tells one drift from another.
type key struct{ check, subject string }

// drift is an item that is not as it should be.
type drift struct {
	key
	verify.Item
	since time.Time
	found bool // at the first look
}

// drifts takes from findings what is to be watched. On a machine that isolates nothing every thread may run everywhere, which is
// one drift; there only threads that can run nowhere else than on workers' CPUs count one by one.
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

// command is what mends an item, in a shell.
func command(i verify.Item) string {
	if i.Fix != nil {
		return i.Fix.Command()
	}
	first, _, _ := strings.Cut(i.Mend, "\n")
	return first
}

// tracker knows what was told already.
type tracker struct {
	known map[key]drift
	begun bool
}

// update compares a look with the one before it. who explains a drift that is new.
func (t *tracker) update(now time.Time, found map[key]drift, who func(drift) string) []Event {
	var events []Event
	kind := Drift
	if !t.begun {
		kind, t.begun, t.known = Found, true, map[key]drift{}
	}
	for k, d := range found {
		if old, known := t.known[k]; known {
			d.since, d.found = old.since, old.found
		} else {
			d.since, d.found = now, kind == Found
			events = append(events, Event{Time: now, Kind: kind, Check: k.check, Subject: k.subject, Text: d.Text, Who: who(d), Mend: command(d.Item)})
		}
		t.known[k] = d
	}
	for k, d := range t.known {
		if _, still := found[k]; !still {
			events = append(events, Event{Time: now, Kind: Well, Check: k.check, Subject: k.subject,
				Text: fmt.Sprintf("no longer so, after %.0f s", now.Sub(d.since).Seconds())})
			delete(t.known, k)
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return strings.Compare(a.Check+" "+a.Subject, b.Check+" "+b.Subject)
	})
	return events
}

// ownThread says whether an item is about a thread of a running corelaned, which moves its threads back itself.
func ownThread(m *topology.Machine, i verify.Item) bool {
	return i.PID != 0 && slices.ContainsFunc(m.Threads, func(t topology.Thread) bool { return t.PID == i.PID && t.Process == "corelaned" })
}
