// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

// Options of Watch.
type Options struct {
	Plan    *plan.Plan    // of this machine, or Watch refuses it; nil: the machine's own intent at the first look
	Every   time.Duration // interval of looks
	Repair  bool          // false: report only
	Journal string        // directory for the journal of repairs, for 'corelane cores rollback'
	Report  func(Event)   // called from one goroutine only
	Looked  func(Status)  // after each look; may be nil
	Daemon  <-chan Event  // events of the data plane; may be nil
	Tools   bool          // subscribe to starts of programs, to find tools that move threads
}

// Status is the result of a look.
type Status struct {
	Findings []verify.Finding
	Drifts   int
	CPU      time.Duration // CPU time that the program has used
}

// guard is one run of Watch.
type guard struct {
	Options
	intent *verify.Intent
	look   *scanner
	track  tracker
	limit  limiter
	tools  *toolLog
}

// Watch runs until ctx ends, and then returns nil.
func Watch(ctx context.Context, o Options) error {
	g := &guard{Options: o, limit: limiter{}}
	first, err := topology.Read("/")
	if err != nil {
		return err
	}
	if o.Plan != nil {
		if err := cores.Check("plan", first, o.Plan); err != nil {
			return err
		}
	}
	g.look = &scanner{}
	g.intend(first)
	if o.Tools {
		if log, stop, err := listen(); err == nil {
			g.tools = log
			defer stop()
		} else {
			o.Report(Event{Time: time.Now(), Kind: Notice, Text: fmt.Sprintf("the kernel does not report starts of "+
				"programs (%v): "+
				"the cause of a drift may stay unknown", err)})
		}
	}
	o.Report(Event{Time: time.Now(), Kind: Notice, Text: g.greeting()})
	return g.loop(ctx)
}

// intend sets the intent once it is known: without a plan, as soon as a data plane runs.
func (g *guard) intend(m *topology.Machine) {
	if g.intent == nil || g.intent.Workers.Empty() {
		g.intent = verify.IntentOf(m, g.Plan)
		g.look.workers = g.intent.Workers
	}
}

func (g *guard) greeting() string {
	if g.intent.Workers.Empty() {
		return "no worker's CPU is known: waiting for a data plane with polling threads"
	}
	return fmt.Sprintf("watching workers' CPUs %s, according to %s%s", g.intent.Workers, g.intent.From,
		ifText(g.Repair, "; drifts are repaired"))
}

func ifText(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func (g *guard) loop(ctx context.Context) error {
	tick := time.NewTicker(g.Every)
	defer tick.Stop()
	for {
		if err := g.round(ctx, time.Now()); err != nil {
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case e, open := <-g.Daemon:
				if !open {
					g.Daemon = nil
					continue
				}
				g.Report(e)
			case <-tick.C:
				waiting = false
			}
		}
	}
}

// round makes one look, reports drifts and repairs them.
func (g *guard) round(ctx context.Context, now time.Time) error {
	m, err := g.look.look(now)
	if err != nil {
		return err
	}
	if g.intent.Workers.Empty() {
		if g.intend(m); !g.intent.Workers.Empty() {
			g.Report(Event{Time: now, Kind: Notice, Text: g.greeting()})
		}
	}
	findings := verify.CheckFor(m, g.Plan, g.intent)
	found := drifts(findings)
	w := &witness{machine: m, look: g.look, tools: g.tools, now: now}
	for _, e := range g.track.update(now, found, w.cause) {
		g.Report(e)
	}
	if g.Repair {
		for _, d := range found {
			g.repair(ctx, m, g.track.known[d.key], now)
		}
		g.limit.forget(now)
	}
	if g.Looked != nil {
		g.Looked(Status{findings, len(found), cpuTime()})
	}
	return nil
}

// ownGrace is the time that a running corelaned has to move its own threads back.
const ownGrace = 3 * time.Second

// repair undoes a drift, unless somebody else keeps causing it again. What differed before the guard started is left to
// 'corelane cores apply', which first shows what it will do.
func (g *guard) repair(ctx context.Context, m *topology.Machine, d drift, now time.Time) {
	if d.Fix == nil || d.initial || ownThread(m, d.Item) && now.Sub(d.since) < ownGrace {
		return
	}
	tell := func(kind Kind, cause, format string, args ...any) {
		g.Report(Event{Time: now, Kind: kind, Check: d.check, Subject: d.subject, Text: fmt.Sprintf(format, args...),
			Cause: cause})
	}
	ok, oscillating := g.limit.allow(d.key, now)
	if oscillating {
		w := &witness{machine: m, look: g.look, tools: g.tools, now: now}
		tell(Oscillating, w.cause(d), "repaired %d times in a minute and changed again each time: stop the program "+
			"that changes it; repairs pause for %v", oscillationRepairs, oscillationPause)
	}
	if !ok {
		return
	}
	result := ""
	site := &cores.Site{Root: "/", Dir: g.Journal, KeepGoing: true, Report: func(o cores.Outcome) {
		result = strings.TrimSpace(string(o.Result) + " " + o.Text)
	}}
	if err := site.Apply(ctx, []cores.Change{change(d)}); err != nil {
		g.limit.failed(d.key, now)
		tell(Failed, "", "%s: %v", d.Fix.Command(), err)
		return
	}
	switch {
	case strings.HasPrefix(result, string(cores.Done)):
		tell(Repaired, "", "%s", d.Fix.Command())
	case !strings.HasPrefix(result, string(cores.Already)) && !strings.HasPrefix(result, string(cores.Gone)):
		g.limit.failed(d.key, now)
		tell(Failed, "", "%s: %s", d.Fix.Command(), result)
	}
}

// change converts a repair to a change of package cores, which can roll it back.
func change(d drift) cores.Change {
	why := "the guard found: " + d.Text
	if d.Fix.Path != "" {
		return cores.Change{Kind: cores.Write, Path: strings.TrimPrefix(d.Fix.Path, "/"), New: d.Fix.Value,
			Form: form(d.Fix.Path), When: cores.Now, Why: why, Optional: true}
	}
	return cores.Change{Kind: cores.Affinity, PID: d.Fix.PID, TID: d.Fix.TID, Name: d.Fix.Name,
		New: d.Fix.CPUs.String(), When: cores.Now, Why: why, Optional: true}
}

// form returns the form in which the kernel prints a setting.
func form(path string) cores.Form {
	switch {
	case strings.HasSuffix(path, "_list"), strings.HasSuffix(path, "/cpuset.cpus"):
		return cores.List
	case strings.HasSuffix(path, "smp_affinity"), strings.HasSuffix(path, "_cpus"), strings.HasSuffix(path, "/cpumask"):
		return cores.Mask
	case strings.HasSuffix(path, "/enabled"):
		return cores.Choice
	}
	return cores.Exact
}
