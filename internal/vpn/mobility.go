// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// station is a guest of this node with a known MAC address.
type station struct {
	mac        Mac
	port       string
	attachment *agentv1.Attachment // nil: the bridge has learnt the address
	holds      bool                // the address is here, and is announced with sequence
	sequence   uint32              // of the claim
	reason     string              // why it is elsewhere although the intent says that it is here
}

// addresses lists the IP addresses that are announced together with the MAC address.
func (st *station) addresses() []netip.Prefix {
	if st.attachment == nil {
		return nil
	}
	if len(st.attachment.Addresses) == 0 {
		return slices.DeleteFunc(guests(st.attachment.Port), func(p netip.Prefix) bool { return !p.IsSingleIP() })
	}
	var list []netip.Prefix
	for _, text := range st.attachment.Addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			list = append(list, hostPrefix(a))
		}
	}
	return list
}

func (g *segment) claimKey(m Mac) string { return g.config.Bridge + " " + m.String() }

// setStations records the guests of this node. If two ports of a bridge have the same address, the first one counts.
func (e *Engine) setStations() {
	claims := map[string]bool{}
	for _, a := range e.intent.Attachments {
		g := e.segments[a.Port.Bridge]
		m, ok := macOf(a.Port.GuestMac)
		if g == nil || !ok || g.local[m] != nil {
			continue
		}
		g.local[m] = &station{mac: m, port: a.Port.Name, attachment: a}
		if a.State == agentv1.AttachmentState_ATTACHMENT_ACTIVE {
			claims[g.claimKey(m)] = true
		}
	}
	e.journal.keepClaims(claims)
	for bridge, known := range e.sightings {
		inOrder := slices.SortedFunc(maps.Keys(known), func(a, b Mac) int { return slices.Compare(a[:], b[:]) })
		for _, m := range inOrder {
			e.placeLearnt(bridge, m)
		}
	}
	for _, g := range e.segments {
		maps.DeleteFunc(g.claims, func(m Mac, _ Mobility) bool {
			return g.local[m] == nil || g.local[m].attachment != nil
		})
	}
}

// sticky tells whether the address does not move.
func (st *station) sticky() bool { return st.attachment != nil && st.attachment.Sticky }

// claim returns the claim to a station's address. Those to learnt addresses survive no restart: a guest that is still
// there is learnt again.
func (e *Engine) claim(g *segment, st *station) (Mobility, bool) {
	if st.attachment == nil {
		claim, known := g.claims[st.mac]
		return claim, known
	}
	return e.journal.claim(g.claimKey(st.mac))
}

func (e *Engine) setClaim(g *segment, st *station, claim Mobility) {
	if st.attachment == nil {
		g.claims[st.mac] = claim
	} else {
		e.journal.setClaim(g.claimKey(st.mac), claim)
	}
}

// move decides whether an address of this node is here (RFC 7432, sections 7.7 and 15): a guest that has just come
// takes it from the host where it was, and gives it up to a host with a later claim. The host that keeps an address
// announces a higher sequence number than all others, so that every host decides alike.
func (e *Engine) move(g *segment, st *station) {
	st.holds, st.reason = false, ""
	if !e.active(st) {
		return
	}
	claim, known := e.claim(g, st)
	if !known {
		claim = Mobility{Fresh: true}
	}
	s := subject{kind: KindMac, mac: st.mac}
	others, highest := false, uint32(0) // claims of other hosts, also those that cannot be used
	for _, x := range e.bySubject[s] {
		switch {
		case !g.takes(x) || e.insuperable(x):
		case x.Originator == e.self || x.Nexthop == e.tunnel:
			claim.Sequence = max(claim.Sequence, x.Sequence) // announced before a journal was lost
		default:
			others, highest = true, max(highest, x.Sequence)
		}
	}
	rival, _ := e.judgeIn(g, s, false)
	if st.attachment == nil && !known && rival != nil && !g.mayCome(st.mac, e.now) {
		claim.Fresh = false // two guests seem to have it: it stays where it is
	}
	switch {
	case rival == nil || st.sticky() && !rival.Sticky:
		st.holds = true
	case rival.Sticky && !st.sticky():
		st.reason = "it does not move, according to "
	case claim.Fresh || claim.Sequence > rival.Sequence:
		st.holds = true
	case claim.Sequence == rival.Sequence:
		st.holds = e.tunnel.Less(rival.Nexthop)
	}
	if st.holds && others && highest >= claim.Sequence {
		if st.holds = highest < math.MaxUint32; st.holds {
			claim.Sequence = highest + 1
		}
	}
	if rival != nil && !st.holds {
		st.reason = "MAC " + st.mac.String() + " is elsewhere: " + st.reason + rival.Nexthop.String() +
			" with sequence " + strconv.FormatUint(uint64(rival.Sequence), 10)
	}
	if e.heard() {
		claim.Fresh = false
	}
	st.sequence = claim.Sequence
	e.setClaim(g, st, claim)
}

