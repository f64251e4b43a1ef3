// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"slices"
	"time"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// An address that came here from another host so often in this time is taken for one that two guests have.
const (
	maxMoves   = 5
	moveWindow = 180 * time.Second
)

const seenFor = 10 * time.Second    // an address that was seen must be learnt within this time
const expireEvery = 1 * time.Second // guests say how many addresses there are to go through
const maxDuplicates = 16            // that a status names

// sighting is an address that a port of this node sends with.
type sighting struct {
	port  string
	until time.Time // zero: the data plane has learnt it; else it has it at another host, and believes this so long
}

type place struct {
	bridge string
	mac    Mac
}

// Learnt notes that the data plane has learnt an address at a port of this node. It returns whether that is news for
// the segment.
func (e *Engine) Learnt(bridge string, m Mac, port string) bool {
	return e.sight(bridge, m, sighting{port: port})
}

// Seen notes that a port of this node sends with an address that the data plane has at another host.
func (e *Engine) Seen(bridge string, m Mac, port string) bool {
	news := e.sight(bridge, m, sighting{port, e.now.Add(seenFor)})
	return e.takeBack(bridge, m, port) || news
}

// takeBack renews the claim to the address of an attachment whose guest is still here, although another host has taken
// the address: a guest of that host may send with it.
func (e *Engine) takeBack(bridge string, m Mac, port string) bool {
	g := e.segments[bridge]
	if g == nil {
		return false
	}
	st := g.local[m]
	if st == nil || st.attachment == nil || st.port != port || st.holds || !e.active(st) {
		return false
	}
	claim, known := e.claim(g, st)
	if !known || claim.Fresh || !g.mayCome(m, e.now) {
		return false
	}
	claim.Fresh = true
	e.setClaim(g, st, claim)
	return true
}

// Gone notes that the data plane has a learnt address no more.
func (e *Engine) Gone(bridge string, m Mac) bool {
	delete(e.sightings[bridge], m)
	return e.placeLearnt(bridge, m)
}

// SetLearnt notes all addresses that the data plane has learnt at ports of this node: by bridge, with the port of each.
func (e *Engine) SetLearnt(all map[string]map[Mac]string) {
	for bridge, known := range e.sightings {
		for m := range known {
			if all[bridge][m] == "" {
				e.Gone(bridge, m)
			}
		}
	}
	for bridge, macs := range all {
		for m, port := range macs {
			e.Learnt(bridge, m, port)
		}
	}
}

func (e *Engine) sight(bridge string, m Mac, s sighting) bool {
	if e.sightings[bridge] == nil {
		e.sightings[bridge] = map[Mac]*sighting{}
	}
	e.sightings[bridge][m] = &s
	if !s.until.IsZero() {
		e.unsure[place{bridge, m}] = true
	}
	return e.placeLearnt(bridge, m)
}

// expireSightings ends those that the data plane has not learnt in time, and forgets moves of long ago.
func (e *Engine) expireSightings() {
	if e.now.Sub(e.expired) < expireEvery {
		return
	}
	e.expired = e.now
	for _, g := range e.segments {
		g.forgetMoves(e.now)
	}
	for p := range e.unsure {
		s := e.sightings[p.bridge][p.mac]
		if s != nil && !s.until.IsZero() && e.now.Before(s.until) {
			continue
		}
		delete(e.unsure, p)
		if s != nil && !s.until.IsZero() {
			e.Gone(p.bridge, p.mac)
		}
	}
}

// placeLearnt brings a segment's stations in line with what is known of an address. It returns whether they changed.
func (e *Engine) placeLearnt(bridge string, m Mac) bool {
	g, s := e.segments[bridge], e.sightings[bridge][m]
	if g == nil || !g.config.AnnounceLearnt || noGuest(m) {
		return false
	}
	st := g.local[m]
	switch {
	case st != nil && st.attachment != nil:
		return false
	case st == nil && s == nil || st != nil && s != nil && st.port == s.port:
		return false
	case s == nil:
		delete(g.local, m)
		delete(g.claims, m)
		g.countLearnt(st.port, -1)
	case st != nil: // it has moved on this node
		g.countLearnt(st.port, -1)
		g.countLearnt(s.port, 1)
		st.port = s.port
	case !g.hasRoom(s.port):
		return false
	default:
		g.local[m] = &station{mac: m, port: s.port}
		g.countLearnt(s.port, 1)
	}
	e.changes.macs[place{bridge, m}] = true
	return true
}

func (g *segment) countLearnt(port string, n int) {
	g.learnt += n
	g.learntAt[port] += n
	if g.learntAt[port] == 0 {
		delete(g.learntAt, port)
	}
}

// hasRoom tells whether one more address of a port may be announced. The last eighth of the limit is for ports that
// have less than their share, as in the data plane, so that no guest keeps those of others from being announced.
func (g *segment) hasRoom(port string) bool {
	limit := int(g.config.LearntLimit)
	return g.learnt < limit-limit/8 || g.learnt < limit && g.learntAt[port] < limit/(len(g.learntAt)+1)
}

// mayCome notes that an address comes here from another host, and tells whether it does so seldom enough.
func (g *segment) mayCome(m Mac, now time.Time) bool {
	g.moves[m] = append(recent(g.moves[m], now), now)
	if len(g.moves[m]) > maxMoves {
		g.moves[m] = g.moves[m][:maxMoves]
		return false
	}
	return true
}

func recent(moves []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(moves, func(t time.Time) bool { return now.Sub(t) >= moveWindow })
}

func (g *segment) forgetMoves(now time.Time) {
	for m, moves := range g.moves {
		if g.moves[m] = recent(moves, now); len(g.moves[m]) == 0 {
			delete(g.moves, m)
		}
	}
}

// duplicates lists addresses that come here too often.
func (g *segment) duplicates(now time.Time) []string {
	g.forgetMoves(now)
	var list []string
	for m, moves := range g.moves {
		if len(moves) >= maxMoves {
			list = append(list, m.String())
		}
	}
	slices.Sort(list)
	return list[:min(len(list), maxDuplicates)]
}

// active tells whether a station is one that other hosts should send to.
func (e *Engine) active(st *station) bool {
	if st.attachment != nil {
		return st.attachment.State == agentv1.AttachmentState_ATTACHMENT_ACTIVE && e.ports[st.port]
	}
	for _, a := range e.intent.Attachments { // learnt at a port whose guest is on its way
		if a.Port.Name == st.port {
			return a.State == agentv1.AttachmentState_ATTACHMENT_ACTIVE
		}
	}
	return true
}
