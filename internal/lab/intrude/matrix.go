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
	"github.com/corelane/corelane/internal/procfs"
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
	Found    explain.Cause  `json:"found"`           // the first cause, or the one after Ahead
	Ahead    string         `json:"ahead,omitempty"` // what came before it, and is true, too
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
	Stolen    float64  `json:"stolen,omitempty"`  // share of the worker's CPU that the hypervisor took meanwhile
	// capacities of the undisturbed worker before runs that failed, and that were repeated because the machine itself
	// disturbed them
	Uneven []float64 `json:"uneven,omitempty"`

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
	says    string         // a word that the answer has, in what it says or in its remedy
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
	netns   string // where its remedy has to be run; "": here
	pid     int    // of a tool
	undo    func() error
	// whether the remedy did what it should, beyond the rate; nil: the rate says it
	mended func(context.Context) error
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
		outcome, err := b.onEvenMachine(ctx, c)
		if err != nil {
			return err
		}
		each(*outcome)
	}
	return nil
}

const (
	uneven       = 0.05 // by which the capacity of the undisturbed worker may change during a run
	late         = 0.03 // of the load that the generator may be late for before the disturbance
	stolen       = 0.01 // of the worker's CPU that the hypervisor may take while explain looks
	unevenRepeat = 5    // how often a run is repeated
)

// onEvenMachine runs one disturbance, and repeats a run that failed while the machine itself disturbed it, as virtual
// machines do: it became faster or slower, so that the load was another share of the capacity than the case wants, the
// generator was late, or the hypervisor took the worker's CPU, which is a cause of its own.
func (b *loadedVictim) onEvenMachine(ctx context.Context, c Case) (*Outcome, error) {
	var capacities []float64
	for {
		o, err := b.once(ctx, c)
		if err != nil || o.Passed || len(capacities) == unevenRepeat {
			if o != nil {
				o.Uneven = capacities
			}
			return o, err
		}
		was := b.capacity
		if b.capacity, err = b.saturated(ctx, saturatedTime); err != nil {
			return nil, err
		}
		share := (o.Before + o.Lossy) / (c.Load * was)
		if math.Abs(b.capacity/was-1) <= uneven && share > 1-late && o.Stolen <= stolen {
			o.Uneven = capacities
			return o, nil
		}
		capacities = append(capacities, was)
		b.say("  %s: %s; the run is repeated, because the undisturbed worker did %.2f Mpps before and does %.2f now, "+
			"the generator sent %.2f of the load, and the hypervisor took %.3f of the worker's CPU", c.Name, o.Why,
			was/1e6, b.capacity/1e6, share, o.Stolen)
	}
}

