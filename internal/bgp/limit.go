// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"context"
	"net/netip"
	"sync"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// limits end the sessions of peers that send too many paths. GoBGP would do that too, but it counts all paths of the
// peer with every message, which takes longer the more there are: 40 seconds for 5,000 paths.
type limits struct {
	mu    sync.Mutex
	peers map[netip.Addr]*limit
}

type limit struct {
	most   int
	at     map[bgp.Family]int // at most so many there are: announcements since the last count, and its result
	passed bool
}

func (l *limits) set(a netip.Addr, most uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peers[a] = &limit{most: int(most), at: map[bgp.Family]int{}}
}

func (l *limits) passed(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[a]
	return p != nil && p.passed
}

// add notes paths that have come, and returns the peers that may have passed their limits, with the families.
func (l *limits) add(paths []*apiutil.Path) map[netip.Addr]bgp.Family {
	l.mu.Lock()
	defer l.mu.Unlock()
	var suspects map[netip.Addr]bgp.Family
	for _, p := range paths {
		if of := l.peers[p.PeerAddress]; of != nil && !p.Withdrawal {
			if of.at[p.Family]++; of.at[p.Family] > of.most {
				if suspects == nil {
					suspects = map[netip.Addr]bgp.Family{}
				}
				suspects[p.PeerAddress] = p.Family
			}
		}
	}
	return suspects
}

// counted takes the result of a count, and tells whether the limit is passed.
func (l *limits) counted(a netip.Addr, f bgp.Family, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[a]
	if p == nil {
		return false
	}
	p.at[f] = n
	p.passed = p.passed || n > p.most
	return p.passed
}

// endOfTooMany ends the sessions of peers that have passed their limits with these paths, and returns these peers.
func (s *Speaker) endOfTooMany(paths []*apiutil.Path) map[netip.Addr]bool {
	var passed map[netip.Addr]bool
	for a, family := range s.limits.add(paths) {
		n := 0
		err := s.server.ListPeer(context.Background(), &api.ListPeerRequest{Address: a.String()}, func(p *api.Peer) {
			for _, f := range p.AfiSafis {
				if st := f.State; st != nil && st.Family.Afi == api.Family_Afi(family.Afi()) &&
					st.Family.Safi == api.Family_Safi(family.Safi()) {
					n = int(st.Received)
				}
			}
		})
		if err != nil || !s.limits.counted(a, family, n) {
			continue
		}
		if passed == nil {
			passed = map[netip.Addr]bool{}
		}
		passed[a] = true
		// An error says that the peer is gone.
		_ = s.server.DisablePeer(context.Background(), &api.DisablePeerRequest{Address: a.String()})
	}
	return passed
}
