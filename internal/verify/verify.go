// SPDX-License-Identifier: Apache-2.0

// Package verify checks whether a machine keeps everything else off its data plane's CPUs, as a plan or the machine
// itself intends. It does no I/O: it turns what is known about a machine into findings. Each finding says what was
// seen, why it matters and how to fix it.
package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Verdict of a check. Verdicts are ordered: a check has the worst verdict of its items.
type Verdict int

// The verdicts.
const (
	Pass    Verdict = iota
	Unknown         // the check could not read what it needs
	Warn            // costs packets at times, or will after the next restart or boot
	Fail            // delays or loses packets, or the machine does not follow the plan
)

var verdictNames = [...]string{"PASS", "UNKNOWN", "WARN", "FAIL"}

func (v Verdict) String() string { return verdictNames[v] }

// MarshalText returns the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Finding is the result of one check.
type Finding struct {
	ID       string   `json:"id"`    // "threads.foreign": group and check, stable
	Group    string   `json:"group"` // heading of the report
	Verdict  Verdict  `json:"verdict"`
	Title    string   `json:"title"`
	Evidence []Item   `json:"evidence"`
	Why      string   `json:"why"`
	Fix      []string `json:"fix,omitempty"` // commands, in their order
	Source   string   `json:"source"`        // of why: the title of a document or man page
}

// Item is one observation.
type Item struct {
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject,omitempty"` // "thread 812", "irq 38", "eth0/rx-0"; stable
	Text    string  `json:"text"`
	Fix     *Fix    `json:"fix,omitempty"`
	Command string  `json:"fix_command,omitempty"` // when there is no Fix
	Pinned  bool    `json:"pinned,omitempty"`      // a thread that can run nowhere else
	PID     int     `json:"pid,omitempty"`         // of a thread
	weight  int64   // items are sorted by weight, the heaviest first
}

// Fix is a change of the running kernel: the CPUs of a thread, or the value of a file.
type Fix struct {
	PID   int        `json:"pid,omitempty"`
	TID   int        `json:"tid,omitempty"`
	Name  string     `json:"name,omitempty"` // of the thread
	CPUs  cpuset.Set `json:"cpus,omitzero"`
	Path  string     `json:"path,omitempty"`
	Value string     `json:"value,omitempty"`
}

// Command returns the shell command that does the same.
func (f *Fix) Command() string {
	if f.Path != "" {
		return fmt.Sprintf("echo %s > %s", f.Value, f.Path)
	}
	return fmt.Sprintf("taskset -pc %s %d", f.CPUs, f.TID)
}

// rule is one check. Its function reads the view and adds items; a check without items passes.
type rule struct {
	id, group, title, why, source string
	fixes                         []string // commands that do not belong to one item
	workers                       bool     // skipped when no worker's CPU is known
	check                         func(v *view, r *result)
}

// result collects the items of a rule.
type result struct {
	items []Item
	fixes []string
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

// writeMask adds a write of a CPU mask as the fix. It does nothing for an empty set, since a mask of 0 is not valid.
func (i *Item) writeMask(path string, to cpuset.Set) *Item {
	if to.Empty() {
		return i
	}
	return i.write(path, to.MaskWords())
}

// thread makes the item about a thread that should run on other CPUs; an empty set means that these are not known.
func (i *Item) thread(t *topology.Thread, to cpuset.Set) *Item {
	i.Subject, i.PID = fmt.Sprintf("thread %d", t.TID), t.PID
	if !to.Empty() {
		i.Fix = &Fix{PID: t.PID, TID: t.TID, Name: t.Name, CPUs: to}
	}
	return i
}

// rules lists all checks in the order of the report.
func rules() []rule {
	return slices.Concat(stateRules, planRules, bootRules, placeRules, threadRules, irqRules, cgroupRules, serviceRules,
		guestRules, memoryRules, knobRules)
}

// Check runs all checks. Without a plan it uses the machine's own intent: IntentOf.
func Check(m *topology.Machine, p *plan.Plan) []Finding { return CheckFor(m, p, IntentOf(m, p)) }

// CheckFor is Check with a given intent. Without a plan, an intent that is derived again would follow a moved worker.
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
	if v.m.Container && !ru.inside() {
		ru.hostOnly(r)
	}
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
			f.Fix = append(f.Fix, i.Fix.Command())
		}
		if i.Command != "" {
			f.Fix = append(f.Fix, strings.Split(i.Command, "\n")...)
		}
	}
	if f.Verdict > Unknown {
		f.Fix = unique(slices.Concat(v.filled(r.fixes), f.Fix, v.filled(ru.fixes)))
	}
	return f
}

