// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
)

// Engine is the state of a node. Only one goroutine may use it.
type Engine struct {
	intent  *intent.Set
	self    netip.Addr // router id
	tunnel  netip.Addr // of this node
	router  Mac        // inner destination of what other hosts send to this node's VRFs; zero: not known yet
	journal *Journal
	now     time.Time

	peers     map[netip.Addr]*peer
	paths     map[Key]*entry
	bySubject map[subject][]*entry
	refused   uint64

	vrfs      map[string]*vrf
	importers map[Target][]*vrf
	dirty     map[subject]bool
	usable    []*entry // of tunnelsTo
	tunnels   []tunnel // likewise
	segments  map[string]*segment
	sightings map[string]map[Mac]*sighting // by bridge: addresses that its ports send with
	unsure    map[place]bool               // sightings that end by themselves
	expired   time.Time                    // when these were last gone through
	nexthops  *nexthops
	reach     []netip.Prefix      // routes of the underlay, without a default route
	reached   map[netip.Addr]bool // whether they lead to a host, as far as it was asked
	ports     map[string]bool
	held      *held
	changes   changes
}

type peer struct {
	up, complete bool
	since        time.Time // when it came up or went down
	completed    time.Time // when it had sent all that it has
	paths, stale int
}

type vrf struct {
	name     string
	instance *agentv1.Instance
	rd       Target
	label    uint32
	err      string
	imports  map[Target]bool
	exports  []Target
	local    map[netip.Prefix]bool // what ports of this node have
	routes   map[netip.Prefix]*nexthop
	waiting  map[netip.Prefix]bool // have a tunnel, but no room among the routes or no next hop
}

// New makes an engine. j is the journal of the agent's previous run, or an empty one.
func New(j *Journal) *Engine {
	return &Engine{intent: &intent.Set{}, journal: j, peers: map[netip.Addr]*peer{}, paths: map[Key]*entry{},
		bySubject: map[subject][]*entry{}, vrfs: map[string]*vrf{}, importers: map[Target][]*vrf{},
		dirty: map[subject]bool{}, segments: map[string]*segment{},
		sightings: map[string]map[Mac]*sighting{}, unsure: map[place]bool{},
		nexthops: newNexthops(), reached: map[netip.Addr]bool{}, ports: map[string]bool{},
		changes: newChanges(&state.State{})}
}

// SetIntent replaces the intent.
func (e *Engine) SetIntent(s *intent.Set) {
	e.allChanges()
	e.intent = s
	if s.Bgp != nil {
		e.self = netip.MustParseAddr(s.Bgp.RouterId)
		e.tunnel = netip.MustParseAddr(s.Bgp.TunnelAddress)
		e.nexthops.low, e.nexthops.high = s.Bgp.NexthopMin, s.Bgp.NexthopMax
	}
	wanted := map[netip.Addr]bool{}
	for _, p := range s.Peers {
		wanted[netip.MustParseAddr(p.Address)] = true
	}
	for a := range e.peers {
		if !wanted[a] {
			e.forget(func(x *entry) bool { return x.Peer == a })
			delete(e.peers, a)
		}
	}
	for a := range wanted {
		if e.peers[a] == nil {
			e.peers[a] = &peer{since: e.now}
		}
	}
	e.setInstances()
	e.setSegments()
	for s := range e.bySubject {
		e.dirty[s] = true
	}
}

