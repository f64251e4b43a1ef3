// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/vpn"
)

// plane is a data plane that refuses what a real one would refuse.
type plane struct {
	t        *testing.T
	routes   map[string]uint32
	nexthops map[uint32]*apiv1.Nexthop
	others   map[string]proto.Message
}

func newPlane(t *testing.T) *plane {
	return &plane{t: t, routes: map[string]uint32{}, nexthops: map[uint32]*apiv1.Nexthop{},
		others: map[string]proto.Message{}}
}

// use notes that objects refer to next hops, which must be there.
func (p *plane) use(used map[uint32]bool, of any, ids ...uint32) {
	for _, id := range ids {
		if used[id] = true; id != 0 && p.nexthops[id] == nil {
			p.t.Fatalf("%v uses next hop %d, which is not there", of, id)
		}
	}
}

func (p *plane) used() map[uint32]bool {
	used := map[uint32]bool{}
	for name, id := range p.routes {
		p.use(used, name, id)
	}
	for _, n := range p.nexthops {
		for _, m := range n.GetGroup().GetMembers() {
			p.use(used, n, m.Nexthop)
		}
	}
	for _, m := range p.others {
		switch m := m.(type) {
		case *apiv1.Mac:
			p.use(used, m, m.GetNexthop())
		case *apiv1.Bridge:
			p.use(used, m, m.Flood...)
		}
	}
	return used
}

func (p *plane) do(ops []state.Op) {
	for _, op := range ops {
		for _, r := range op.Routes {
			name := r.Vrf + " " + r.Prefix.String()
			if _, there := p.routes[name]; there == (op.Verb == state.Add) {
				p.t.Fatalf("%v, and it is there: %v", op, there)
			}
			if p.routes[name] = r.Nexthop; op.Verb == state.Del {
				delete(p.routes, name)
			}
		}
		switch n := op.New.(type) {
		case nil:
			if old, ok := op.Old.(*apiv1.Nexthop); ok {
				delete(p.nexthops, old.Id)
			} else if len(op.Routes) == 0 {
				delete(p.others, op.Noun+" "+op.Key)
			}
		case *apiv1.Nexthop:
			if old := p.nexthops[n.Id]; (old == nil) != (op.Verb == state.Add) ||
				old != nil && (old.GetGroup() == nil) != (n.GetGroup() == nil) {
				p.t.Fatalf("%v, and there is %v", op, old)
			}
			p.nexthops[n.Id] = n
		default:
			p.others[op.Noun+" "+op.Key] = n
		}
		p.used()
	}
}

func (p *plane) String() string {
	text := fmt.Sprint(p.routes, "\n")
	for _, id := range slices.Sorted(maps.Keys(p.nexthops)) {
		text += fmt.Sprint(p.nexthops[id], "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(p.others)) {
		text += fmt.Sprint(name, ": ", p.others[name], "\n")
	}
	return text
}

// node is an agent to which everything happens at random.
type node struct {
	r      *rand.Rand
	now    time.Time
	engine *vpn.Engine
	set    intent.Set
	paths  []vpn.Path // that were sent
}

func newNode(seed uint64) *node {
	n := &node{r: rand.New(rand.NewPCG(seed, 2)), now: time.Unix(1e9, 0)}
	n.set = intent.Set{Bgp: &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.5", TunnelAddress: "192.0.2.5", LabelMin: 1000,
		LabelMax: 1050, NexthopMin: 5000, NexthopMax: 5000 + n.r.Uint32N(40), StaleSeconds: 60, DeferralSeconds: 30,
		MaxPaths: 1000, ResendSeconds: 10, Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOUDP}},
		Peers: []*agentv1.Peer{{Address: reflector.String()}}}
	n.reach()
	n.change()
	return n
}

// start is that of an agent whose data plane has something.
func (n *node) start(have *state.State) {
	n.engine = vpn.New(vpn.NewJournal())
	n.engine.Tick(n.now)
	n.engine.Hold(have)
	n.reach()
	n.tell()
}