// inside reports whether a check is about what belongs to a container, which can therefore fix it.
func (ru rule) inside() bool {
	return slices.Contains([]string{groupPlan, groupPlace, groupThreads, groupGuest}, ru.group)
}

// hostOnly removes the commands of a check that only the host of a container may fix: they would change it for all.
func (ru *rule) hostOnly(r *result) {
	ru.fixes, r.fixes = nil, nil
	ru.why += " Only the host of this container can change it."
	for i := range r.items {
		r.items[i].Fix, r.items[i].Command = nil, ""
	}
}

// defaultPlan is the file that commands name if no plan was given.
const defaultPlan = "/etc/corelane/plan.json"

// filled replaces {make} in a rule's commands with the command that makes a plan of this machine's workers and guests,
// and {plan} with the file of the plan. Without a plan one is made before it is applied.
func (v *view) filled(commands []string) []string {
	nic := ""
	for _, n := range v.m.NICs {
		if polledDriver(n.Driver) {
			nic = n.Address
		}
	}
	words := strings.NewReplacer("{plan}", v.planFile())
	var list []string
	for _, c := range commands {
		switch {
		case v.p == nil && strings.HasPrefix(c, "corelane cores apply"):
			made := v.makePlan(nic, true)
			if made == "" {
				continue
			}
			list = append(list, made)
		case strings.HasPrefix(c, "{make}"):
			made := v.makePlan(nic, false)
			if made == "" {
				continue
			}
			c = made + strings.TrimPrefix(c, "{make}")
		}
		list = append(list, words.Replace(c))
	}
	return list
}

// makePlan returns the command that makes a plan for the workers and guests of this machine, on the workers' present
// CPUs or on better ones. What the planner refuses is left out; it returns "" if nothing remains, or nothing better.
func (v *view) makePlan(nic string, here bool) string {
	vcpus := 0
	for _, g := range v.m.Guests {
		vcpus += len(g.VCPUs)
	}
	nova, _ := cpuset.ParseExcluding(v.m.Services.Nova["cpu_dedicated_set"]) // nova.sets reports an error
	vcpus = max(vcpus, v.in.Guests.Len())
	for workers := v.in.Workers.Len(); workers >= 0; workers-- {
		for _, guests := range []int{max(vcpus, nova.And(v.online).Len()), vcpus, v.in.Guests.Len(), 0} {
			w, flags := plan.Request{Guests: guests, Boot: !v.m.Container}, ""
			if here && !v.in.Workers.Empty() && workers == v.in.Workers.Len() {
				w.ForwardingCPUs = v.in.Workers
				flags += " --forwarding-cpus " + v.in.Workers.String()
			} else if w.Forwarding = max(workers, ones(guests == 0)); w.Forwarding > 0 {
				flags += fmt.Sprintf(" --forwarding %d", w.Forwarding)
			}
			if guests > 0 {
				flags += fmt.Sprintf(" --guests %d", guests)
			}
			if nic != "" {
				w.NICs = []string{nic}
				flags += " --nic " + nic
			}
			if v.p != nil {
				w.ShareCores, w.Boot = v.p.Request.ShareCores, v.p.Request.Boot
			}
			flags += ifText(w.ShareCores, " --share-cores") + ifText(w.Boot, " --boot")
			p, err := plan.Make(v.m, w)
			switch {
			case err != nil:
			case !here && v.p != nil && slices.Equal(p.CPUs, v.p.CPUs):
				return "" // the same plan again
			default:
				return "corelane plan make" + flags + " --out " + v.planFile()
			}
		}
	}
	return ""
}

func ones(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

func (v *view) planFile() string { return quoted(cmp.Or(v.in.File, defaultPlan)) }

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
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

// Count returns the number of findings with each verdict.
func Count(findings []Finding) (n [Fail + 1]int) {
	for _, f := range findings {
		n[f.Verdict]++
	}
	return n
}