func (e *Engine) setInstances() {
	old := e.vrfs
	e.vrfs, e.importers = map[string]*vrf{}, map[Target][]*vrf{}
	names := map[string]bool{}
	for _, i := range e.intent.Instances {
		names[i.Vrf] = true
	}
	for _, g := range e.intent.Segments {
		names[segmentName(g.Bridge)] = true
	}
	e.journal.release(names, e.now)
	for _, i := range e.intent.Instances {
		v := &vrf{name: i.Vrf, instance: i, imports: map[Target]bool{}, local: map[netip.Prefix]bool{},
			routes: map[netip.Prefix]*nexthop{}, waiting: map[netip.Prefix]bool{}}
		if o := old[i.Vrf]; o != nil {
			v.routes = o.routes
		}
		e.vrfs[i.Vrf] = v
		if e.intent.Bgp == nil {
			continue
		}
		number, label, err := e.numbers(v)
		if err != nil {
			v.err = err.Error()
		}
		v.label, v.rd = label, routerTarget(e.self, number)
		if i.Rd != "" {
			v.rd, _ = intent.ParseTarget(i.Rd) // checked
		}
		for _, t := range i.ImportTargets {
			target, _ := intent.ParseTarget(t)
			v.imports[target] = true
			e.importers[target] = append(e.importers[target], v)
		}
		for _, t := range i.ExportTargets {
			target, _ := intent.ParseTarget(t)
			v.exports = append(v.exports, target)
		}
	}
	for name, o := range old {
		if e.vrfs[name] == nil {
			for _, n := range o.routes {
				e.nexthops.put(n)
			}
		}
	}
	for _, a := range e.intent.Attachments {
		if v := e.vrfs[a.Port.Vrf]; v != nil {
			for _, p := range occupied(a.Port) {
				v.local[p] = true
			}
		}
	}
}

// numbers returns those of a VRF's route distinguisher and label. Prefixes of EVPN need no label.
func (e *Engine) numbers(v *vrf) (number uint16, label uint32, err error) {
	if v.evpn() {
		number, err = e.journal.number(v.name)
		return number, 0, err
	}
	return e.journal.get(v.name, e.intent.Bgp, e.now)
}

// SetRouterMac tells the data plane's MAC address in packets between VRFs of EVPN.
func (e *Engine) SetRouterMac(text string) { e.router, _ = macOf(text) }

func routerTarget(router netip.Addr, number uint16) Target {
	t := Target{Form: 1}
	copy(t.Value[:], router.AsSlice())
	t.Value[4], t.Value[5] = byte(number>>8), byte(number)
	return t
}

// PeerUp notes that a session is established. The paths of its previous session stay stale until they are sent
// again.
func (e *Engine) PeerUp(a netip.Addr) {
	if p := e.peers[a]; p != nil {
		p.up, p.complete, p.since = true, false, e.now
	}
}

// PeerDown notes that a session has ended. Its paths are still used where nothing else is there.
func (e *Engine) PeerDown(a netip.Addr) {
	p := e.peers[a]
	if p == nil || !p.up {
		return
	}
	p.up, p.complete, p.since = false, false, e.now
	for _, x := range e.paths {
		if x.Peer == a {
			if x.stale++; x.stale == 1 {
				p.stale++
			}
			e.dirty[x.subject()] = true
		}
	}
}

// EndOfRib notes that a peer has sent all that it has: what it does not send again soon is gone.
func (e *Engine) EndOfRib(a netip.Addr) {
	p := e.peers[a]
	if p == nil || !p.up {
		return
	}
	p.complete, p.completed = true, e.now
}

// Update adds paths, or replaces those with the same key. Paths beyond the limit are refused.
func (e *Engine) Update(paths ...Path) {
	for _, p := range paths {
		from := e.peers[p.Peer]
		if from == nil || e.intent.Bgp == nil {
			continue
		}
		s := p.subject()
		old := e.paths[p.Key]
		if old == nil && len(e.paths) >= int(e.intent.Bgp.MaxPaths) {
			e.refused++
			continue
		}
		if old != nil {
			if old.stale > 0 {
				from.stale--
			}
			*old = entry{Path: p}
		} else {
			old = &entry{Path: p}
			e.paths[p.Key] = old
			e.bySubject[s] = append(e.bySubject[s], old)
			from.paths++
		}
		e.dirty[s] = true
	}
}

// Withdraw removes paths that their peer has withdrawn.
func (e *Engine) Withdraw(keys ...Key) {
	for _, k := range keys {
		if x := e.paths[k]; x != nil {
			e.remove(x)
		}
	}
}

