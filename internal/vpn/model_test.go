// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/vpn"
)

// A fleet of engines around a model of a route reflector, in random steps and with random faults.

var reflector = netip.MustParseAddr("192.0.2.254")

type host struct {
	t       *testing.T
	number  int
	engine  *vpn.Engine
	journal *vpn.Journal
	set     *intent.Set
	have    *state.State // of the data plane, which survives the agent
	up      bool
}

type fleet struct {
	t     *testing.T
	r     *rand.Rand
	now   time.Time
	hosts []*host
	rib   map[int]map[vpn.Key]vpn.Path // by host, what the reflector has from it
	seen  map[int]map[vpn.Key]vpn.Path // by host, what the reflector has sent to it
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), rib: map[int]map[vpn.Key]vpn.Path{},
		seen: map[int]map[vpn.Key]vpn.Path{}}
	for i := range 2 + f.r.IntN(19) {
		h := &host{t: t, number: i + 1, journal: vpn.NewJournal(), have: &state.State{}, set: &intent.Set{
			Bgp: &agentv1.Bgp{Asn: 65000, RouterId: addressOf(i + 1), TunnelAddress: addressOf(i + 1), LabelMin: 1000,
				LabelMax: 1050, NexthopMin: 5000, NexthopMax: 9000, StaleSeconds: 3600, DeferralSeconds: 30,
				MaxPaths: 10000, ResendSeconds: 10,
				Encaps: []apiv1.Encap{apiv1.Encap_ENCAP_MPLSOUDP}},
			Peers: []*agentv1.Peer{{Address: reflector.String()}}}}
		for v := range 3 {
			if f.r.IntN(4) > 0 {
				h.addInstance(v)
			}
		}
		f.hosts = append(f.hosts, h)
		f.boot(h)
	}
	return f
}

func addressOf(n int) string { return fmt.Sprintf("192.0.2.%d", n) }

func (h *host) addInstance(v int) {
	target := fmt.Sprintf("65000:%d", v)
	i := &agentv1.Instance{Vrf: fmt.Sprintf("vrf%d", v), RouteLimit: 1000, ImportTargets: []string{target},
		ExportTargets: []string{target}}
	if v == 2 {
		i.Vni = modelVni
	}
	h.set.Instances = append(h.set.Instances, i)
}

const modelVni = 300 // of the third VRF, whose prefixes are those of EVPN

