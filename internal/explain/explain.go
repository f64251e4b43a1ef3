// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"slices"
)

// scene is what a cause is described from. w and m are nil if it does not belong to one worker.
type scene struct {
	e *Evidence
	w *Worker
	m *Model
}

// findings are the results so far: the causes of lost time come first, then those that lost packets in other ways.
type findings struct {
	e      *Evidence
	models map[int]*Model
	causes []Cause // so far

	overloaded, silent, ended bool // what the earlier answers found
}

// Explain decides from evidence alone what held each worker back, and what that cost.
func Explain(e Evidence) *Report {
	r := &Report{Started: e.Started, Seconds: e.Seconds, Tracing: e.Trace != nil, Daemon: e.Daemon,
		Hostname: e.Host.Hostname}
	f := findings{e: &e, models: map[int]*Model{}}
	for i := range e.Workers {
		r.Workers = append(r.Workers, f.worker(&e.Workers[i]))
	}
	for i := range rows {
		f.packets(&rows[i])
	}
	rank(f.causes)
	var answers []Cause
	for i := range rows {
		if rows[i].answers != nil {
			for _, c := range rows[i].answers(&f) {
				f.describe(&c)
				answers = append(answers, c)
			}
		}
	}
	r.Causes = append(answers, f.causes...)
	r.Unobserved = unobserved(&e)
	verdicts(&e, r)
	return r
}

// worker adds the causes of the time that a worker lost.
func (f *findings) worker(w *Worker) WorkerReport {
	a := accountOf(f.e, w)
	m := modelOf(f.e, w, a.causes)
	for i := range rows {
		if rows[i].slower != nil && rows[i].slower(a, &m) {
			m = modelOf(f.e, w, a.causes)
		}
	}
	f.models[w.ID] = &m
	overflows := overflowsOf(f.e, w, &m, a)
	for _, c := range a.causes {
		c.Grade = gradeOf(f.e, c)
		c.fact(c.Grade, "%s", timesText(c))
		judge(&scene{f.e, w, &m}, c, overflows[c])
	}
	for i := range rows {
		if rows[i].together == nil {
			continue
		}
		if c, ok := rows[i].together(f.e, w, a.causes); ok {
			a.causes = append(a.causes, &c)
		}
	}
	chargeOthers(a.causes)
	for _, c := range a.causes {
		f.describe(c)
		f.causes = append(f.causes, *c)
	}
	return WorkerReport{ID: w.ID, Label: w.label(), Thread: w.Thread, TID: w.TID, CPU: w.CPU, Model: m,
		Gaps: gapsOf(f.e, w), Nodes: nodesOf(w)}
}

// packets adds the causes of one kind that lost packets.
func (f *findings) packets(r *row) {
	if r.losses == nil {
		return
	}
	for _, c := range r.losses(f) {
		c.Kind, c.PPS = r.kind, float64(c.Times)/f.e.Seconds
		c.Minor = float64(c.Times) < r.limits.loss*float64(c.of) || c.PPS < r.limits.lossRate
		c.Grade = Counted
		f.describe(&c)
		f.causes = append(f.causes, c)
	}
}

// describe fills in the title, reason and evidence of a cause, and its remedy.
func (f *findings) describe(c *Cause) {
	s := scene{e: f.e}
	if i := slices.IndexFunc(f.e.Workers, func(w Worker) bool { return w.ID == c.Worker }); i >= 0 {
		s.w, s.m = &f.e.Workers[i], f.models[c.Worker]
	}
	r := rowOf(c.Kind)
	r.describe(&s, c)
	if r.remedy != nil {
		r.remedy(&s, c)
	}
	if c.Fix == "" && c.FixNote == "" {
		c.FixNote = r.noRemedy
	}
}

// rank sorts causes: those that matter first, by packets, then by time.
func rank(causes []Cause) {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		minor := func(c Cause) int {
			if c.Minor {
				return 1
			}
			return 0
		}
		return cmp.Or(minor(a)-minor(b), cmp.Compare(b.weight(), a.weight()), cmp.Compare(b.LostNS, a.LostNS),
			cmp.Compare(a.Worker, b.Worker),
			cmp.Compare(a.Name, b.Name))
	})
}

// weight ranks a cause, packets/s: what it cost, or what could be processed without it.
func (c *Cause) weight() float64 { return max(c.PPS, c.Recoverable) }

const (
	minorShare = 0.02       // share of a worker's time
	longGap    = 10_000_000 // ns at once that matter even if no packets came
	minorLoss  = 0.005      // share of the packets
	minorRate  = 1          // packets/s: a router without traffic loses single packets without a cause that matters
	usualRing  = 1024       // packets, if a device does not report the size of its ring
)

// judge decides whether a cause of lost time matters. It cost what found no room in the worker's rings (overflow,
// packets/s).
func judge(s *scene, c *Cause, overflow float64) {
	c.Share = float64(c.LostNS) / float64(max(1, s.e.ns()))
	c.PPS = overflow
	l := rowOf(c.Kind).limits
	lossy := !s.m.saturated() && overflow > 0 && overflow > minorLoss*s.m.Achieved
	if l.minor != nil {
		c.Minor = l.minor(s, c, lossy)
		return
	}
	long := c.Longest >= longGap && !s.m.saturated()
	if l.longest > 0 {
		long = c.Longest >= l.longest
	}
	c.often = oftenIn(s.e, c)
	c.Minor = c.Share < cmp.Or(l.share, minorShare) && !lossy && !long && !c.often
}

// chargeOthers charges the causes that matter with the packets of those that do not, unless these matter together.
// Without the former, the worker would have had time for the latter.
func chargeOthers(causes []*Cause) {
	minor, others := 0.0, 0.0
	for _, c := range causes {
		switch {
		case rowOf(c.Kind).together != nil:
			return
		case c.Minor:
			minor += c.PPS
		default:
			others += c.PPS
		}
	}
	if others == 0 {
		return
	}
	for _, c := range causes {
		if c.PPS *= 1 + minor/others; c.Minor {
			c.PPS = 0
		}
	}
}

// nodesOf returns the nodes of a worker, the most expensive first.
func nodesOf(w *Worker) (out []NodeCost) {
	all := uint64(0)
	for _, n := range w.Nodes {
		all += n.Cycles
	}
	for _, n := range w.Nodes {
		if n.Calls == 0 {
			continue
		}
		c := NodeCost{Name: n.Name, Packets: n.Packets, Share: float64(n.Cycles) / float64(max(1, all))}
		if n.Packets > 0 {
			c.Cycles = float64(n.Cycles) / float64(n.Packets)
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b NodeCost) int { return cmp.Compare(b.Share, a.Share) })
	return out
}
