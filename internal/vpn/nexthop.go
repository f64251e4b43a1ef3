// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// tunnel is a way to a VRF or bridge of another host.
type tunnel struct {
	remote netip.Addr
	encap  apiv1.Encap
	label  uint32 // VXLAN: the VNI
	router Mac    // VXLAN to a VRF: the inner destination
}

// nexthop is one object of the data plane: a tunnel, or the group of several.
type nexthop struct {
	id      uint32
	key     hopKey
	refs    int
	members []*nexthop // if it is a group
	made    *apiv1.Nexthop
}

// hopKey tells next hops apart.
type hopKey struct {
	tunnel
	group string // ids of the members
}

// nexthops shares next hops between routes and gives them ids. A next hop that stays the same keeps its id, also across
// a restart of the agent.
type nexthops struct {
	low, high uint32
	byKey     map[hopKey]*nexthop
	byID      map[uint32]*nexthop
	held      map[uint32]*apiv1.Nexthop // that the data plane had at the start, while its routes are kept
	known     map[hopKey]uint32         // ids that the data plane had at the start
	reserved  map[uint32]bool           // these ids
	touched   map[uint32]*apiv1.Nexthop // as they were given last (nil: not at all), if that may have changed
	last      uint32
}

func newNexthops() *nexthops {
	return &nexthops{byKey: map[hopKey]*nexthop{}, byID: map[uint32]*nexthop{}, known: map[hopKey]uint32{},
		touched: map[uint32]*apiv1.Nexthop{}}
}

// get returns the next hop for tunnels, and takes a reference. nil: no id is left.
func (n *nexthops) get(tunnels []tunnel) *nexthop {
	if len(tunnels) == 1 {
		return n.one(hopKey{tunnel: tunnels[0]}, func(*nexthop) {})
	}
	members := make([]*nexthop, 0, len(tunnels))
	for _, t := range tunnels {
		if h := n.one(hopKey{tunnel: t}, func(*nexthop) {}); h != nil {
			members = append(members, h)
		}
	}
	if len(members) == 0 {
		return nil
	}
	slices.SortFunc(members, func(a, b *nexthop) int { return int(a.id) - int(b.id) })
	fresh := false
	group := n.one(groupKey(members), func(h *nexthop) { h.members, fresh = members, true })
	if !fresh { // the group holds its members already, or there is none
		for _, m := range members {
			n.put(m)
		}
	}
	return group
}

func groupKey(members []*nexthop) hopKey {
	var b strings.Builder
	for _, m := range members {
		fmt.Fprintf(&b, " %d", m.id)
	}
	return hopKey{group: b.String()}
}

func (n *nexthops) one(key hopKey, fill func(*nexthop)) *nexthop {
	h := n.byKey[key]
	if h == nil {
		id := n.number(key)
		if id == 0 {
			return nil
		}
		n.touch(id)
		h = &nexthop{id: id, key: key}
		fill(h)
		n.byKey[key], n.byID[id] = h, h
	}
	h.refs++
	return h
}

// put releases a reference.
func (n *nexthops) put(h *nexthop) {
	if h.refs--; h.refs > 0 {
		return
	}
	n.touch(h.id)
	delete(n.byKey, h.key)
	delete(n.byID, h.id)
	for _, m := range h.members {
		n.put(m)
	}
}

// at returns what the data plane should have with an id; nil: nothing.
func (n *nexthops) at(id uint32) *apiv1.Nexthop {
	if h := n.byID[id]; h != nil {
		return h.message()
	}
	return n.held[id]
}

// heldTunnel tells whether a next hop from before the start is a tunnel.
func (n *nexthops) heldTunnel(id uint32) bool { return n.held[id].GetTunnel() != nil }

// touch notes that an id is about to change.
func (n *nexthops) touch(id uint32) {
	if _, noted := n.touched[id]; !noted {
		n.touched[id] = n.at(id)
	}
}

// number returns the id that the key had before, or a free one; 0: none is left.
func (n *nexthops) number(key hopKey) uint32 {
	if id := n.known[key]; id >= n.low && id <= n.high && n.byID[id] == nil {
		return id
	}
	for tries := uint32(0); tries <= n.high-n.low; tries++ {
		if n.last++; n.last < n.low || n.last > n.high {
			n.last = n.low
		}
		if n.byID[n.last] == nil && !n.reserved[n.last] {
			return n.last
		}
	}
	return 0
}

// adopt remembers the ids of next hops that the data plane has, so that their routes need no change.
func (n *nexthops) adopt(have []*apiv1.Nexthop) {
	n.known, n.reserved, n.held = map[hopKey]uint32{}, map[uint32]bool{}, map[uint32]*apiv1.Nexthop{}
	know := func(key hopKey, id uint32) { n.known[key], n.reserved[id] = id, true }
	for _, h := range have {
		n.held[h.Id] = h
		if t := h.GetTunnel(); t != nil {
			if remote, err := netip.ParseAddr(t.Remote); err == nil {
				router, _ := macOf(t.RouterMac)
				// It has one of both numbers.
				know(hopKey{tunnel: tunnel{remote, t.Encap, t.Label + t.Vni, router}}, h.Id)
			}
		}
		if g := h.GetGroup(); g != nil {
			var members []*nexthop
			for _, m := range g.Members {
				members = append(members, &nexthop{id: m.Nexthop})
			}
			slices.SortFunc(members, func(a, b *nexthop) int { return int(a.id) - int(b.id) })
			know(groupKey(members), h.Id)
		}
	}
}

// message returns the object of the data plane, which is always the same one, so that equal objects are
// found by their pointers.
func (h *nexthop) message() *apiv1.Nexthop {
	if h.made == nil {
		h.made = h.make()
	}
	return h.made
}

func (h *nexthop) make() *apiv1.Nexthop {
	if h.members == nil {
		t := &apiv1.TunnelNexthop{Encap: h.key.encap, Remote: h.key.remote.String()}
		if h.key.encap == apiv1.Encap_ENCAP_VXLAN {
			t.Vni = h.key.label
			if h.key.router != (Mac{}) {
				t.RouterMac = h.key.router.String()
			}
		} else {
			t.Label = h.key.label
		}
		return &apiv1.Nexthop{Id: h.id, Kind: &apiv1.Nexthop_Tunnel{Tunnel: t}}
	}
	g := &apiv1.GroupNexthop{}
	for _, m := range h.members {
		g.Members = append(g.Members, &apiv1.GroupMember{Nexthop: m.id})
	}
	return &apiv1.Nexthop{Id: h.id, Kind: &apiv1.Nexthop_Group{Group: g}}
}
