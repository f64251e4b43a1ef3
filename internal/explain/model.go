// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

// Model compares what a worker did with what its core can do. Rates are packets/s. Expected is the sum of Delivered and
// the rates of all Parts; Forwarding and the shares of all Parts add up to 1.
type Model struct {
	PerPacket  float64 `json:"cycles_per_packet"` // TSC cycles in full batches, uninterrupted; 0: no packets
	Batch      float64 `json:"packets_per_loop"`  // of loops that brought packets
	Expected   float64 `json:"expected"`          // at 100 % of its CPU, in full batches
	Achieved   float64 `json:"achieved"`          // received
	Delivered  float64 `json:"delivered"`         // received and not dropped
	Forwarding float64 `json:"forwarding"`        // share of the window that Achieved would take in full batches
	Headroom   float64 `json:"headroom"`          // share of its own time that it could still use, 0 to 1
	Parts      []Part  `json:"parts"`

	own     float64 // cycles of the window that nothing took
	service float64 // Expected, or what the core usually can do
}

// Part of the difference.
type Part struct {
	Name  string  `json:"name"`
	Kind  Kind    `json:"kind,omitempty"`
	Share float64 `json:"share"` // of the window
	PPS   float64 `json:"packets_per_s"`
}

const (
	fullBatch    = 256  // most packets of one walk of the graph (RTE_GRAPH_BURST_SIZE)
	enoughLoops  = 1000 // empty loops that are needed to know what a poll costs
	mostStolen   = 0.5  // share of the window above which the loops' times say little about the work in them
	saturatedTop = 0.05 // headroom below which a worker has no time left
)

// modelOf returns the model of a worker that lost time to these causes. It scales their times down if they overlap so
// much that they exceed the window.
func modelOf(e *Evidence, w *Worker, causes []*Cause) Model {
	window := e.Seconds * w.HzTSC // cycles
	if window <= 0 {
		return Model{}
	}
	stolen := cyclesOf(causes, e, w, window)
	given := givenAway(causes, w) // of stolen: the worker had no packets meanwhile
	own := window - stolen
	busy, empty := 0.0, own
	if all := float64(w.BusyCycles) + max(0, float64(w.IdleCycles)-given); all > 0 {
		busy = own * float64(w.BusyCycles) / all // lost time fell on loops of both kinds alike
		empty = own - busy
	}
	// A few long gaps can all be in loops of one kind.
	if usual := w.usualCycles(); usual > 0 && stolen-given > mostStolen*window {
		busy = min(own, usual*float64(w.Packets))
		empty = own - busy
	}
	batches := batchCost(w, busy, empty)
	m := Model{own: own, Achieved: float64(w.Packets) / e.Seconds,
		Delivered: float64(w.Packets-min(w.Packets, w.Dropped)) / e.Seconds}
	if w.BusyLoops > 0 {
		m.Batch = float64(w.Packets) / float64(w.BusyLoops)
	}
	if own+given > 0 {
		m.Headroom = (empty + batches + given) / (own + given)
	}
	if w.Packets > 0 {
		m.PerPacket = (busy - batches) / float64(w.Packets)
	}
	m.Forwarding = (busy - batches) / window
	m.parts(e, w, causes, window, empty, batches)
	if m.service = m.Expected; m.service <= 0 && w.usualCycles() > 0 { // it had no time of its own
		m.service = w.HzTSC / w.usualCycles()
	}
	return m
}

func (m *Model) parts(e *Evidence, w *Worker, causes []*Cause, window, empty, batches float64) {
	rate := func(cycles float64) float64 {
		if m.PerPacket <= 0 {
			return 0
		}
		return cycles / m.PerPacket / e.Seconds
	}
	m.Expected = rate(window)
	for _, c := range causes {
		c.Share = float64(c.LostNS) / float64(e.ns())
		m.Parts = append(m.Parts, Part{partName(c), c.Kind, c.Share, rate(c.Share * window)})
	}
	m.Parts = append(m.Parts, smallBatches.partOf(batches/window, rate(batches)),
		nothing.partOf(empty/window, rate(empty)), drops.partOf(0, m.Achieved-m.Delivered))
}

func (r *row) partOf(share, pps float64) Part { return Part{r.part, r.kind, share, pps} }

// cyclesOf returns the cycles of all causes together, at most the window.
func cyclesOf(causes []*Cause, e *Evidence, w *Worker, window float64) float64 {
	sum := 0.0
	for _, c := range causes {
		sum += float64(c.LostNS) / 1e9 * w.HzTSC
	}
	if sum > window {
		for _, c := range causes {
			c.LostNS = int64(float64(c.LostNS) * window / sum)
		}
		return window
	}
	return sum
}

// givenAway returns the cycles for which the worker gave its CPU away by itself.
func givenAway(causes []*Cause, w *Worker) (cycles float64) {
	for _, c := range causes {
		if rowOf(c.Kind).voluntary {
			cycles += float64(c.LostNS) / 1e9 * w.HzTSC
		}
	}
	return cycles
}

// batchCost returns what loops of few packets cost more than full ones: the cost of an empty poll for each loop that
// full batches would not need.
func batchCost(w *Worker, busy, empty float64) float64 {
	more := float64(w.BusyLoops) - float64(w.Packets)/fullBatch
	if w.EmptyLoops < enoughLoops || w.BusyLoops == 0 || more <= 0 || w.sharesCPU() {
		return 0
	}
	poll := empty / float64(w.EmptyLoops)
	return min(poll, 0.9*busy/float64(w.BusyLoops)) * more
}

const (
	shownShare = 0.002 // share of the window: smaller parts cannot be seen
	shownParts = 10
)

// Shown returns the parts for readers: the largest ones, in their order, and the others as one.
func (m *Model) Shown() (out []Part) {
	rest := Part{Name: "others"}
	parts := slices.Clone(m.Parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Share, a.Share) })
	for _, p := range parts {
		switch {
		case p.Share != 0 && p.Share < shownShare || len(out) == shownParts:
			rest.Share, rest.PPS = rest.Share+p.Share, rest.PPS+p.PPS
		case p.Share > 0 || p.PPS >= 1:
			out = append(out, p)
		}
	}
	return append(out, rest)
}

func (m *Model) saturated() bool { return m.service > 0 && m.Headroom < saturatedTop }

// partName names a cause in the table of parts.
func partName(c *Cause) string {
	if c.Threads > 0 {
		return fmt.Sprintf("%s: %s, %d threads", c.Kind, c.Name, c.Threads)
	}
	if c.TID != 0 {
		return fmt.Sprintf("%s: %s (%d)", c.Kind, c.Name, c.TID)
	}
	return fmt.Sprintf("%s: %s", c.Kind, c.Name)
}
