// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"
)

// Causes that lose packets while the workers have their CPUs.

// portCauses are ports whose other end does not take packets.
func portCauses(e *Evidence) (out []Cause) {
	refused := uint64(0)
	for _, p := range e.Ports {
		refused += p.Drops["port_tx_full"]
	}
	if refused == 0 {
		return nil
	}
	for _, p := range e.Ports {
		if p.TxRefused == 0 {
			continue
		}
		share := float64(p.TxRefused) / float64(p.TxRefused+p.TxPackets)
		c := Cause{Kind: ReaderStopped, Worker: -1, CPU: -1, Name: p.Name, Port: p.Name, Times: int64(p.TxRefused), PPS: float64(p.TxRefused) / e.Seconds,
			Grade: Counted, Minor: share < minorLoss}
		c.Title = fmt.Sprintf("the reader of port %s takes no packets", p.Name)
		if p.TxPackets > 0 {
			c.Title = fmt.Sprintf("the reader of port %s takes only %.1f %% of its packets", p.Name, 100*(1-share))
		}
		c.fact(Counted, "port %s (%s %s) refused %d packets and took %d", p.Name, p.Device, p.Peer, p.TxRefused, p.TxPackets)
		c.fact(Counted, "the router dropped %d packets with reason port_tx_full", refused)
		describeReader(e, &p, &c)
		out = append(out, c)
	}
	return out
}

func describeReader(e *Evidence, p *Port, c *Cause) {
	c.Why = "its guest or program is stopped, or slower than what comes"
	c.FixNote = "look at the guest or the program behind " + p.Peer
	for _, t := range e.Host.Readers[p.Name] {
		c.fact(Counted, "%s (%d) has its other end, in state %s", t.Name, t.PID, t.State)
		c.PID, c.TID = t.PID, t.TID
		if len(t.State) > 0 && (t.State[0] == 'T' || t.State[0] == 't') {
			c.Why = fmt.Sprintf("%s (%d) is stopped", t.Name, t.PID)
			c.Fix, c.FixNote = fmt.Sprintf("kill -CONT %d", t.PID), ""
		}
	}
}

// ringCauses are rings that overflow while the workers that empty them have time: bursts, or times in which they were away.
func ringCauses(e *Evidence, models map[int]*Model, found []Cause) (out []Cause) {
	away := func(worker int) bool { // then that is the cause, and the overflow its effect
		return slices.ContainsFunc(found, func(c Cause) bool { return c.Worker == worker && !c.Minor && c.LostNS > 0 })
	}
	for _, r := range e.Rings {
		m := models[r.To]
		if r.Refused == 0 || m == nil || m.saturated() || away(r.To) {
			continue
		}
		c := Cause{Kind: RingOverflow, Worker: r.To, CPU: -1, Name: fmt.Sprintf("ring %d to %d", r.From, r.To), Times: int64(r.Refused), Grade: Counted,
			PPS: float64(r.Refused) / e.Seconds, Title: fmt.Sprintf("the ring from worker %d to worker %d overflowed, though worker %d has %.0f %% of its time left",
				r.From, r.To, r.To, 100*m.Headroom)}
		c.Minor = float64(r.Refused) < minorLoss*float64(r.Refused+r.Packets)
		c.Why = fmt.Sprintf("bursts are longer than its %d slots", r.Size)
		c.fact(Counted, "%d packets found no room, %d did; up to %d were in it", r.Refused, r.Packets, r.High)
		c.Fix = fmt.Sprintf("corelane worker set %d --ring-size %d", r.To, min(4*r.Size, 4194304))
		out = append(out, c)
	}
	for _, p := range e.Ports {
		if c, ok := deviceRing(e, &p, models, away); ok {
			out = append(out, c)
		}
	}
	return out
}

