// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"context"
	"errors"
	"fmt"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
)

// growth is the factor from one rate to the next while all trials pass.
const growth = 1.25

var errBudget = errors.New("no trials left")

// Search finds the highest rate at which not more than a share of the frames is lost: a binary search with loss
// verification (ETSI GS NFV-TST 009, 12.3.3) that begins at `rate` and goes above it when that passes. The result has
// what was found, also when an error ends the search.
func (m *Meter) Search(ctx context.Context, lossRatio, rate float64) (*result.Search, error) {
	s := &search{Meter: m, Search: result.Search{LossRatio: lossRatio, Trials: []result.Trial{}}, began: rate}
	var err error
	for ; err == nil && s.high == 0; rate *= growth {
		err = s.step(ctx, rate)
	}
	return s.narrow(ctx, err)
}

// Stricter searches with a smaller allowed loss. It uses the trials of the looser search.
func (m *Meter) Stricter(ctx context.Context, lossRatio float64, looser *result.Search) (*result.Search, error) {
	s := &search{Meter: m, Search: result.Search{LossRatio: lossRatio, Trials: []result.Trial{},
		Limited: looser.Limited}, began: looser.Rate, high: looser.Rate}
	failed := looser.Rate * growth
	for _, t := range looser.Trials {
		switch {
		case t.Rate > looser.Rate:
			failed = min(failed, t.Rate)
		case t.Passed && float64(t.Lost) <= lossRatio*float64(t.Sent) && t.Rate >= s.Rate:
			s.Rate, s.Trials = t.Rate, []result.Trial{t}
		}
	}
	if s.Rate == looser.Rate {
		s.high = failed
	} else {
		s.Limited = ""
	}
	return s.narrow(ctx, nil)
}

// Raise sets the rate of a search to the rate of a stricter search if that is higher, which happens when the first
// search was disturbed.
func Raise(looser, stricter *result.Search) {
	for _, t := range stricter.Trials {
		if t.Passed && t.Rate > looser.Rate {
			looser.Rate = t.Rate
			looser.Trials = append(looser.Trials, t)
		}
	}
}

// search is a search in progress: the answer is between Rate, which passed, and high, which did not.
type search struct {
	*Meter
	result.Search
	high  float64
	began float64
}

// narrow closes the bracket, or says why that was not possible.
func (s *search) narrow(ctx context.Context, err error) (*result.Search, error) {
	for err == nil && s.wide() {
		err = s.step(ctx, (s.Rate+s.high)/2)
	}
	switch {
	case errors.Is(err, errBudget):
		err = nil
		s.Limited = fmt.Sprintf("stopped after %d trials: between %.3f and %.3f Mpps", len(s.Trials), s.Rate/1e6,
			s.high/1e6)
	case err != nil:
		s.Limited = fmt.Sprintf("not finished: at least %.3f Mpps", s.Rate/1e6)
	}
	return &s.Search, err
}

// wide says whether the bracket is wider than the resolution. The search gives up below 1 % of the rate at which it
// began.
func (s *search) wide() bool {
	return s.high-s.Rate > s.Resolution*s.high && s.high > s.began/100
}

// step tries one rate and narrows the bracket.
func (s *search) step(ctx context.Context, rate float64) error {
	a := attempt{Meter: s.Meter, lossRatio: s.LossRatio, left: s.Budget - len(s.Trials)}
	v, err := a.run(ctx, rate, &apiv1.GeneratorTrial{DurationMs: milliseconds(s.TrialTime), PacketsPerSecond: rate})
	s.Trials = append(s.Trials, a.trials...)
	if s.high == 0 && v != passed {
		s.high = rate
	}
	switch {
	case err != nil:
		return err
	case v == passed:
		s.Rate = rate
	case v == slow:
		s.high = rate
		s.Limited = fmt.Sprintf("the generator did not keep %.3f Mpps: %s", rate/1e6, a.trials[len(a.trials)-1].Why)
	default:
		s.high, s.Limited = rate, ""
	}
	return nil
}

// attempt tests one rate or burst with as many trials as the answer takes.
type attempt struct {
	*Meter
	lossRatio float64
	left      int
	trials    []result.Trial
}

// maxVoid is how many void trials of a rate end the search: the machine is too disturbed.
const maxVoid = 10

// run repeats a trial until it passes once, its loss is verified, or the generator turns out to be too slow.
func (a *attempt) run(ctx context.Context, rate float64, spec *apiv1.GeneratorTrial) (verdict, error) {
	for seen := map[verdict]int{}; ; {
		if len(a.trials) >= a.left {
			return lossy, errBudget
		}
		o, err := a.Trial(ctx, spec)
		if err != nil {
			return lossy, err
		}
		v := judge(o.Total, a.lossRatio)
		a.trials = append(a.trials, asTrial(rate, o, v, len(a.trials) > 0))
		seen[v]++
		switch {
		case v == passed, seen[v] > a.Repeats && v != void:
			return v, nil
		case seen[void] >= maxVoid:
			return slow, nil
		}
	}
}
