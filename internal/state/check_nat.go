// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v3"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// natPool is the largest number of addresses in the pool of a rule (dataplane/policy/nat.h).
const natPool = 65536

func natHasPorts(p apiv1.NatProtocol) bool {
	return p == apiv1.NatProtocol_NAT_PROTOCOL_TCP || p == apiv1.NatProtocol_NAT_PROTOCOL_UDP ||
		p == apiv1.NatProtocol_NAT_PROTOCOL_SCTP
}

func (l *loader) checkNat(path string, n *yaml.Node, m *apiv1.NatRule) {
	for name, vrf := range map[string]string{"vrf": m.Vrf, "external_vrf": m.ExternalVrf} {
		if vrf == FabricVrf {
			l.fail(l.at(n), path+"."+name, "another VRF", "'%s' belongs to the underlay", FabricVrf)
		}
	}
	l.checkNatFamily(path, n, m)
	switch {
	case m.LastPort != 0 && m.LastPort < m.FirstPort:
		l.fail(l.at(n), path+".last_port", "a port from first_port on", "%d comes before the first one", m.LastPort)
	case (m.FirstPort != 0 || m.LastPort != 0) && !natHasPorts(m.Protocol):
		l.fail(l.at(n), path+".first_port", "a rule of protocol TCP, UDP or SCTP",
			"ports need a protocol that has them")
	}
	if m.GetSource() != nil {
		l.checkNatPool(path+".source", n, m.GetSource())
	}
	if m.GetDestination() != nil {
		l.checkNatService(path, n, m)
	}
}

// checkNatFamily checks that all addresses of a rule are of one family.
func (l *loader) checkNatFamily(path string, n *yaml.Node, m *apiv1.NatRule) {
	list := []string{m.GetFloating().GetInside(), m.GetFloating().GetOutside(), m.GetSource().GetPrefix(),
		m.GetSource().GetFirst(), m.GetSource().GetLast(), m.GetDestination().GetAddress(), m.To}
	for _, b := range m.GetDestination().GetBackends() {
		list = append(list, b.Address)
	}
	first := ""
	for _, text := range append(list, m.Except...) {
		switch {
		case text == "":
		case first == "":
			first = text
		case isIPv4(text) != isIPv4(first):
			l.fail(l.at(n), path, "addresses of one family",
				"'%s' and '%s' have different IP versions; NAT between IPv4 and IPv6 is not supported", first, text)
			return
		}
	}
}

func isIPv4(text string) bool {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr().Is4()
	}
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is4()
}

func (l *loader) checkNatPool(path string, n *yaml.Node, s *apiv1.SourceNat) {
	first, _ := netip.ParseAddr(s.First)
	last, err := netip.ParseAddr(s.Last)
	from, to := s.FirstPort, s.LastPort
	if from == 0 {
		from = uint32(natPort.Default[0])
	}
	switch {
	case err == nil && first.BitLen() == last.BitLen() && last.Less(first):
		l.fail(l.at(n), path+".last", "source.first or a higher address", "'%s' comes before the first one", s.Last)
	case err == nil && first.BitLen() == last.BitLen() && !within(first, last, natPool):
		l.fail(l.at(n), path+".last", fmt.Sprintf("a pool of up to %d addresses", natPool),
			"'%s' makes the pool larger than %d addresses", s.Last, natPool)
	case to != 0 && to < from:
		l.fail(l.at(n), path+".last_port", "a port from source.first_port on", "%d comes before the first one", to)
	}
}

// within says whether first to last are at most n addresses.
func within(first, last netip.Addr, n uint64) bool {
	a, b := first.As16(), last.As16()
	var size uint64
	for i := range a {
		size = size*256 + uint64(b[i]) - uint64(a[i])
		if int64(size) > 1<<24 {
			return false
		}
	}
	return size < n
}

var (
	natPort      = limits.Of((&apiv1.SourceNat{}).ProtoReflect().Descriptor().Fields().ByName("first_port"))
	mostBackends = limits.Of((&apiv1.DestinationNat{}).ProtoReflect().Descriptor().Fields().ByName("backends")).Items
)

func (l *loader) checkNatService(path string, n *yaml.Node, m *apiv1.NatRule) {
	d := m.GetDestination()
	switch {
	case len(d.Backends) == 0:
		l.fail(l.at(n), path+".destination.backends", fmt.Sprintf("1 to %d backends", mostBackends),
			"the service has no backends")
	case d.Port != 0 && !natHasPorts(m.Protocol):
		l.fail(l.at(n), path+".destination.port", "a rule of protocol TCP, UDP or SCTP",
			"a port needs a protocol that has ports")
	case m.To != "" || len(m.Except) > 0 || m.FirstPort != 0 || m.LastPort != 0:
		l.fail(l.at(n), path, "rules of kind floating or source",
			"a service has an address and a port of its own, so to, except, first_port and last_port do not apply")
	}
	for _, b := range d.Backends {
		switch {
		case b.Port != 0 && !natHasPorts(m.Protocol):
			l.fail(l.at(n), path+".destination.backends", "a rule of protocol TCP or UDP",
				"port %d: another port needs a protocol that has ports", b.Port)
		case b.Port != 0 && m.Protocol == apiv1.NatProtocol_NAT_PROTOCOL_SCTP && b.Port != d.Port:
			l.fail(l.at(n), path+".destination.backends", "the service's port, or none",
				"port %d: ports of SCTP are not translated", b.Port)
		}
	}
}

// clashesOfNat finds outside addresses that another rule, a guest or a gateway has too.
func (l *loader) clashesOfNat() {
	x := newNatIndex(l.state.Nat)
	for _, m := range l.state.Nat {
		at := l.defs["nat"][keyOf(m)]
		r := outsideOf(m)
		if other := x.clash(m); other != nil && other.Id < m.Id {
			l.fail(at, "nat", "outside addresses that no other rule of the VRF has",
				"the outside addresses of rule %d (from %s in VRF '%s') overlap with those of rule %d", m.Id, r.first,
				r.vrf, other.Id)
		}
		if port := natGuest(m, l.state.Ports); port != "" {
			l.fail(at, "nat", "outside addresses that no guest or gateway has",
				"the outside addresses of rule %d (from %s in VRF '%s') overlap with those of the port '%s'",
				m.Id, r.first, r.vrf, port)
		}
		if f := m.GetFloating(); f != nil && f.Inside == f.Outside && m.ExternalVrf == "" {
			l.fail(at, "nat", "another address, or another external_vrf",
				"rule %d: %s is the same as the inside address", m.Id, f.Outside)
		}
	}
}