func (e *Engine) forget(match func(*entry) bool) {
	for _, x := range e.paths {
		if match(x) {
			e.remove(x)
		}
	}
}

func (e *Engine) remove(x *entry) {
	delete(e.paths, x.Key)
	s := x.subject()
	list := slices.DeleteFunc(e.bySubject[s], func(y *entry) bool { return x == y })
	if len(list) == 0 {
		delete(e.bySubject, s)
	} else {
		e.bySubject[s] = list
	}
	if p := e.peers[x.Peer]; p != nil {
		p.paths--
		if x.stale > 0 {
			p.stale--
		}
	}
	e.dirty[x.subject()] = true
}

// SetReach tells which prefixes the underlay has routes to. A default route does not count.
func (e *Engine) SetReach(routes []netip.Prefix) {
	routes = slices.DeleteFunc(slices.Clone(routes), func(p netip.Prefix) bool { return p.Bits() == 0 })
	slices.SortFunc(routes, comparePrefixes)
	if slices.Equal(routes, e.reach) {
		return
	}
	before := map[netip.Addr]bool{}
	for _, x := range e.paths {
		before[x.Nexthop] = false
	}
	for a := range before {
		before[a] = e.reachable(a)
	}
	e.reach = routes
	clear(e.reached)
	for _, x := range e.paths {
		if before[x.Nexthop] != e.reachable(x.Nexthop) {
			e.dirty[x.subject()] = true
		}
	}
}

// mostReached bounds the hosts that are remembered to be reached or not.
const mostReached = 100000

func (e *Engine) reachable(a netip.Addr) bool {
	found, known := e.reached[a]
	if !known {
		found = slices.ContainsFunc(e.reach, func(p netip.Prefix) bool { return p.Contains(a) })
		if len(e.reached) >= mostReached {
			clear(e.reached)
		}
		e.reached[a] = found
	}
	return found
}

// SetPorts tells which ports the data plane has. Only their addresses are announced.
func (e *Engine) SetPorts(names map[string]bool) { e.ports = maps.Clone(names) }

// Tick tells the time, and ends what has waited long enough.
func (e *Engine) Tick(now time.Time) {
	e.now = now
	e.expireSightings()
	if e.intent.Bgp == nil {
		return
	}
	for a, p := range e.peers {
		limit := time.Duration(e.intent.Bgp.StaleSeconds) * time.Second
		if p.up {
			limit = time.Duration(e.intent.Bgp.DeferralSeconds) * time.Second
		}
		if p.stale > 0 && (now.Sub(p.since) >= limit || e.settled(p)) {
			e.forget(func(x *entry) bool { return x.Peer == a && x.stale > 0 })
		}
	}
	e.endHold()
}

// settled tells whether a peer has sent everything, and has had the time to hear of more.
func (e *Engine) settled(p *peer) bool {
	return p.complete && e.now.Sub(p.completed) >= time.Duration(e.intent.Bgp.ResendSeconds)*time.Second
}

// Hold keeps the routes and next hops that the data plane has while peers have not sent all of theirs.
func (e *Engine) Hold(have *state.State) {
	e.allChanges()
	e.nexthops.adopt(have.Nexthops)
	e.held = newHeld(have, e.now)
}

func (e *Engine) endHold() {
	if e.held == nil || e.intent.Bgp == nil {
		return
	}
	late := e.now.Sub(e.held.since) >= time.Duration(e.intent.Bgp.DeferralSeconds)*time.Second
	complete := len(e.peers) > 0
	for _, p := range e.peers {
		complete = complete && e.settled(p)
	}
	stale := e.now.Sub(e.held.since) >= time.Duration(e.intent.Bgp.StaleSeconds)*time.Second
	if complete || late && e.anyUp() || stale {
		e.allChanges()
		e.held, e.nexthops.held, e.nexthops.reserved = nil, nil, nil
	}
}

func (e *Engine) anyUp() bool {
	for _, p := range e.peers {
		if p.up {
			return true
		}
	}
	return false
}
