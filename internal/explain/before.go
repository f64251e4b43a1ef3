// SPDX-License-Identifier: Apache-2.0
package explain

import "github.com/corelane/corelane/internal/stat"

// Past is what a worker did in an interval before the window.
type Past struct {
	Seconds                   float64
	Packets, Loops, BusyLoops uint64
	BusyCycles, IdleCycles    uint64
	WaitedNS                  int64 // ready to run while another thread had its CPU
}

func (p *Past) rate() float64 { return float64(p.Packets) / p.Seconds }

const (
	quietShare = 0.03 // of an interval, for which a worker may wait: more disturbs it
	steadyRate = 0.05 // by which the rates of two intervals differ if the traffic is steady
)

// quiet says whether nothing took the worker's CPU in the interval.
func (p *Past) quiet() bool { return p.Seconds > 0 && float64(p.WaitedNS) < quietShare*p.Seconds*1e9 }

// arrivedBefore returns the packets/s that came in when the worker was last undisturbed and the traffic was steady; of
// these rates the one that is next to near. False: it is not known.
func (w *Worker) arrivedBefore(near float64) (rate float64, known bool) {
	var low, high float64
	n := 0
	for i := len(w.Past) - 1; i >= 0 && n < enoughPast; i-- {
		p := &w.Past[i]
		switch r := p.rate(); {
		case !p.quiet():
		case n > 0 && r >= high*(1-steadyRate) && r <= low*(1+steadyRate):
			low, high, n = min(low, r), max(high, r), n+1
		case n >= leastPast:
			return min(max(near, low), high), true
		default: // the traffic changed in the interval before
			low, high, n = r, r, 1
		}
	}
	return min(max(near, low), high), n >= leastPast
}

// lastQuiet returns the packets/s of the last undisturbed interval, however the traffic changed; false: none is known.
func (w *Worker) lastQuiet() (rate float64, known bool) {
	for i := len(w.Past) - 1; i >= max(0, len(w.Past)-enoughPast); i-- {
		if p := &w.Past[i]; p.quiet() {
			return p.rate(), true
		}
	}
	return 0, false
}

// Intervals that tell a steady rate.
const (
	leastPast  = 2
	enoughPast = 10
)

// usualCycles returns what a packet costs in full batches when nothing disturbs the worker: a quarter of the quiet
// intervals had less. If packets now visit other nodes than before, it is what that costs. 0: not known.
func (w *Worker) usualCycles() float64 {
	var costs []float64
	for i := range w.Past {
		if p := &w.Past[i]; p.quiet() && p.Packets >= leastLoad {
			costs = append(costs, p.perPacket(w.Idle))
		}
	}
	if len(costs) < leastPast {
		return w.Usual * w.mix()
	}
	return stat.Percentile(costs, 0.25) * w.mix()
}

// mix compares the nodes that a packet visits now with those before the window: how many times the cycles it needs, at
// what each node cost before. 1: the same, or not known.
func (w *Worker) mix() float64 {
	now, before := 0.0, 0.0
	for _, n := range w.Nodes {
		cost := 0.0
		if n.PastPackets > 0 {
			cost = float64(n.PastCycles) / float64(n.PastPackets)
		} else if n.Packets > 0 {
			cost = float64(n.Cycles) / float64(n.Packets)
		}
		now += cost * float64(n.Packets)
		before += cost * float64(n.PastPackets)
	}
	if now == 0 || before == 0 || float64(w.Packets) < leastLoad || float64(w.PastPackets) < leastLoad {
		return 1
	}
	return now / float64(w.Packets) * float64(w.PastPackets) / before
}

// perPacket returns the cycles per packet in full batches.
func (p *Past) perPacket(idle string) float64 {
	w := Worker{Idle: idle, Packets: p.Packets, BusyLoops: p.BusyLoops, EmptyLoops: p.Loops - min(p.Loops, p.BusyLoops)}
	return (float64(p.BusyCycles) - batchCost(&w, float64(p.BusyCycles), float64(p.IdleCycles))) / float64(p.Packets)
}