// boot starts an agent on a host whose data plane goes on.
func (f *fleet) boot(h *host) {
	text, err := json.Marshal(h.journal)
	if err != nil {
		f.t.Fatal(err)
	}
	h.journal = vpn.NewJournal()
	if err := json.Unmarshal(text, h.journal); err != nil {
		f.t.Fatal(err)
	}
	h.engine, h.up = vpn.New(h.journal), false
	f.seen[h.number] = map[vpn.Key]vpn.Path{}
	h.engine.Tick(f.now)
	h.engine.Hold(h.have)
	h.engine.SetReach([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	h.engine.SetRouterMac(fmt.Sprintf("02:00:00:00:01:%02x", h.number))
	h.told()
}

func (h *host) told() {
	s := *h.set
	h.engine.SetIntent(&s)
	h.program()
}

// program gives the data plane what it should have.
func (h *host) program() {
	h.have = h.engine.Desired()
	ports := map[string]bool{}
	for _, p := range h.have.Ports {
		ports[p.Name] = true
	}
	h.engine.SetPorts(ports)
	ids := map[uint32]bool{}
	for _, n := range h.have.Nexthops {
		if ids[n.Id] {
			h.t.Fatalf("host %d: two next hops with id %d", h.number, n.Id)
		}
		ids[n.Id] = true
	}
	for _, r := range h.have.Routes {
		if !ids[r.Nexthop] {
			h.t.Fatalf("host %d: route %v leads to next hop %d, which is not there", h.number, r.Prefix, r.Nexthop)
		}
	}
}

// exchange lets everybody who has a session talk until nobody has news.
func (f *fleet) exchange() {
	for _, h := range f.hosts {
		if !h.up {
			continue
		}
		f.rib[h.number] = map[vpn.Key]vpn.Path{}
		for _, p := range h.engine.Announcements() {
			f.rib[h.number][p.Key] = p
		}
	}
	for _, h := range f.hosts {
		if h.up {
			f.send(h)
			h.program()
		}
	}
}

// send brings a client up to date, as FRR does: its own paths come back too.
func (f *fleet) send(h *host) {
	all := map[vpn.Key]vpn.Path{}
	for _, from := range f.rib {
		for _, p := range from {
			p.Peer = reflector
			all[p.Key] = p
		}
	}
	var gone []vpn.Key
	for k := range f.seen[h.number] {
		if _, there := all[k]; !there {
			gone = append(gone, k)
		}
	}
	h.engine.Withdraw(gone...)
	h.engine.Update(slices.Collect(maps.Values(all))...)
	f.seen[h.number] = all
}

func (f *fleet) connect(h *host) {
	h.up = true
	h.engine.PeerUp(reflector)
	f.seen[h.number] = map[vpn.Key]vpn.Path{}
	f.send(h)
	h.engine.EndOfRib(reflector)
	h.engine.Tick(f.now)
	h.program()
}

func (f *fleet) cut(h *host) {
	h.up = false
	h.engine.PeerDown(reflector)
	if f.r.IntN(2) == 0 {
		delete(f.rib, h.number) // a reflector without graceful restart
	}
}

func (f *fleet) step() {
	h := f.hosts[f.r.IntN(len(f.hosts))]
	f.now = f.now.Add(time.Duration(f.r.IntN(3000)) * time.Millisecond)
	for _, x := range f.hosts {
		x.engine.Tick(f.now)
		x.program()
	}
	switch f.r.IntN(8) {
	case 0, 1:
		f.attach(h)
	case 2:
		if n := len(h.set.Attachments); n > 0 {
			i := f.r.IntN(n)
			h.set.Attachments = append(slices.Clone(h.set.Attachments[:i]), h.set.Attachments[i+1:]...)
			h.told()
		}
	case 3:
		if h.up {
			f.unchanged(h, "its session was cut", func() { f.cut(h) })
		}
	case 4:
		f.unchanged(h, "its agent was restarted", func() { f.boot(h) })
	case 5:
		if !h.up {
			f.connect(h)
		}
	case 6:
		if f.r.IntN(5) == 0 { // the reflector dies
			f.rib = map[int]map[vpn.Key]vpn.Path{}
			for _, x := range f.hosts {
				f.unchanged(x, "the reflector died", func() { x.up = false; x.engine.PeerDown(reflector) })
			}
		}
	case 7:
		f.exchange()
	}
}

func (f *fleet) attach(h *host) {
	n := f.r.IntN(12) // few, so that hosts share addresses: anycast, and guests that move
	name := fmt.Sprintf("vm%d", n)
	vrf := fmt.Sprintf("vrf%d", n%3)
	if slices.ContainsFunc(h.set.Attachments, func(a *agentv1.Attachment) bool { return a.Port.Name == name }) ||
		!slices.ContainsFunc(h.set.Instances, func(i *agentv1.Instance) bool { return i.Vrf == vrf }) {
		return
	}
	h.set.Attachments = append(slices.Clone(h.set.Attachments), &agentv1.Attachment{Port: &apiv1.Port{
		Name: name, Vrf: vrf,
		GuestAddresses: []string{fmt.Sprintf("10.0.0.%d", n), fmt.Sprintf("2001:db8::%d", n)}}})
	h.told()
}

// unchanged checks that a fault takes no route and no next hop away.
func (f *fleet) unchanged(h *host, what string, fault func()) {
	routes, nexthops := h.have.Routes, fmt.Sprint(h.have.Nexthops)
	fault()
	h.program()
	if !slices.Equal(routes, h.have.Routes) || nexthops != fmt.Sprint(h.have.Nexthops) {
		f.t.Fatalf("host %d: %s, and its routes changed\nfrom %v %s\nto   %v %v", h.number, what, routes, nexthops,
			h.have.Routes, h.have.Nexthops)
	}
}

// settle ends all faults.
func (f *fleet) settle() {
	for _, h := range f.hosts {
		if !h.up {
			f.connect(h)
		}
	}
	for range 2 {
		f.exchange()
	}
	f.now = f.now.Add(time.Hour)
	for _, h := range f.hosts {
		h.engine.Tick(f.now)
		h.program()
	}
}

// check compares what each host forwards with where the guests are.
func (f *fleet) check() {
	for _, h := range f.hosts {
		tunnels := map[uint32][]string{}
		for _, n := range h.have.Nexthops {
			if t := n.GetTunnel(); t != nil {
				tunnels[n.Id] = []string{fmt.Sprintf("%s label %d%s", t.Remote, t.Label+t.Vni, t.RouterMac)}
			}
		}
		for _, n := range h.have.Nexthops {
			for _, m := range n.GetGroup().GetMembers() {
				tunnels[n.Id] = append(tunnels[n.Id], tunnels[m.Nexthop]...)
			}
		}
		got, want := map[string][]string{}, map[string][]string{}
		for _, r := range h.have.Routes {
			got[r.Vrf+" "+r.Prefix.String()] = tunnels[r.Nexthop]
		}
		own := map[string]bool{}
		for _, g := range guestsOf(h) {
			own[g] = true
		}
		for _, x := range f.hosts {
			for _, g := range guestsOf(x) {
				vrf := g[:4]
				if x != h && !own[g] && h.has(vrf) {
					label := fmt.Sprint(x.journal.Instances[vrf].Label)
					if vrf == "vrf2" {
						label = fmt.Sprintf("%d02:00:00:00:01:%02x", modelVni, x.number)
					}
					want[g] = append(want[g], addressOf(x.number)+" label "+label)
				}
			}
		}
		for _, m := range []map[string][]string{got, want} {
			for _, list := range m {
				slices.Sort(list)
			}
		}
		if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
			f.t.Fatalf("host %d forwards\n%v\nand should\n%v", h.number, got, want)
		}
	}
}

func (h *host) has(vrf string) bool {
	return slices.ContainsFunc(h.set.Instances, func(i *agentv1.Instance) bool { return i.Vrf == vrf })
}

func guestsOf(h *host) []string {
	var list []string
	for _, a := range h.set.Attachments {
		for _, g := range a.Port.GuestAddresses {
			addr := netip.MustParseAddr(g)
			list = append(list, a.Port.Vrf+" "+netip.PrefixFrom(addr, addr.BitLen()).String())
		}
	}
	return list
}

func TestFleet(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFleet(t, seed)
			for range 4 {
				for range 50 {
					f.step()
				}
				f.settle()
				f.check()
			}
			for _, h := range f.hosts { // restarts of all change nothing
				f.unchanged(h, "its agent was restarted", func() { f.boot(h) })
				f.unchanged(h, "its agent has heard all again", func() { f.connect(h) })
			}
			f.settle()
			f.check()
		})
	}
}
