// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/explain/kernel"
)

// unobserved lists what was not observed, and why.
func unobserved(e *Evidence) (out []string) {
	if e.Silent {
		out = append(out, "packets, ports and threads of corelaned, because it did not answer")
	}
	if e.Trace == nil {
		out = append(out, "which threads ran on the workers' CPUs, because kernel events were not watched: "+e.NoTrace+
			". The evidence is weaker: counters tell how long workers waited, but not for which threads. Run as root "+
			"(CAP_BPF and CAP_PERFMON) on a kernel with BTF")
	} else {
		for _, m := range e.Trace.Missing {
			if m == kernel.FaultTime {
				m = "handle_mm_fault, which gives the time of page faults: they are only counted"
			}
			out = append(out, "kernel event "+m)
		}
		if e.Trace.Lost > 0 {
			out = append(out, fmt.Sprintf("%d gaps one by one, because too many occurred; their time is counted",
				e.Trace.Lost))
		}
	}
	out = append(out, e.Host.Unread...)
	for _, p := range e.Ports {
		if p.Device == "memif" || p.Device == "vhost" || p.Device == "tap" {
			out = append(out, "packets that found no room in rings that guests and programs fill (memif, vhost, tap): "+
				"only the senders count them")
			break
		}
	}
	return out
}

// verdicts writes one sentence for the machine and one for each worker.
func verdicts(e *Evidence, r *Report) {
	for i := range r.Workers {
		w := &r.Workers[i]
		if e.Workers[i].Plain || e.Silent {
			w.Verdict = "its packet rate is not known"
		} else {
			w.Verdict = Packets(w.Model.Achieved) + " packets/s"
		}
		if w.Model.Expected > 0 {
			w.Verdict += fmt.Sprintf(", %.0f %% of what its core can process", 100*w.Model.Achieved/w.Model.Expected)
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
	if cost := c.Cost(); cost != "" {
		return c.Title + " (" + cost + ")"
	}
	return c.Title
}

// Cost in words, empty if there is none.
func (c *Cause) Cost() string {
	var parts []string
	if c.LostNS > 0 {
		parts = append(parts, fmt.Sprintf("%.1f %% of the time", 100*c.Share))
	}
	if c.PPS >= 1 {
		parts = append(parts, Packets(c.PPS)+" packets/s")
	}
	if c.Recoverable >= 1 {
		parts = append(parts, "at most "+Packets(c.Recoverable)+" packets/s more")
	}
	return strings.Join(parts, ", ")
}
