// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/host"
)

var costlyPackets = row{
	kind: CostlyPackets, colour: "work",
	means:  "packets cost more cycles than usual, because something slows the worker down while it has its CPU",
	known:  "the cycles per packet of the last two hours, and what /proc and /sys say of probes, profilers and clocks",
	slower: (*account).hiddenCosts,
	grade:  func(*Evidence) Grade { return Inferred },
	// the worker still finishes what it gets as long as it has time left
	limits: limits{minor: func(s *scene, c *Cause, lossy bool) bool { return !s.m.saturated() && !lossy }},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("a packet costs %s %.0f cycles, usually %.0f: %s", s.w.label(), c.cycles, s.m.PerPacket,
			c.Name)
		for _, h := range s.e.Host.Handicaps {
			c.fact(Counted, "%s", h.What)
		}
	},
	remedy: func(s *scene, c *Cause) {
		if h := passing(s.e); h != nil {
			c.FixNote, c.Fix = h.Remedy, h.Fix
		}
	},
	noRemedy: "look for what shares its core, caches and memory: other CPUs' work, other machines of the hypervisor, " +
		"a lower clock (perf stat -C CPU, turbostat)",
}

// passing returns the first handicap that the process does not always have, nil if there is none.
func passing(e *Evidence) *host.Handicap {
	for i := range e.Host.Handicaps {
		if h := &e.Host.Handicaps[i]; h.Passing {
			return h
		}
	}
	return nil
}

const (
	dearer    = 1.1  // times the usual cost of a packet: less can be chance
	muchMore  = 1.25 // without interruptions that explain it
	leastLoad = 1e5  // packets in an interval; fewer do not show what one costs
	// times the time of an interruption that it costs besides, at most, if something else is known that slows packets
	mostHidden = 3
)

// hiddenCosts adds the extra time of packets that cost more than usual to the causes that interrupt the worker often:
// their own time includes neither the way into the kernel and back nor the cache misses that follow. If there is no
// such cause, a handicap that the process does not always have explains the extra time. One that each batch runs into
// explains what is more than such interruptions can cost. It returns whether it added any.
func (a *account) hiddenCosts(m *Model) bool {
	usual := a.w.usualCycles()
	if usual <= 0 || m.PerPacket < dearer*usual {
		return false
	}
	ns := int64(m.own * (1 - usual/m.PerPacket) / a.w.HzTSC * 1e9)
	times, h := int64(0), passing(a.e)
	inPath := h != nil && h.InPath
	for _, c := range a.causes {
		if c.often = oftenIn(a.e, c); c.often {
			times += c.Times
		}
	}
	rest := ns
	for _, c := range a.causes {
		if c.often {
			c.hidden = int64(float64(ns) * float64(c.Times) / float64(times))
			if inPath {
				c.hidden = min(c.hidden, mostHidden*c.LostNS)
			}
			c.LostNS += c.hidden
			rest -= c.hidden
		}
	}
	if ns = rest; times > 0 && (!inPath || ns <= 0) || m.PerPacket < muchMore*usual {
		return times > 0
	}
	name := "nothing is seen that slows it down"
	if h != nil {
		name = h.What
	} else if !m.saturated() || m.own < (1-fewStolen)*a.e.Seconds*a.w.HzTSC {
		return false // it has time left, or loses enough of it otherwise
	}
	a.add(culprit{kind: CostlyPackets, name: name}, ns, 0, 0).cycles = m.PerPacket
	return true
}

// oftenIn says whether a cause interrupts the worker so often that it costs more than its own time.
func oftenIn(e *Evidence, c *Cause) bool {
	rate := rowOf(c.Kind).limits.rate
	return rate > 0 && float64(c.Times) > rate*e.Seconds
}