// deviceRing of a port that missed packets though those who poll it have time.
func deviceRing(e *Evidence, p *Port, models map[int]*Model, away func(int) bool) (Cause, bool) {
	if p.RxMissed == 0 {
		return Cause{}, false
	}
	headroom, worker := 1.0, -1
	for _, w := range e.Workers {
		if slices.ContainsFunc(w.Queues, func(q Queue) bool { return q.Port == p.Name }) && models[w.ID].Headroom <= headroom {
			headroom, worker = models[w.ID].Headroom, w.ID
		}
	}
	if headroom < saturatedTop || away(worker) {
		return Cause{}, false
	}
	c := Cause{Kind: RingOverflow, Worker: worker, CPU: -1, Name: p.Name, Port: p.Name, Times: int64(p.RxMissed),
		PPS: float64(p.RxMissed) / e.Seconds, Grade: Counted}
	c.Minor = float64(p.RxMissed) < minorLoss*float64(p.RxMissed+p.RxPackets)
	c.Title = fmt.Sprintf("the receive ring of port %s overflowed, though worker %d has %.0f %% of its time left", p.Name, worker, 100*headroom)
	c.Why = "bursts are longer than the ring"
	if p.RingSize > 0 {
		c.Why += fmt.Sprintf(" of %d", p.RingSize)
	}
	c.fact(Counted, "the device had no room for %d packets and gave %d", p.RxMissed, p.RxPackets)
	c.FixNote = "a longer ring: ring_size of the port (it has to be made anew), or of what sends to it"
	return c, true
}

const (
	hotTimes  = 2.0 // of the mean of the others
	coldSpare = 0.3 // headroom of those that could help
)

// skew: one worker has no time left while others have.
func skew(e *Evidence, models map[int]*Model) (out []Cause) {
	for _, w := range e.Workers {
		m := models[w.ID]
		others, spare, n := 0.0, 0.0, 0
		for _, o := range e.Workers {
			if o.ID != w.ID && o.Role == w.Role {
				others, spare, n = others+models[o.ID].Achieved, spare+models[o.ID].Headroom, n+1
			}
		}
		if n == 0 || m.Headroom > 0.1 || m.Achieved < hotTimes*others/float64(n) || spare/float64(n) < coldSpare {
			continue
		}
		out = append(out, skewCause(e, &w, m, others/float64(n), spare/float64(n)))
	}
	return out
}

func skewCause(e *Evidence, w *Worker, m *Model, mean, spare float64) Cause {
	c := Cause{Kind: Skew, Worker: w.ID, CPU: w.CPU, Name: w.Thread, Grade: Counted, PPS: float64(w.RxMissed) / e.Seconds, Could: (m.Achieved - mean) * spare}
	c.Title = fmt.Sprintf("worker %d has no time left, while the others have %.0f %% of theirs", w.ID, 100*spare)
	c.fact(Counted, "it moves %s packets/s, the others %s on average", packets(m.Achieved), packets(mean))
	c.fact(Inferred, "the others have time for %s packets/s more; how many of them come is known to those who send them", packets(c.Could))
	hot := slices.MaxFunc(append([]Queue{{}}, w.Queues...), func(a, b Queue) int { return cmp.Compare(a.Packets, b.Packets) })
	if hot.Port != "" {
		c.Name, c.Port = fmt.Sprintf("port %s queue %d", hot.Port, hot.Index), hot.Port
		c.fact(Counted, "queue %d of port %s brings %s packets/s of them", hot.Index, hot.Port, packets(float64(hot.Packets)/e.Seconds))
	}
	c.Why = "queues, or the flows in them, are not spread evenly over the workers"
	c.Fix = "corelane worker rebalance"
	if len(w.Queues) == 1 && hot.Port != "" {
		c.Why = "one queue has most of the packets: a queue belongs to one worker"
		c.Fix = fmt.Sprintf("corelane port set %s --mode hybrid", hot.Port)
		c.FixNote = "spreads its packets over all workers by their flows"
	}
	return c
}

// dropCauses are reasons of drops that have nothing to do with time.
func dropCauses(e *Evidence) (out []Cause) {
	sums, all := map[string]uint64{}, uint64(0)
	for _, p := range e.Ports {
		all += p.RxPackets
		for reason, n := range p.Drops {
			if reason != "port_tx_full" && reason != "worker_ring_full" {
				sums[reason] += n
			}
		}
	}
	for reason, n := range sums {
		c := Cause{Kind: Drops, Worker: -1, CPU: -1, Name: reason, Times: int64(n), PPS: float64(n) / e.Seconds, Grade: Counted, Minor: true,
			Title: fmt.Sprintf("the router dropped packets: %s", reason), FixNote: "corelane drops --by-port says what it means"}
		c.fact(Counted, "%d packets, %.3f %% of what came in", n, 100*float64(n)/float64(max(1, all)))
		c.Minor = float64(n) < 0.01*float64(all)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Cause) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// packets is a rate for people.
func packets(pps float64) string {
	switch {
	case pps >= 1e6:
		return fmt.Sprintf("%.2f M", pps/1e6)
	case pps >= 1e3:
		return fmt.Sprintf("%.1f k", pps/1e3)
	}
	return fmt.Sprintf("%.0f", pps)
}
