// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/wait"
)

// Culprit identifies the source of a disturbance. Empty fields are not compared.
type Culprit struct {
	PID  int    `json:"pid,omitempty"` // process or thread
	IRQ  int    `json:"irq,omitempty"`
	Name string `json:"name,omitempty"` // part of the name
	Port string `json:"port,omitempty"`
	disk []int  // interrupts of a disk: explain has to name one of them, or softirq BLOCK
}

// Outcome of one run of a case. Rates are frames/s. What the generator was late for was not offered.
type Outcome struct {
	Case     string         `json:"case"`
	Expected []explain.Kind `json:"expected"`
	Wanted   Culprit        `json:"wanted"`
	Found    explain.Cause  `json:"found"` // the first cause
	Passed   bool           `json:"passed"`
	Why      string         `json:"why,omitempty"` // of a failure
	Seconds  float64        `json:"seconds"`       // until explain answered
	Before   float64        `json:"before"`        // received before the disturbance
	Lossy    float64        `json:"lossy"`         // lost before the disturbance
	Offered  float64        `json:"offered"`       // in the window of explain
	During   float64        `json:"during"`        // received in it
	Said     float64        `json:"said"`          // the cost of all causes that matter
	Unpriced string         `json:"unpriced,omitempty"`
	Alone    []float64      `json:"alone,omitempty"` // cost of each of several disturbances by itself
	First    bool           `json:"first"`           // a true cause came first, in time
	// what is wrong with the order of several causes
	Misranked string   `json:"misranked,omitempty"`
	Tracing   bool     `json:"tracing"`
	Causes    []string `json:"causes"`            // all causes, in their order
	After     float64  `json:"after,omitempty"`   // the command that explain gives; 0: it was not run
	Unfixed   string   `json:"unfixed,omitempty"` // why no command can fix it
	Skipped   string   `json:"skipped,omitempty"` // why the case was not run

	Models []explain.Model `json:"models"` // of the workers
}

// Cost is the measured one: what was offered and did not come back, beyond what was lost before the disturbance.
func (o *Outcome) Cost() float64 { return max(0, o.Offered-o.During-o.Lossy) }

// off returns by how much the cost that explain reports is off, as a share of the measured one; 0: the case has no cost
// that the router can know, or too small a one.
func (o *Outcome) off() float64 {
	if o.Unpriced != "" || max(o.Said, o.Cost()) < cheap*o.Offered {
		return 0
	}
	return math.Abs(o.Said-o.Cost()) / max(o.Cost(), cheap*o.Offered)
}

// Case is a disturbance and the cause that explain has to find.
type Case struct {
	Name    string
	Summary string
	Kinds   []explain.Kind // valid answers
	Load    float64        // share of the worker's capacity, before the disturbance
	// what a fix would need, if no command can fix it
	unfixed string
	// why the cost cannot be known from within; otherwise it has to be right
	unpriced string
	parts    []part // inject is several disturbances at once
	setting  setting
	prepare  func(context.Context, *victim) error // before traffic flows
	inject   func(context.Context, *loadedVictim) (*injection, error)
}

// injection is an active disturbance.
type injection struct {
	culprit Culprit
	undo    func() error
}

// loadedVictim is a victim with traffic through it, ready to be disturbed.
type loadedVictim struct {
	*victim
	capacity float64 // frames/s
	stream   *stream
}

// change replaces the traffic.
func (b *loadedVictim) change(ctx context.Context, spec *apiv1.GeneratorTrial) error {
	if err := b.stream.stop(ctx); err != nil {
		return err
	}
	b.stream = b.flow(ctx, spec)
	return nil
}

