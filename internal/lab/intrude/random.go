// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain"
)

// Random runs cases whose disturbances, strength, timing and load are drawn, for a time, and calls each with every
// outcome. The same seed draws the same cases.
func Random(ctx context.Context, o Options, seed uint64, d time.Duration, each func(Outcome)) error {
	if err := o.prepare(); err != nil {
		return err
	}
	o.Repetitions = 1
	for round, end := uint64(0), time.Now().Add(d); round == 0 || time.Now().Before(end); round++ {
		c := draw(rand.New(rand.NewPCG(seed, round)), o.Window)
		o.say("%s", c.Summary)
		if err := o.matrixCase(ctx, c, each); ctx.Err() != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		} else if err != nil { // it counts as not found
			each(Outcome{Case: c.Name, Expected: c.Kinds, Why: err.Error(), Misranked: err.Error()})
		}
	}
	return nil
}

const (
	leastDrawn, mostDrawn = 0.3, 0.85 // of the worker's capacity
	lateShare             = 0.3       // of the disturbances begin within the window of explain
	severalShare          = 0.5       // of the cases have more than one disturbance
)

// draw draws a case of one to three disturbances of different kinds.
func draw(r *rand.Rand, window time.Duration) Case {
	n := 1
	for n < 3 && r.Float64() < severalShare {
		n++
	}
	c := Case{Name: "random", Load: leastDrawn + (mostDrawn-leastDrawn)*r.Float64(), unfixed: "remedies are not run"}
	var texts []string
	for _, k := range r.Perm(len(pool))[:n] {
		p, text := pool[k](r)
		if r.Float64() < lateShare {
			p.late = time.Duration(r.Float64() * float64(window) / 2).Round(time.Millisecond)
			text = fmt.Sprintf("%s, %v later", text, p.late)
		}
		c.parts, texts = append(c.parts, p), append(texts, text)
	}
	c.Summary = fmt.Sprintf("%s at %.0f %% load", strings.Join(texts, "; "), 100*c.Load)
	c.inject = together(c.parts)
	// disturbances that cost nothing may be anything; those that do have to be found and ranked. A hypervisor may
	// disturb at any time.
	c.Kinds = append(kindsOf(c.parts), explain.Nothing, explain.ManySmall, explain.Steal)
	return c
}

// between draws a number.
func between(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }

// pool are the disturbances that can be drawn, one of each kind, and their texts.
var pool = []func(*rand.Rand) (part, string){
	func(r *rand.Rand) (part, string) {
		busy, rest := between(r, 1, 40), between(r, 1, 80)
		return part{kind: explain.ForeignThread, inject: func(_ context.Context, b *loadedVictim) (*injection, error) {
			i, err := b.intrude(b.Dir, "", []int{b.WorkerCPU}, "hog", ms(busy), ms(rest))
			if err != nil {
				return nil, err
			}
			return &injection{undo: i.Stop}, nil
		}}, fmt.Sprintf("a thread that is busy for %d ms and rests for %d", busy, rest)
	},
	func(r *rand.Rand) (part, string) {
		stop, period := between(r, 5, 100), between(r, 300, 1500)
		return part{kind: explain.Stopped, inject: func(_ context.Context, b *loadedVictim) (*injection, error) {
			return &injection{undo: stopEvery(b.PID(), milliseconds(stop), milliseconds(period))}, nil
		}}, fmt.Sprintf("SIGSTOP for %d ms each %d ms", stop, period)
	},
	func(r *rand.Rand) (part, string) {
		percent := between(r, 20, 90)
		return part{kind: explain.CgroupQuota, inject: quotaOf(percent)},
			fmt.Sprintf("a quota of %d %% of a CPU", percent)
	},
	func(*rand.Rand) (part, string) {
		return part{kind: explain.Softirq, inject: injectSoftirq}, "a flood of kernel traffic"
	},
	func(r *rand.Rand) (part, string) {
		n := uint32(between(r, 20, 400) * 1000)
		return part{kind: explain.TLBShootdown, inject: func(ctx context.Context, b *loadedVictim) (*injection, error) {
			return disturb(ctx, b, apiv1.Disturbance_DISTURBANCE_SHOOTDOWNS, n)
		}}, fmt.Sprintf("%d changes of mappings a second", n)
	},
	func(r *rand.Rand) (part, string) {
		hz := between(r, 5000, 30000)
		script := fmt.Sprintf("exec perf record -q -a -F %d --synth=no -o $DIR/perf.data", hz)
		return part{kind: explain.TimerTick, inject: samples(script, "perf")},
			fmt.Sprintf("perf, %d samples a second", hz)
	},
	func(r *rand.Rand) (part, string) {
		period := between(r, 300, 2000)
		script := fmt.Sprintf("while :; do taskset -pc 0 $TID; sleep %d.%03d; done", period/1000, period%1000)
		return part{kind: explain.Moved, inject: runs(false, script, "taskset")},
			fmt.Sprintf("taskset each %d ms", period)
	},
	func(r *rand.Rand) (part, string) {
		us := uint32(between(r, 1, 20))
		return part{kind: explain.Delay, inject: delayOf(us)}, fmt.Sprintf("a delay of %d us in each loop", us)
	},
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func ms(n int) string { return milliseconds(n).String() }

// Score says how much of what was done was said.
func Score(all []Outcome) string {
	n, first, ranked, costs, right := 0, 0, 0, 0, 0
	for i := range all {
		o := &all[i]
		if o.Skipped != "" {
			continue
		}
		n++
		first += one(o.First)
		ranked += one(o.Misranked == "")
		if o.Offered > 0 && o.Cost() >= cheap*o.Offered {
			costs++
			right += one(o.off() <= priced)
		}
	}
	half, _ := HalfOff(all)
	return fmt.Sprintf("%d cases: a true cause came first in %s; all that cost more than %.0f %% were found, in "+
		"their order, in %s; %s costs were within %.0f %%, and the median was off by %.0f %%", n, of(first, n),
		100*cheap, of(ranked, n), of(right, costs), 100*priced, 100*half)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func of(n, all int) string { return strconv.Itoa(n) + " of " + strconv.Itoa(all) }