// change changes the intent.
func (n *node) change() {
	target := []string{"65000:0"}
	n.set.Instances, n.set.Segments, n.set.Attachments = nil, nil, nil
	for _, v := range []string{"red", "blue"} {
		if n.r.IntN(5) > 0 {
			n.set.Instances = append(n.set.Instances, &agentv1.Instance{Vrf: v, RouteLimit: 2 + n.r.Uint32N(12),
				ImportTargets: target, ExportTargets: target})
		}
	}
	for i, b := range []string{"lan", "wan"} {
		if n.r.IntN(5) > 0 {
			n.set.Segments = append(n.set.Segments, &agentv1.Segment{Bridge: b, Vni: uint32(100 + i),
				RemoteLimit: 2 + n.r.Uint32N(12), ImportTargets: target, ExportTargets: target, LearntLimit: 4,
				AnnounceLearnt: n.r.IntN(2) > 0, NeighborSuppression: n.r.IntN(2) > 0})
			n.set.Attachments = append(n.set.Attachments, &agentv1.Attachment{
				State: agentv1.AttachmentState(n.r.IntN(3)), Addresses: []string{"10.0.0.1"},
				Port: &apiv1.Port{Name: "vm-" + b, Bridge: b, GuestMac: n.mac().String()}})
		}
	}
}

func (n *node) tell() {
	s := n.set
	n.engine.SetIntent(&s)
}

func (n *node) reach() {
	if n.engine == nil {
		return
	}
	routes := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/30")}
	if n.r.IntN(2) > 0 {
		routes = append(routes, netip.MustParsePrefix("192.0.2.4/30"))
	}
	n.engine.SetReach(routes)
}

func (n *node) mac() vpn.Mac { return vpn.Mac{2, 0, 0, 0, 0, byte(n.r.IntN(12))} }

// path makes a path from one of eight hosts.
func (n *node) path() vpn.Path {
	host := byte(1 + n.r.IntN(8))
	switch n.r.IntN(5) {
	case 0:
		return floodPath(host)
	case 1, 2:
		return macPath(host, n.mac(), n.r.Uint32N(4), func(p *vpn.Path) {
			if n.r.IntN(2) > 0 {
				p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n.r.IntN(4))}), 32)
			}
		})
	}
	return path(host, fmt.Sprintf("10.0.%d.0/24", n.r.IntN(12)), func(p *vpn.Path) { p.Label = 20 + n.r.Uint32N(2) })
}

func (n *node) step() {
	e := n.engine
	n.now = n.now.Add(time.Duration(n.r.IntN(4000)) * time.Millisecond)
	e.Tick(n.now)
	bridge := []string{"lan", "wan"}[n.r.IntN(2)]
	switch k := n.r.IntN(100); {
	case k < 50:
		p := n.path()
		n.paths = append(n.paths, p)
		e.Update(p)
	case k < 75 && len(n.paths) > 0:
		i := n.r.IntN(len(n.paths))
		e.Withdraw(n.paths[i].Key)
		n.paths = slices.Delete(n.paths, i, i+1)
	case k < 78:
		e.PeerDown(reflector)
	case k < 82:
		e.PeerUp(reflector)
	case k < 84:
		e.EndOfRib(reflector)
	case k < 88:
		n.reach()
	case k < 91:
		e.Learnt(bridge, n.mac(), "vm-"+bridge)
	case k < 94:
		e.Seen(bridge, n.mac(), "vm-"+bridge)
	case k < 96:
		e.Gone(bridge, n.mac())
	case k < 98:
		e.SetPorts(map[string]bool{"vm-lan": n.r.IntN(2) > 0, "vm-wan": n.r.IntN(2) > 0})
	case k < 99:
		n.change()
		n.tell()
	}
}

// What Changes returns leads to the same objects as Desired, step by step without a reference to what is not there.
func TestChanges(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n, p := newNode(seed), newPlane(t)
			n.start(&state.State{})
			first := n.engine.Desired()
			p.do(state.Diff(first, &state.State{}))
			for i := range 400 {
				n.step()
				if n.r.IntN(3) == 0 { // several changes are returned together
					continue
				}
				p.do(state.Diff(n.engine.Changes()))
				if n.r.IntN(4) > 0 {
					continue
				}
				whole, want := n.engine.Desired(), newPlane(t)
				want.do(state.Diff(whole, &state.State{}))
				if got := p.String(); got != want.String() {
					t.Fatalf("step %d: got\n%s\nwant\n%s", i, got, want)
				}
				if n.r.IntN(20) == 0 {
					n.start(whole)
					p.do(state.Diff(n.engine.Desired(), whole))
				}
			}
			if len(p.routes) == 0 && len(p.nexthops) == 0 && len(p.others) == 0 {
				t.Error("nothing was there at the end, and that proves nothing")
			}
		})
	}
}
