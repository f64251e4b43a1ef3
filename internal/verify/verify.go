// SPDX-License-Identifier: Apache-2.0

// Package verify says whether a machine keeps off its data plane's CPUs, as a plan or the machine itself intends. It is pure: what
// is known about a machine in, findings out. Each says what was seen, why it matters and what mends it.
package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Verdict of a check. They are ordered: the worst of a check's items is the check's.
type Verdict int

// The verdicts.
const (
	Pass    Verdict = iota
	Unknown         // what the check needs could not be read: neither good nor bad
	Warn            // costs now and then, or will after the next restart or boot
	Fail            // packets are late or lost because of it, or the plan is not what runs
)

var verdictNames = [...]string{"PASS", "UNKNOWN", "WARN", "FAIL"}

func (v Verdict) String() string { return verdictNames[v] }

// MarshalText writes the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Finding is the result of one check.
type Finding struct {
	ID       string   `json:"id"`    // "threads.foreign": group and check, stable
	Group    string   `json:"group"` // as people read it
	Verdict  Verdict  `json:"verdict"`
	Title    string   `json:"title"`
	Evidence []Item   `json:"evidence"`
	Why      string   `json:"why"`
	Mend     []string `json:"mend,omitempty"` // commands, in their order
	Source   string   `json:"source"`         // who says so: kernel document, man page, field report
}

// Item is one thing that was seen.
type Item struct {
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject,omitempty"` // "thread 812", "irq 38", "eth0/rx-0": what of the machine; stable while it lives
	Text    string  `json:"text"`
	Fix     *Fix    `json:"fix,omitempty"`
	Mend    string  `json:"mend,omitempty"`   // when it is no Fix
	Pinned  bool    `json:"pinned,omitempty"` // a thread that can run nowhere else
	PID     int     `json:"pid,omitempty"`    // of a thread
	weight  int64   // the heaviest come first
}

// Fix is a change of the running kernel: CPUs of a thread, or a value of a file.
type Fix struct {
	PID   int        `json:"pid,omitempty"`
	TID   int        `json:"tid,omitempty"`
	Name  string     `json:"name,omitempty"` // of the thread
	CPUs  cpuset.Set `json:"cpus,omitzero"`
	Path  string     `json:"path,omitempty"`
	Value string     `json:"value,omitempty"`
}

// Command is what does the same in a shell.
func (f *Fix) Command() string {
	if f.Path != "" {
		return fmt.Sprintf("echo %s > %s", f.Value, f.Path)
	}
	return fmt.Sprintf("taskset -pc %s %d", f.CPUs, f.TID)
}

// rule is one check. Its function gets the view and adds items; none is a PASS without anything to say.
type rule struct {
	id, group, title, why, source string
	mend                          []string // commands that are not of an item
	workers                       bool     // makes no sense without CPUs of workers
	check                         func(v *view, r *result)
}

// result collects what a rule sees.
type result struct {
	items []Item
	mend  []string
}

func (r *result) add(verdict Verdict, format string, args ...any) *Item {
	r.items = append(r.items, Item{Verdict: verdict, Text: fmt.Sprintf(format, args...)})
	return &r.items[len(r.items)-1]
}

func (r *result) pass(format string, args ...any) *Item    { return r.add(Pass, format, args...) }
func (r *result) unknown(format string, args ...any) *Item { return r.add(Unknown, format, args...) }
func (r *result) warn(format string, args ...any) *Item    { return r.add(Warn, format, args...) }
func (r *result) fail(format string, args ...any) *Item    { return r.add(Fail, format, args...) }

func (i *Item) about(format string, args ...any) *Item {
	i.Subject = fmt.Sprintf(format, args...)
	return i
}

func (i *Item) write(path, value string) *Item {
	i.Fix = &Fix{Path: path, Value: value}
	return i
}

// writeMask of CPUs; none are left: nothing to write, a mask of 0 is no answer.
func (i *Item) writeMask(path string, to cpuset.Set) *Item {
	if to.Empty() {
		return i
	}
	return i.write(path, to.MaskWords())
}

// thread makes an item about a thread, which belongs on other CPUs; none: it is not known which.
func (i *Item) thread(t *topology.Thread, to cpuset.Set) *Item {
	i.Subject, i.PID = fmt.Sprintf("thread %d", t.TID), t.PID
	if !to.Empty() {
		i.Fix = &Fix{PID: t.PID, TID: t.TID, Name: t.Name, CPUs: to}
	}
	return i
}

// rules are all checks in the order of the report.
func rules() []rule {
	return slices.Concat(stateRules, planRules, bootRules, placeRules, threadRules, irqRules, cgroupRules, serviceRules, guestRules, memoryRules, knobRules)
}

// Check looks at everything. Without a plan, what is intended is what the machine itself says: IntentOf.
func Check(m *topology.Machine, p *plan.Plan) []Finding { return CheckFor(m, p, IntentOf(m, p)) }

// CheckFor is Check for an intent that is known already: without a plan a worker that was moved would move the intent along.
func CheckFor(m *topology.Machine, p *plan.Plan, in *Intent) []Finding {
	v := newView(m, p, in)
	var findings []Finding
	for _, ru := range rules() {
		if ru.workers && v.in.Workers.Empty() {
			continue
		}
		findings = append(findings, ru.run(v))
	}
	return findings
}

func (ru rule) run(v *view) Finding {
	r := &result{}
	ru.check(v, r)
	f := Finding{ID: ru.id, Group: ru.group, Title: ru.title, Evidence: r.items, Why: ru.why, Source: ru.source}
	slices.SortStableFunc(f.Evidence, func(a, b Item) int {
		return cmp.Or(cmp.Compare(b.Verdict, a.Verdict), cmp.Compare(b.weight, a.weight))
	})
	for _, i := range f.Evidence {
		f.Verdict = max(f.Verdict, i.Verdict)
		if i.Verdict <= Unknown {
			continue
		}
		if i.Fix != nil {
			f.Mend = append(f.Mend, i.Fix.Command())
		}
		if i.Mend != "" {
			f.Mend = append(f.Mend, strings.Split(i.Mend, "\n")...)
		}
	}
	if f.Verdict > Unknown {
		f.Mend = unique(slices.Concat(r.mend, f.Mend, v.filled(ru.mend)))
	}
	return f
}

// filled puts what the machine has into a rule's commands: the number of workers, the device that they poll.
func (v *view) filled(commands []string) []string {
	nic := "ADDRESS"
	for _, n := range v.m.NICs {
		if polledDriver(n.Driver) {
			nic = n.Address
		}
	}
	words := strings.NewReplacer("{workers}", fmt.Sprint(max(1, v.in.Workers.Len())), "{nic}", nic)
	var list []string
	for _, c := range commands {
		list = append(list, words.Replace(c))
	}
	return list
}

func unique(list []string) []string {
	var once []string
	for _, s := range list {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// Count is how many findings have each verdict.
func Count(findings []Finding) (n [Fail + 1]int) {
	for _, f := range findings {
		n[f.Verdict]++
	}
	return n
}