// Chosen returns the named cases, or all without names.
func Chosen(names []string) ([]Case, error) {
	all := Cases()
	if len(names) == 0 {
		return all, nil
	}
	var list []Case
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Case) bool { return c.Name == name })
		if i < 0 {
			return nil, input.Errorf("--case", strings.Join(CaseNames(), ", "), "'%s' is unknown", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

// CaseNames lists the names of all cases.
func CaseNames() (names []string) {
	for _, c := range Cases() {
		names = append(names, c.Name)
	}
	return names
}

// Matrix runs each case o.Repetitions times, on a victim of its own, and calls each with every outcome.
func Matrix(ctx context.Context, o Options, each func(Outcome)) error {
	cases, err := Chosen(o.Cases)
	if err != nil {
		return err
	}
	if err := o.prepare(); err != nil {
		return err
	}
	for _, c := range cases {
		if err := o.matrixCase(ctx, c, each); ctx.Err() != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		} else if err != nil { // the others are run all the same
			each(Outcome{Case: c.Name, Expected: c.Kinds, Why: err.Error()})
		}
	}
	return nil
}

func (o *Options) matrixCase(ctx context.Context, c Case, each func(Outcome)) (err error) {
	l, err := o.open(ctx, c.setting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	b := &loadedVictim{victim: l}
	if c.prepare != nil {
		if err := c.prepare(ctx, l); err != nil {
			return err
		}
	}
	back, err := l.partition(ctx) // keeps other disturbances of the machine off the worker
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, back()) }()
	if b.capacity, err = l.saturated(ctx, saturatedTime); err != nil {
		return err
	}
	for repetition := range o.Repetitions {
		o.say("%s, run %d of %d", c.Name, repetition+1, o.Repetitions)
		outcome, err := b.once(ctx, c)
		if err != nil {
			return err
		}
		each(*outcome)
	}
	return nil
}

const (
	beforeTime = 3500 * time.Millisecond // the daemon remembers whole seconds
	afterTime  = 1500 * time.Millisecond
	takesHold  = 500 * time.Millisecond // until a disturbance has its effect
)

// once runs one disturbance and compares what explain finds.
func (b *loadedVictim) once(ctx context.Context, c Case) (_ *Outcome, err error) {
	b.stream = b.flow(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: c.Load * b.capacity})
	defer func() { err = errors.Join(err, b.stream.stop(context.WithoutCancel(ctx))) }()
	if err := wait.For(ctx, takesHold); err != nil {
		return nil, err
	}
	o := b.outcome(c)
	if o.Alone, err = b.alone(ctx, c.parts); err != nil {
		return o.orSkipped(err)
	}
	before, err := b.watch(ctx, beforeTime)
	if err != nil {
		return nil, err
	}
	o.Before, o.Lossy = before.received, before.lost()
	i, err := c.inject(ctx, b)
	if err != nil {
		return o.orSkipped(err)
	}
	defer func() { err = errors.Join(err, i.undo()) }()
	if err := wait.For(ctx, takesHold); err != nil {
		return nil, err
	}
	if err := b.ask(ctx, o, i.culprit, c); err != nil || !o.Passed || b.Ranks {
		return o, err
	}
	return o, b.fix(ctx, o, c)
}

func (b *loadedVictim) outcome(c Case) *Outcome {
	o := &Outcome{Case: c.Name, Expected: c.Kinds, Unpriced: c.unpriced}
	if b.Ranks {
		o.Unpriced = "costs were not checked"
	}
	return o
}

// orSkipped is the outcome of a case that could not be run because a program is missing.
func (o *Outcome) orSkipped(err error) (*Outcome, error) {
	if missing := (errMissing{}); errors.As(err, &missing) {
		o.Skipped, o.Passed = missing.Error(), true
		return o, nil
	}
	return nil, err
}

// watch returns the traffic of the next d.
func (b *loadedVictim) watch(ctx context.Context, d time.Duration) (traffic, error) {
	begin := time.Now()
	err := wait.For(ctx, d+windowMs*time.Millisecond) // the message about the last window takes a moment
	return b.stream.between(begin, begin.Add(d)), err
}

// fix runs the command that explain gives. The rate has to come back.
func (b *loadedVictim) fix(ctx context.Context, o *Outcome, c Case) error {
	if o.Unfixed = c.unfixed; o.Unfixed != "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", o.Found.Fix)
	cmd.Env = append(os.Environ(), "PATH="+b.Bin+":"+os.Getenv("PATH"), "CORELANE_SOCKET="+b.Socket())
	if text, err := cmd.CombinedOutput(); err != nil || o.Found.Fix == "" {
		o.Passed, o.Why = false, fmt.Sprintf("the command '%s' fails: %v %s", o.Found.Fix, err, text)
		return nil
	}
	if err := wait.For(ctx, takesHold); err != nil {
		return err
	}
	after, err := b.watch(ctx, afterTime)
	was := o.Before / max(1, o.Before+o.Lossy)
	if o.After = after.received; after.received < comesBack*was*after.offered {
		o.Passed, o.Why = false, fmt.Sprintf("after '%s' %.2f of what is offered comes back", o.Found.Fix,
			after.received/max(1, after.offered))
	}
	return err
}

