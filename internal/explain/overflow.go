// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"slices"
)

// absence is a time in which a worker did not poll, or polled more slowly.
type absence struct {
	from, ns int64
	cause    *Cause
	left     float64 // share of its usual speed at which the worker polled meanwhile
}

// backlog models the receive ring of one worker as a queue: packets arrive at a constant rate, the worker serves them
// at the rate that its core can do, and what arrives while the ring is full is lost.
type backlog struct {
	ns       int64   // length of the window
	received float64 // packets/s that the worker received
	service  float64 // packets/s that it serves while it polls and nothing interrupts it
	ring     float64 // packets
	absences []absence
	// share of the time outside the absences that each cause took in pieces which were not recorded one by one
	slowed map[*Cause]float64
	slow   float64 // their sum
	away   float64 // share of the window that all causes took
}

// overflowsOf returns, by cause, the packets/s that arrived while a worker was away and found no room in its ring.
func overflowsOf(e *Evidence, w *Worker, m *Model, a *account) map[*Cause]float64 {
	b := backlog{ns: e.ns(), received: m.Achieved, service: m.service, ring: float64(ringOf(e, w)),
		slowed: map[*Cause]float64{}}
	if e.Trace != nil {
		b.recorded(e, w, a)
		b.estimated(slices.DeleteFunc(slices.Clone(a.causes), func(c *Cause) bool { return !rowOf(c.Kind).unseen }))
	} else {
		b.estimated(a.causes)
	}
	b.unrecorded(a.causes)
	return b.split(w, m)
}

// split returns what each cause lost. The rate of arrival is the one that the worker received before the window if it
// has no time left, or if the absences explain the difference to what it receives now; the difference is then the sum
// of the losses. Otherwise the rate follows from the absences alone. A worker without time left shows no such rate: it
// may be offered as much as in the last seconds that nothing disturbed, or as its core can do.
func (b *backlog) split(w *Worker, m *Model) map[*Cause]float64 {
	if w.idle() {
		return nil
	}
	alone := b.arrivals()
	before, known := w.arrivedBefore(alone)
	if known && before > b.received && before < mostApart*b.service && !b.refuted(w, before) {
		out, sum := b.lost(before)
		missing := before - b.received
		sum += b.elsewhere(out, before, missing-sum)
		if sum > 0 && (m.saturated() || b.roams() || explains(sum, missing, before*b.away)) {
			for c := range out {
				out[c] *= missing / sum
			}
			return out
		}
	}
	if m.saturated() {
		alone = max(b.received, b.service)
		if rate, ok := w.lastQuiet(); ok && rate > b.received { // otherwise more comes than before
			alone = min(alone, rate)
		}
	}
	out, _ := b.lost(alone)
	return out
}

// refuted says whether the worker would have received more at a rate of arrival. It gives its CPU away only after a
// poll that brought nothing, and receives afterwards what has arrived meanwhile, up to a full ring.
func (b *backlog) refuted(w *Worker, rate float64) bool {
	if w.Idle == "spin" || w.Idle == "pause" { // it waits for a device in a system call, with packets in its rings
		return false
	}
	found := 0.0
	for _, a := range b.absences {
		if rowOf(a.cause.Kind).voluntary {
			found += min(b.ring, rate*float64(a.ns)/1e9)
		}
	}
	return found > mostApart*float64(w.Packets+w.queued())
}

// elsewhere charges a worker's time on other CPUs with up to `most` of the packets/s that arrived meanwhile, and
// returns these: how fast it polls there is not known, only for how long it waited.
func (b *backlog) elsewhere(out map[*Cause]float64, rate, most float64) (sum float64) {
	for _, a := range b.absences {
		if c := a.cause; most > 0 && c.elsewhere > 0 {
			more := min(most, rate*float64(a.ns)/float64(b.ns))
			out[c], most, sum = out[c]+more, most-more, sum+more
		}
	}
	return sum
}

// roams says whether the worker was on other CPUs.
func (b *backlog) roams() bool {
	return slices.ContainsFunc(b.absences, func(a absence) bool { return a.cause.elsewhere > 0 })
}

// explains says whether the losses of the model can be what is missing. They are up to half of it, or double; or a
// quarter, if no more is missing than arrived while the worker was away: how much of a gap a ring holds is a small
// difference of large numbers. Otherwise the traffic has changed.
func explains(model, missing, away float64) bool {
	return model < missing*mostApart && (missing < model*mostApart || missing < min(away, model*mostApart*mostApart))
}

// mostApart is the factor by which the losses of the model may differ from the rate that is missing, and the rate
// before from what the core can do.
const mostApart = 2