// insuperable tells whether a path that cannot be used has a claim that no other can exceed. It counts for nothing:
// otherwise a guest would have no place at all.
func (e *Engine) insuperable(x *entry) bool {
	if x.Sequence < math.MaxUint32 {
		return false
	}
	verdict, _ := e.refuseIn(x)
	return verdict != "" && verdict != Own
}

// heard tells whether the peers whose sessions are up have sent all that they have.
func (e *Engine) heard() bool {
	for _, p := range e.peers {
		if p.up && !p.complete {
			return false
		}
	}
	return e.anyUp()
}

// JudgeSegments lists the paths received for segments, with their verdicts.
func (e *Engine) JudgeSegments(bridge string, each func(Judged)) {
	e.settle()
	var subjects []subject
	for s := range e.bySubject {
		if s.kind != KindIP {
			subjects = append(subjects, s)
		}
	}
	slices.SortFunc(subjects, func(a, b subject) int {
		return Key{Kind: a.kind, Prefix: a.prefix, Mac: a.mac}.compare(Key{Kind: b.kind, Prefix: b.prefix, Mac: b.mac})
	})
	for _, s := range subjects {
		e.judgeSubject(bridge, s, bridge == "", each)
	}
}

// JudgeMac lists the paths received to a MAC address, with their verdicts for a segment.
func (e *Engine) JudgeMac(bridge string, m Mac, each func(Judged)) {
	e.settle()
	e.judgeSubject(bridge, subject{kind: KindMac, mac: m}, true, each)
}

// judgeSubject lists the paths of a subject with their verdicts for a segment, or for all with an empty name; with rest
// also those that none of these segments imports.
func (e *Engine) judgeSubject(bridge string, s subject, rest bool, each func(Judged)) {
	imported := map[Key]bool{}
	for _, c := range e.intent.Segments {
		g := e.segments[c.Bridge]
		if g == nil || bridge != "" && c.Bridge != bridge {
			continue
		}
		_, judged := e.judgeIn(g, s, true)
		for _, j := range judged {
			imported[j.Path.Key] = true
			if j.Verdict == Used && g.remote[s] == nil {
				j.Verdict, j.Reason = g.limit(s)
			}
			if j.Verdict == Used && s.kind == KindFlood && !slices.Contains(e.floodEnds(g), g.remote[s].nexthop.id) {
				j.Verdict, j.Reason = TooManyEnds, "a bridge floods to 256 hosts"
			}
			each(j)
		}
	}
	for _, x := range e.bySubject[s] {
		if rest && !imported[x.Key] {
			each(Judged{x.Path, x.age() > 0, "", "", NotImported, "it has " + targetsText(x.Targets)})
		}
	}
}

func (g *segment) limit(s subject) (Verdict, string) {
	if s.kind == KindMac && g.macs >= int(g.config.RemoteLimit) {
		return TooManyMacs, "the segment's remote_limit is reached"
	}
	return NoNexthop, "all ids from nexthop_min to nexthop_max are taken"
}

// Segments returns how each segment fares.
func (e *Engine) Segments() []*agentv1.SegmentStatus {
	e.settle()
	announced := map[Target]uint32{}
	for _, p := range e.announceSegments(nil) {
		announced[p.RD]++
	}
	var list []*agentv1.SegmentStatus
	for _, c := range e.intent.Segments {
		if g := e.segments[c.Bridge]; g != nil {
			list = append(list, &agentv1.SegmentStatus{Config: c, Rd: g.rd.String(), Announced: announced[g.rd],
				RemoteMacs: uint32(g.macs), FloodEnds: uint32(len(e.floodEnds(g))), Error: g.err,
				LearntMacs: uint32(g.learnt), DuplicateMacs: g.duplicates(e.now)})
		}
	}
	return list
}

// BridgesByRD returns the bridge of each route distinguisher of a segment.
func (e *Engine) BridgesByRD() map[Target]string {
	names := map[Target]string{}
	for _, g := range e.segments {
		names[g.rd] = g.config.Bridge
	}
	return names
}

// station returns the guest of an attachment; nil: its bridge is no segment, or its MAC address is not known.
func (e *Engine) station(a *agentv1.Attachment) *station {
	if g := e.segments[a.Port.Bridge]; g != nil {
		if m, ok := macOf(a.Port.GuestMac); ok && g.local[m] != nil && g.local[m].attachment == a {
			return g.local[m]
		}
	}
	return nil
}