const (
	comesBack  = 0.97 // of the offered rate
	priced     = 0.25 // by which a cost may differ from the measured one
	pricedHalf = 0.10 // by which half of the costs may differ
	fewest     = 3    // costs of which half are looked at
	cheap      = 0.02 // of the offered rate: smaller costs are not compared
)

// ask runs explain and compares.
func (b *loadedVictim) ask(ctx context.Context, o *Outcome, culprit Culprit, c Case) error {
	begin := time.Now()
	report, err := explain.Run(ctx, explain.Options{Socket: b.Socket(), Window: b.Window, Root: b.Root})
	if err != nil {
		return err
	}
	o.Wanted, o.Seconds, o.Tracing = culprit, time.Since(begin).Seconds(), report.Tracing
	if err := wait.For(ctx, windowMs*time.Millisecond); err != nil {
		return err
	}
	during := b.stream.between(report.Started, report.Started.Add(duration(report.Seconds)))
	o.Offered, o.During, o.Said = during.offered, during.received, saidIn(report)
	for _, w := range report.Workers {
		o.Models = append(o.Models, w.Model)
	}
	o.judge(report)
	o.First, o.Misranked = o.Passed, o.misranked(report, c.parts)
	if o.Passed && !b.Ranks {
		o.weigh()
	}
	return nil
}

// saidIn is the cost of all causes that matter.
func saidIn(r *explain.Report) (pps float64) {
	for _, c := range r.Causes {
		if !c.Minor {
			pps += c.PPS
		}
	}
	return pps
}

// judge compares the first cause of the report.
func (o *Outcome) judge(r *explain.Report) {
	for _, c := range r.Causes {
		o.Causes = append(o.Causes, fmt.Sprintf("%s: %s (%.0f packets/s)", c.Kind, c.Title, c.PPS))
	}
	if len(r.Causes) == 0 {
		o.Why = "no cause was found"
		return
	}
	o.Found = r.Causes[0]
	switch {
	case !slices.Contains(o.Expected, o.Found.Kind):
		o.Why = fmt.Sprintf("%s is not %s", o.Found.Kind, kindText(o.Expected))
	case !o.Wanted.is(&o.Found):
		o.Why = fmt.Sprintf("%s is not the culprit, %s", nameOf(&o.Found), o.Wanted.String())
	case o.Seconds > limit.Seconds():
		o.Why = fmt.Sprintf("it took %.1f s", o.Seconds)
	}
	o.Passed = o.Why == ""
}

// weigh compares the cost that explain reports, and the order of several causes.
func (o *Outcome) weigh() {
	if o.Why = o.Misranked; o.off() > priced {
		o.Why = fmt.Sprintf("its cost is said to be %.2f Mpps, not %.2f", o.Said/1e6, o.Cost()/1e6)
	}
	o.Passed = o.Why == ""
}

const limit = 10 * time.Second // of explain's answer

// is says whether a cause names the culprit.
func (w Culprit) is(c *explain.Cause) bool {
	return (w.PID == 0 || c.PID == w.PID || c.TID == w.PID) && (w.IRQ == 0 || c.IRQ == w.IRQ) &&
		(w.disk == nil || slices.Contains(w.disk, c.IRQ) || c.Kind == explain.Softirq &&
			strings.Contains(c.Name, "BLOCK")) &&
		(w.Name == "" || strings.Contains(c.Name, w.Name)) && (w.Port == "" || c.Port == w.Port || c.Name == w.Port)
}

func (w Culprit) String() string {
	var parts []string
	for _, p := range []struct {
		on   bool
		text string
	}{{w.Name != "", w.Name}, {w.PID > 0, fmt.Sprintf("%d", w.PID)}, {w.IRQ > 0, fmt.Sprintf("IRQ %d", w.IRQ)},
		{w.Port != "", "port " + w.Port},
		{w.disk != nil, fmt.Sprintf("IRQ of %v, or BLOCK", w.disk)}} {
		if p.on {
			parts = append(parts, p.text)
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, " ")
}

// nameOf is the culprit that a cause names.
func nameOf(c *explain.Cause) string {
	w := Culprit{PID: c.PID, IRQ: c.IRQ, Name: c.Name}
	if c.Port != c.Name {
		w.Port = c.Port
	}
	return w.String()
}

func kindText(kinds []explain.Kind) string {
	var list []string
	for _, k := range kinds {
		list = append(list, string(k))
	}
	return strings.Join(list, " or ")
}