// recorded adds the recorded absences, in order of time. The kernel records a limited number of gaps per second.
func (b *backlog) recorded(e *Evidence, w *Worker, a *account) {
	from := map[*Cause][]int64{}
	for i := range e.Trace.Gaps {
		g := &e.Trace.Gaps[i]
		if g.Worker != w.TID {
			continue
		}
		if c := a.causeOf(eventOfGap(g)); c != nil {
			left := 0.0
			if c.elsewhere > 0 { // it polled there, except while it waited
				left = 1 - float64(c.LostNS)/float64(c.elsewhere)
			}
			b.absences = append(b.absences, absence{g.From, g.NS, c, left})
			from[c] = append(from[c], g.From)
		}
	}
	if e.Trace.Lost > 0 {
		for c, known := range from {
			b.unseen(c, known)
		}
	}
	b.sort()
}

func (b *backlog) sort() {
	slices.SortFunc(b.absences, func(x, y absence) int { return cmp.Compare(x.from, y.from) })
}

// unseen adds the absences of a cause that were not recorded: as many as were counted, of equal length, spread over the
// parts of the window that have no recorded one.
func (b *backlog) unseen(c *Cause, known []int64) {
	rest := max(c.LostNS, c.elsewhere)
	for i := range b.absences {
		if b.absences[i].cause == c {
			rest -= b.absences[i].ns
		}
	}
	times := min(c.Times, mostEstimated)
	if rest <= 0 || times <= int64(len(known)) {
		return
	}
	has := map[int64]bool{}
	for _, from := range known {
		has[from*times/b.ns] = true
	}
	for i := range times {
		if !has[i] {
			b.absences = append(b.absences, absence{i * b.ns / times, rest / (times - int64(len(has))), c, 0})
		}
	}
}

// estimated adds absences if only counters are known: as many as were counted, of equal length, spread over the window.
func (b *backlog) estimated(causes []*Cause) {
	for _, c := range causes {
		n := min(max(1, c.Times), mostEstimated)
		for i := range n {
			b.absences = append(b.absences, absence{i * b.ns / n, c.LostNS / n, c, 0})
		}
	}
	b.sort()
}

// mostEstimated limits the absences of one cause. If there are more, each stands for several.
const mostEstimated = 500_000

// unrecorded computes how much the worker is slowed down by what is too short to be recorded one by one.
func (b *backlog) unrecorded(causes []*Cause) {
	known := map[*Cause]float64{}
	present := float64(b.ns)
	for _, a := range b.absences {
		known[a.cause] += float64(a.ns)
		present -= float64(a.ns)
	}
	for _, c := range causes {
		b.away += float64(c.LostNS) / float64(b.ns)
		if rest := float64(c.LostNS) - known[c]; rest > 0 && !rowOf(c.Kind).voluntary {
			b.slowed[c] = rest / max(present, rest)
			b.slow += b.slowed[c]
		}
	}
	b.slow = min(b.slow, 1)
}

// arrivals returns the packets/s that were sent to the worker: those that it received and those that found no room. A
// worker with time left cannot have been sent more than its core can do.
func (b *backlog) arrivals() float64 {
	low, high := b.received, max(b.received, b.service)
	for range 40 {
		middle := (low + high) / 2
		if _, lost := b.lost(middle); middle-lost < b.received {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// lost returns the packets/s that each cause loses at a rate of arrival, and their sum. What is lost because the rate
// is higher than the core can do has no cause here.
func (b *backlog) lost(rate float64) (out map[*Cause]float64, sum float64) {
	queued := 0.0
	for range 2 { // the first turn finds out how full the ring is when the window begins
		out = map[*Cause]float64{}
		end := int64(0)
		for _, a := range b.absences {
			queued = b.present(rate, queued, a.from-end, out)
			away := float64(max(0, a.from+a.ns-max(a.from, end))) / 1e9
			queued = max(0, queued+(rate-b.service*a.left)*away)
			if over := queued - b.ring; over > 0 {
				out[a.cause] += over
				queued = b.ring
			}
			end = max(end, a.from+a.ns)
		}
		queued = b.present(rate, queued, b.ns-end, out)
	}
	for c := range out {
		out[c] /= float64(b.ns) / 1e9
		sum += out[c]
	}
	return out, sum
}

// present lets the worker poll for ns, and returns how many packets are queued then. The ring overflows only if the
// worker is too slow for the rate: the causes that slow it down share what it could have served without them.
func (b *backlog) present(rate, queued float64, ns int64, out map[*Cause]float64) float64 {
	if ns <= 0 {
		return queued
	}
	queued += (rate - b.service*(1-b.slow)) * float64(ns) / 1e9
	over := queued - b.ring
	if over <= 0 {
		return max(0, queued)
	}
	over = min(over, b.service*b.slow*float64(ns)/1e9)
	for c, share := range b.slowed {
		out[c] += over * share / b.slow
	}
	return b.ring
}

// ringOf returns the size of the smallest ring that the worker polls.
func ringOf(e *Evidence, w *Worker) uint32 {
	ring := uint32(0)
	for _, q := range w.Queues {
		for _, p := range e.Ports {
			if p.Name == q.Port && p.RingSize > 0 && (ring == 0 || p.RingSize < ring) {
				ring = p.RingSize
			}
		}
	}
	return cmp.Or(ring, usualRing)
}
