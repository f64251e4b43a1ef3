// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// ended remembers whose sessions have ended. They begin anew as those of a new peer. GoBGP would take seven seconds for
// the same session, and then say that this node has lost its forwarding state, so that the other side would withdraw
// the paths that it has kept (RFC 4724, section 4.2); yet the node forwards on.
type ended struct {
	mu       sync.Mutex
	up, over map[netip.Addr]bool
	// Peers that did not offer RT constraint. GoBGP may send them an End-of-RIB of that family all the same (it takes
	// the configured families for the negotiated ones): as soon as the first session is up if no peer restarts
	// gracefully, or two seconds later (softResetOut). FRR and GoBGP then end the session. No setting prevents it, so
	// the agent remembers these peers and does not offer them the family.
	unconstrained map[netip.Addr]bool
}

func newEnded() ended {
	return ended{up: map[netip.Addr]bool{}, over: map[netip.Addr]bool{}, unconstrained: map[netip.Addr]bool{}}
}

// note takes a new state. A session that must not begin anew is refused.
func (e *ended) note(a netip.Addr, state bgp.FSMState, refused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case state == bgp.BGP_FSM_ESTABLISHED:
		e.up[a] = true
	case e.up[a]:
		delete(e.up, a)
		if !refused {
			e.over[a] = true
		}
	}
}

// learn takes whether a peer does not know of RT constraint, and returns that.
func (e *ended) learn(a netip.Addr, unconstrained bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unconstrained[a] = unconstrained
	return unconstrained
}

// families lists what a session with a peer should carry.
func (e *ended) families(a netip.Addr) []bgp.Family {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unconstrained[a] {
		return families
	}
	return append(slices.Clone(families), bgp.RF_RTC_UC)
}

// take returns the peers whose sessions have ended since the last call.
func (e *ended) take() map[netip.Addr]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	over := e.over
	e.over = map[netip.Addr]bool{}
	return over
}
