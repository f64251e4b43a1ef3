// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"
	"strings"
)

const fewStolen = 0.1 // of a worker's time: with less, more input would find no time even if nobody took any

// conclusions are the answers that blame nobody: more is offered than a core can do, or nothing is wrong. They come first.
func conclusions(e *Evidence, models map[int]*Model, found []Cause) (out []Cause) {
	for i := range e.Workers {
		w := &e.Workers[i]
		stolen, other := 0.0, false
		for _, c := range found {
			if c.Worker == w.ID {
				stolen, other = stolen+c.Share, other || c.Kind == Skew || c.often
			}
			other = other || c.Kind == ReaderStopped && c.PPS > fewStolen*models[w.ID].Achieved
		}
		if models[w.ID].saturated() && stolen < fewStolen && !other {
			out = append(out, overload(e, w, models[w.ID]))
		}
	}
	if len(out) == 0 && !slices.ContainsFunc(found, func(c Cause) bool { return !c.Minor }) {
		out = append(out, nothing(e, models))
	}
	return out
}

func overload(e *Evidence, w *Worker, m *Model) Cause {
	c := Cause{Kind: Overload, Worker: w.ID, CPU: w.CPU, Name: w.Thread, Grade: Counted, PPS: float64(w.RxMissed) / e.Seconds}
	c.Title = fmt.Sprintf("worker %d is offered more than its core can do: %s packets/s at %.0f cycles each", w.ID, packets(m.Achieved), m.PerPacket)
	c.Why = fmt.Sprintf("it had packets in all but %.1f %% of its time, %.0f at once, and nobody took its CPU", 100*m.Headroom, m.Batch)
	if w.RxMissed > 0 {
		c.fact(Counted, "devices had no room for %s packets/s more", packets(float64(w.RxMissed)/e.Seconds))
	}
	for _, q := range w.Queues {
		if q.Known && q.Depth > 0 {
			c.fact(Counted, "%d packets wait in queue %d of port %s", q.Depth, q.Index, q.Port)
		}
	}
	if nodes := nodesOf(w); len(nodes) > 0 {
		c.fact(Counted, "most expensive: %s with %.0f %% of its time", nodes[0].Name, 100*nodes[0].Share)
	}
	c.fact(Counted, "%s packets/s is what this core can do: %.0f %% of it are reached", packets(m.Expected), 100*m.Achieved/max(1, m.Expected))
	c.Fix = "corelane worker add --cpu " + firstOf(e.Host.Housekeeping)
	c.FixNote = "another worker on a CPU of its own that nothing else needs, with queues to poll, or ports in hybrid mode; or less work per packet:"
	return c
}

func nothing(e *Evidence, models map[int]*Model) Cause {
	if len(e.Workers) == 0 {
		return Cause{Kind: Nothing, Worker: -1, CPU: -1, Name: "the input", Grade: Counted, Title: "the daemon has no worker",
			Evidence: []Fact{{Counted, "no worker was there all the time"}}, Fix: "corelane worker add"}
	}
	c := Cause{Kind: Nothing, Worker: -1, CPU: -1, Name: "the input", Grade: Counted}
	if e.Trace != nil {
		c.Grade = Seen
	}
	c.Title = "nothing is wrong: the input is the limit"
	sum, headroom := 0.0, 1.0
	for _, m := range models {
		sum += m.Achieved
		headroom = min(headroom, m.Headroom)
	}
	if e.Workers[0].Plain {
		c.Title = "nothing is wrong: nobody took the CPU"
		c.fact(c.Grade, "what took time of the threads was too little to matter")
	} else {
		c.fact(Counted, "%s packets/s came and all workers had time left, the busiest %.0f %%", packets(sum), 100*headroom)
	}
	if e.Trace == nil {
		c.fact(Inferred, "short interruptions would not have been seen")
	}
	return c
}

// unseen is what nobody looked at, or what could not be told.
func unseen(e *Evidence) (out []string) {
	if e.Trace == nil {
		out = append(out, "who ran on the workers' CPUs, each time: "+e.NoTrace+". The evidence is weaker: the kernel's counters say how long workers waited, "+
			"not for whom; run as root (CAP_BPF and CAP_PERFMON) on a kernel with BTF")
	} else {
		for _, m := range e.Trace.Missing {
			out = append(out, "events of the kernel: "+m)
		}
		if e.Trace.Lost > 0 {
			out = append(out, fmt.Sprintf("%d gaps one by one; their time is counted", e.Trace.Lost))
		}
	}
	out = append(out, e.Host.Unread...)
	for _, p := range e.Ports {
		if p.Device == "memif" || p.Device == "vhost" || p.Device == "tap" {
			out = append(out, "what found no room in rings that guests and programs fill: they count that themselves (memif, vhost, tap)")
			break
		}
	}
	return out
}

// verdicts for the machine and for each worker, one sentence each.
func verdicts(e *Evidence, r *Report) {
	for i := range r.Workers {
		w := &r.Workers[i]
		if e.Workers[i].Plain {
			w.Verdict = "its packets are not known"
		} else {
			w.Verdict = packets(w.Model.Achieved) + " packets/s"
		}
		if w.Model.Expected > 0 {
			w.Verdict += fmt.Sprintf(", %.0f %% of what its core can do", 100*w.Model.Achieved/w.Model.Expected)
		}
		if k := slices.IndexFunc(r.Causes, func(c Cause) bool { return c.Worker == w.ID && !c.Minor }); k >= 0 {
			w.Verdict += "; " + r.Causes[k].Title
		}
	}
	if len(r.Causes) > 0 {
		r.Verdict = verdict(&r.Causes[0])
	}
}

func verdict(c *Cause) string {
	if cost := c.cost(); cost != "" {
		return c.Title + " (" + cost + ")"
	}
	return c.Title
}

// cost in words, empty: none.
func (c *Cause) cost() string {
	var parts []string
	if c.LostNS > 0 {
		parts = append(parts, fmt.Sprintf("%.1f %% of its time", 100*c.Share))
	}
	if c.PPS >= 1 {
		parts = append(parts, packets(c.PPS)+" packets/s")
	}
	if c.Could >= 1 {
		parts = append(parts, "at most "+packets(c.Could)+" packets/s more")
	}
	return strings.Join(parts, ", ")
}