const (
	beforeTime = 3500 * time.Millisecond // the daemon remembers whole seconds
	afterTime  = 1500 * time.Millisecond
	takesHold  = 500 * time.Millisecond // until a disturbance has its effect
	endsWithin = time.Second            // what a remedy ends: what it has started may run to its end
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
	return o, b.fix(ctx, o, c, i)
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
func (b *loadedVictim) fix(ctx context.Context, o *Outcome, c Case, i *injection) error {
	if o.Unfixed = c.unfixed; o.Unfixed != "" {
		return nil
	}
	argv := []string{"sh", "-ec", o.Found.Fix}
	if i.netns != "" {
		argv = append([]string{"ip", "netns", "exec", i.netns}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+b.Bin+":"+os.Getenv("PATH"), "CORELANE_SOCKET="+b.Socket())
	if text, err := cmd.CombinedOutput(); err != nil || o.Found.Fix == "" {
		o.Passed, o.Why = false, fmt.Sprintf("the command '%s' fails: %v %s", o.Found.Fix, err, text)
		return nil
	}
	if err := wait.For(ctx, endsWithin); err != nil {
		return err
	}
	if i.mended != nil {
		if err := i.mended(ctx); err != nil {
			o.Passed, o.Why = false, fmt.Sprintf("after '%s': %v", o.Found.Fix, err)
			return nil
		}
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

// cpuTime is what the worker's CPU has done since boot.
func (b *loadedVictim) cpuTime() (procfs.CPUTime, error) {
	text, err := procfs.Root(b.Root).Read("proc/stat")
	if err != nil {
		return procfs.CPUTime{}, err
	}
	cpus, err := procfs.ParseStat(text)
	return cpus[b.WorkerCPU], err
}

// stolenShare is the share of a CPU's time that the hypervisor took.
func stolenShare(t procfs.CPUTime) float64 { return float64(t.Steal) / float64(max(1, t.Total())) }

// ask runs explain and compares.
func (b *loadedVictim) ask(ctx context.Context, o *Outcome, culprit Culprit, c Case) error {
	begin := time.Now()
	before, err := b.cpuTime()
	if err != nil {
		return err
	}
	report, err := explain.Run(ctx, explain.Options{Socket: b.Socket(), Window: b.Window, Root: b.Root})
	if err != nil {
		return err
	}
	after, err := b.cpuTime()
	if err != nil {
		return err
	}
	o.Stolen = stolenShare(after.Since(before))
	o.Wanted, o.Seconds, o.Tracing = culprit, time.Since(begin).Seconds(), report.Tracing
	if err := wait.For(ctx, windowMs*time.Millisecond); err != nil {
		return err
	}
	during := b.stream.between(report.Started, report.Started.Add(duration(report.Seconds)))
	o.Offered, o.During, o.Said = during.offered, during.received, saidIn(report)
	for _, w := range report.Workers {
		o.Models = append(o.Models, w.Model)
	}
	o.judge(report, c.says, b.Window+answering)
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

// judge compares the first cause of the report, which has to come within a time.
func (o *Outcome) judge(r *explain.Report, says string, within time.Duration) {
	for _, c := range r.Causes {
		o.Causes = append(o.Causes, fmt.Sprintf("%s: %s (%.0f packets/s)", c.Kind, c.Title, c.PPS))
	}
	if len(r.Causes) == 0 {
		o.Why = "no cause was found"
		return
	}
	o.Found = r.Causes[0]
	if o.stolenToo(r) {
		o.Ahead, o.Found = string(explain.Steal), r.Causes[1]
	}
	switch {
	case !slices.Contains(o.Expected, o.Found.Kind):
		o.Why = fmt.Sprintf("%s is not %s", o.Found.Kind, kindText(o.Expected))
	case !strings.Contains(textOf(&o.Found), says):
		o.Why = fmt.Sprintf("it does not say '%s'", says)
	case !o.Wanted.is(&o.Found):
		o.Why = fmt.Sprintf("%s is not the culprit, %s", nameOf(&o.Found), o.Wanted.String())
	case o.Seconds > within.Seconds():
		o.Why = fmt.Sprintf("it took %.1f s, more than %v", o.Seconds, within)
	}
	o.Passed = o.Why == ""
}

// stolenToo says whether the hypervisor came first, a cause that is true but is not the lab's, and the second cause is
// to be judged: the lab itself counted no less stolen time, nor less that was offered in it, than explain says.
func (o *Outcome) stolenToo(r *explain.Report) bool {
	first := &r.Causes[0]
	if first.Kind != explain.Steal || slices.Contains(o.Expected, explain.Steal) || len(r.Causes) < 2 ||
		r.Causes[1].Minor {
		return false
	}
	most := (1 + priced) * o.Stolen * o.Seconds
	return float64(first.LostNS)/1e9 <= most && first.PPS*r.Seconds <= most*o.Offered
}

// weigh compares the cost that explain reports, and the order of several causes.
func (o *Outcome) weigh() {
	if o.Why = o.Misranked; o.off() > priced {
		o.Why = fmt.Sprintf("its cost is said to be %.2f Mpps, not %.2f", o.Said/1e6, o.Cost()/1e6)
	}
	o.Passed = o.Why == ""
}

// textOf is all that a cause says.
func textOf(c *explain.Cause) string {
	parts := []string{c.Title, c.Why, c.FixNote, c.Fix}
	for _, f := range c.Evidence {
		parts = append(parts, f.Text)
	}
	return strings.Join(parts, "\n")
}

const answering = 5 * time.Second // that explain's answer may take besides its window

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
