// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/state"
)

func (k Key) compare(b Key) int {
	return cmp.Or(k.Peer.Compare(b.Peer), compareTargets(k.RD, b.RD), cmp.Compare(k.Kind, b.Kind),
		comparePrefixes(k.Prefix, b.Prefix), slices.Compare(k.Mac[:], b.Mac[:]), cmp.Compare(k.Tag, b.Tag),
		cmp.Compare(k.ID, b.ID))
}

func compareTargets(a, b Target) int {
	return cmp.Or(cmp.Compare(a.Form, b.Form), slices.Compare(a.Value[:], b.Value[:]))
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// Desired returns all objects that the data plane should have from this agent.
func (e *Engine) Desired() *state.State {
	e.settle()
	clear(e.nexthops.touched)
	s := &state.State{}
	for _, v := range e.vrfs {
		s.Vrfs = append(s.Vrfs, &apiv1.Vrf{Name: v.name})
		if v.evpn() {
			s.Vnis = append(s.Vnis, &apiv1.Vni{Vni: v.instance.Vni, Target: &apiv1.Vni_Vrf{Vrf: v.name}})
		}
		if v.label != 0 {
			s.Labels = append(s.Labels, &apiv1.Label{Label: v.label, Target: &apiv1.Label_Vrf{Vrf: v.name}})
		}
		for p, n := range v.routes {
			s.Routes = append(s.Routes, state.Route{Vrf: v.name, Prefix: p, Nexthop: n.id})
		}
	}
	for _, g := range e.segments {
		s.Vnis = append(s.Vnis, &apiv1.Vni{Vni: g.config.Vni, Target: &apiv1.Vni_Bridge{Bridge: g.config.Bridge}})
		g.given, g.bridge = map[Mac]*apiv1.Mac{}, nil
		e.giveBridge(g, s)
		for t := range g.remote {
			e.giveMac(g, t.mac, s)
		}
		for m := range g.local {
			e.giveMac(g, m, s)
		}
	}
	for _, h := range e.nexthops.byKey {
		s.Nexthops = append(s.Nexthops, h.message())
	}
	for _, a := range e.intent.Attachments {
		s.Ports = append(s.Ports, proto.Clone(a.Port).(*apiv1.Port))
	}
	e.addHeld(s)
	finish(s)
	e.changes = newChanges(&state.State{Vrfs: s.Vrfs, Vnis: s.Vnis, Labels: s.Labels, Ports: s.Ports})
	return s
}

// finish brings the objects into the order in which states are compared.
func finish(s *state.State) {
	slices.SortFunc(s.Routes, state.CompareRoutes) // faster than a sort that is stable
	s.Normalize()
}

// Judge lists received paths with their verdicts: those of a prefix, or all with the zero prefix.
func (e *Engine) Judge(vrfName string, p netip.Prefix, each func(Judged)) {
	e.settle()
	prefixes := []netip.Prefix{p}
	if !p.IsValid() {
		prefixes = prefixes[:0]
		for s := range e.bySubject {
			if s.kind == KindIP {
				prefixes = append(prefixes, s.prefix)
			}
		}
		slices.SortFunc(prefixes, comparePrefixes)
	}
	names := make([]string, 0, len(e.vrfs))
	for name := range e.vrfs {
		if vrfName == "" || name == vrfName {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	for _, q := range prefixes {
		imported := map[*entry]bool{}
		for _, name := range names {
			v := e.vrfs[name]
			for _, j := range e.judge(v, q) {
				if x := e.paths[j.Path.Key]; x != nil {
					imported[x] = true
				}
				if j.Verdict == Used && v.routes[q] == nil {
					j.Verdict, j.Reason = e.limit(v)
				}
				each(j)
			}
		}
		for _, x := range e.bySubject[prefixSubject(q)] {
			if !imported[x] && (vrfName == "" || e.vrfs[vrfName] != nil) {
				each(Judged{x.Path, x.age() > 0, "", "", NotImported, "it has " + targetsText(x.Targets)})
			}
		}
	}
}

func (e *Engine) limit(v *vrf) (Verdict, string) {
	if len(v.routes) >= int(v.instance.RouteLimit) {
		return TooManyRoutes, "the instance's route_limit is reached"
	}
	return NoNexthop, "all ids from nexthop_min to nexthop_max are taken"
}

func targetsText(list []Target) string {
	if len(list) == 0 {
		return "no route target"
	}
	var texts []string
	for _, t := range list {
		texts = append(texts, t.String())
	}
	return "targets " + strings.Join(texts, ", ")
}
