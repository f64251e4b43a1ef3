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
	Plan    *plan.Plan    // nil: the machine's own intent, as at the first look
	Every   time.Duration // between looks
	Repair  bool          // or report only
	Journal string        // directory of repairs, for 'corelane cores rollback'
	Report  func(Event)   // called by one goroutine only
	Looked  func(Status)  // after each look; may be nil
	Daemon  <-chan Event  // what the data plane tells; may be nil
	Tools   bool          // listen to the kernel for tools that move threads
}

// Status is what the guard knows after a look.
type Status struct {
	Findings []verify.Finding
	Drifts   int
	CPU      time.Duration // that the program has used
}

// guard is one run of Watch.
type guard struct {
	Options
	intent *verify.Intent
	look   *looker
	track  tracker
	limit  limiter
	tools  *toolLog
}

// Watch looks until ctx is over, which is its ordinary end.
func Watch(ctx context.Context, o Options) error {
	g := &guard{Options: o, limit: limiter{}}
	first, err := topology.Read("/")
	if err != nil {
		return err
	}
	g.look = &looker{}
	g.intend(first)
	if o.Tools {
		if log, stop, err := listen(); err == nil {
			g.tools = log
			defer stop()
		} else {
			o.Report(Event{Time: time.Now(), Kind: Notice, Text: fmt.Sprintf("the kernel does not tell of programs that start (%v): who moved a thread may "+
				"stay unknown", err)})
		}
	}
	o.Report(Event{Time: time.Now(), Kind: Notice, Text: g.greeting()})
	return g.loop(ctx)
}

// intend settles what is intended, once it is known: without a plan as soon as a data plane runs.
func (g *guard) intend(m *topology.Machine) {
	if g.intent == nil || g.intent.Workers.Empty() {
		g.intent = verify.IntentOf(m, g.Plan)
		g.look.workers = g.intent.Workers
	}
}

func (g *guard) greeting() string {
	if g.intent.Workers.Empty() {
		return "no worker's CPU is known: waiting for a data plane whose threads poll"
	}
	return fmt.Sprintf("watching CPUs %s of workers, by %s%s", g.intent.Workers, g.intent.From, ifText(g.Repair, "; drift is repaired"))
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

// round is one look and what follows from it.
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
	for _, e := range g.track.update(now, found, w.who) {
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

// ownGrace is how long a running corelaned has to move its own threads back.
const ownGrace = 3 * time.Second

// repair makes a drift undone, unless somebody else makes it again and again. What differed before the guard came is left to
// 'corelane cores apply', which shows first what it will do.
func (g *guard) repair(ctx context.Context, m *topology.Machine, d drift, now time.Time) {
	if d.Fix == nil || d.found || ownThread(m, d.Item) && now.Sub(d.since) < ownGrace {
		return
	}
	tell := func(kind Kind, who, format string, args ...any) {
		g.Report(Event{Time: now, Kind: kind, Check: d.check, Subject: d.subject, Text: fmt.Sprintf(format, args...), Who: who})
	}
	ok, fight := g.limit.allow(d.key, now)
	if fight {
		w := &witness{machine: m, look: g.look, tools: g.tools, now: now}
		tell(Fight, w.who(d), "moved back %d times in a minute and changed again: stop who does it; nothing is repaired here for %v", fightRepairs, fightPause)
	}
	if !ok {
		return
	}
	result := ""
	site := &cores.Site{Root: "/", Dir: g.Journal, KeepGoing: true, Report: func(o cores.Outcome) {
		result = strings.TrimSpace(string(o.Result) + " " + o.Text)
	}}
	if err := site.Apply(ctx, []cores.Change{change(d)}); err != nil {
		tell(Failed, "", "%s: %v", d.Fix.Command(), err)
		return
	}
	switch {
	case strings.HasPrefix(result, string(cores.Done)):
		tell(Repaired, "", "%s", d.Fix.Command())
	case !strings.HasPrefix(result, string(cores.Already)) && !strings.HasPrefix(result, string(cores.Gone)):
		tell(Failed, "", "%s: %s", d.Fix.Command(), result)
	}
}

// change is a repair in the words of package cores, which keeps the way back.
func change(d drift) cores.Change {
	why := "the guard found: " + d.Text
	if d.Fix.Path != "" {
		return cores.Change{Kind: cores.Write, Path: strings.TrimPrefix(d.Fix.Path, "/"), New: d.Fix.Value, Form: form(d.Fix.Path), When: cores.Now,
			Why: why, Optional: true}
	}
	return cores.Change{Kind: cores.Affinity, PID: d.Fix.PID, TID: d.Fix.TID, Name: d.Fix.Name, New: d.Fix.CPUs.String(), When: cores.Now, Why: why,
		Optional: true}
}

// form is how the kernel prints back what a file was told.
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
