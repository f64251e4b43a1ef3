// SPDX-License-Identifier: Apache-2.0
package state

import (
	"cmp"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// normalizeNat removes fields that repeat a default, and fills in those that the node derives from others.
func normalizeNat(r protoreflect.Message) {
	m, ok := r.Interface().(*apiv1.NatRule)
	if !ok {
		return
	}
	if m.ExternalVrf == m.Vrf {
		m.ExternalVrf = ""
	}
	if s := m.GetSource(); s != nil && s.Last == "" {
		s.Last = s.First
	}
	if m.FirstPort != 0 && m.LastPort == 0 {
		m.LastPort = m.FirstPort
	}
}

// natRange has the outside addresses of a rule.
type natRange struct {
	vrf         string
	first, last netip.Addr
}

func outsideOf(m *apiv1.NatRule) natRange {
	r := natRange{vrf: m.ExternalVrf}
	if r.vrf == "" {
		r.vrf = m.Vrf
	}
	first, last := m.GetFloating().GetOutside()+m.GetDestination().GetAddress()+m.GetSource().GetFirst(),
		m.GetSource().GetLast()
	if last == "" {
		last = first
	}
	r.first, _ = netip.ParseAddr(first) // an invalid address was reported by Load
	r.last, _ = netip.ParseAddr(last)
	return r
}

func (r natRange) has(vrf string, a netip.Addr) bool {
	return r.vrf == vrf && r.first.Compare(a) <= 0 && a.Compare(r.last) <= 0
}

// natIndex finds rules that exclude each other. The outside address of a floating rule belongs to that rule alone,
// and so does a service.
type natIndex struct {
	floating []*apiv1.NatRule // by VRF and address outside
	pools    []*apiv1.NatRule
	services map[natRange][]*apiv1.NatRule
}

func compareOutside(a, b natRange) int {
	if c := cmp.Compare(a.vrf, b.vrf); c != 0 {
		return c
	}
	return a.first.Compare(b.first)
}

func newNatIndex(rules []*apiv1.NatRule) *natIndex {
	x := &natIndex{services: map[natRange][]*apiv1.NatRule{}}
	for _, m := range rules {
		switch {
		case m.GetFloating() != nil:
			x.floating = append(x.floating, m)
		case m.GetSource() != nil:
			x.pools = append(x.pools, m)
		default:
			x.services[outsideOf(m)] = append(x.services[outsideOf(m)], m)
		}
	}
	slices.SortStableFunc(x.floating, func(a, b *apiv1.NatRule) int {
		return compareOutside(outsideOf(a), outsideOf(b))
	})
	return x
}

// clash returns a rule of another id that excludes m, or nil.
func (x *natIndex) clash(m *apiv1.NatRule) *apiv1.NatRule {
	r := outsideOf(m)
	at, _ := slices.BinarySearchFunc(x.floating, r, func(f *apiv1.NatRule, r natRange) int {
		return compareOutside(outsideOf(f), r)
	})
	for _, f := range x.floating[at:] {
		if !r.has(outsideOf(f).vrf, outsideOf(f).first) {
			break
		}
		if f.Id != m.Id {
			return f
		}
	}
	if m.GetFloating() != nil {
		for _, p := range x.pools {
			if p.Id != m.Id && outsideOf(p).has(r.vrf, r.first) {
				return p
			}
		}
	}
	for _, s := range x.services[r] {
		same := s.Protocol == m.Protocol && s.GetDestination().Port == m.GetDestination().GetPort()
		if s.Id != m.Id && (m.GetFloating() != nil || m.GetDestination() != nil && same) {
			return s
		}
	}
	return nil
}

// natGuest returns a port whose guest or gateway has an outside address of the rule, or "".
func natGuest(m *apiv1.NatRule, ports []*apiv1.Port) string {
	r := outsideOf(m)
	for _, p := range ports {
		if p.Vrf != r.vrf || p.Role != apiv1.PortRole_PORT_ROLE_TENANT {
			continue
		}
		for _, text := range p.Gateways {
			if gw, err := netip.ParsePrefix(text); err == nil && r.has(p.Vrf, gw.Addr()) {
				return p.Name
			}
		}
		for _, text := range p.GuestAddresses {
			for _, key := range guestKeys(p, text) {
				if key.Prefix.Contains(r.first) || r.has(p.Vrf, key.Prefix.Addr()) {
					return p.Name
				}
			}
		}
	}
	return ""
}

// findClashes finds rules that change and have an address that another rule gets. They are deleted first.
func (d *differ) findClashes() {
	d.natClash = map[uint32]bool{}
	x := newNatIndex(d.wantState.Nat)
	for _, have := range d.haveState.Nat {
		if want := d.want["nat"][keyOf(have)]; want != nil && len(changed(want, have)) > 0 && x.clash(have) != nil {
			d.natClash[have.Id] = true
		}
	}
}
