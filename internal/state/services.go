// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func normalizeService(r protoreflect.Message) {
	if s, ok := r.Interface().(*apiv1.Service); ok && s.ExternalVrf == s.Vrf {
		s.ExternalVrf = ""
	}
}

// front is what only one service can have.
func front(s *apiv1.Service) string {
	vrf := s.ExternalVrf
	if vrf == "" {
		vrf = s.Vrf
	}
	return fmt.Sprint(vrf, " ", s.Address, " ", s.Protocol, " ", s.Port)
}

func (l *loader) checkService(path string, n *yaml.Node, s *apiv1.Service) {
	for name, vrf := range map[string]string{"vrf": s.Vrf, "external_vrf": s.ExternalVrf} {
		if vrf == FabricVrf {
			l.fail(l.at(n), path+"."+name, "another VRF", "'%s' belongs to the underlay", FabricVrf)
		}
	}
	if s.Port != 0 && !natHasPorts(s.Protocol) {
		l.fail(l.at(n), path+".port", "a service of protocol TCP, UDP or SCTP",
			"a port needs a protocol that has ports")
	}
	if s.ClientPrefix > 32 && isIPv4(s.Address) {
		l.fail(l.at(n), path+".client_prefix", "0 to 32", "%d is longer than an IPv4 address", s.ClientPrefix)
	}
}

// checkServices finds services that exclude each other or an address of a translation rule, and endpoints that their
// service cannot have.
func (l *loader) checkServices() {
	named, taken, count := map[string]*apiv1.Service{}, map[string]string{}, map[string]uint32{}
	for _, s := range l.state.Services {
		named[s.Name] = s
		if other := taken[front(s)]; other != "" {
			l.fail(l.defs["services"][s.Name], "services", "another address, port or protocol",
				"service '%s' has what service '%s' has", s.Name, other)
		}
		taken[front(s)] = s.Name
		if rule := serviceClash(s, l.state.Nat); rule != nil {
			l.fail(l.defs["services"][s.Name], "services", "an address that is not in use",
				"service '%s' has an address of NAT rule %d", s.Name, rule.Id)
		}
	}
	for _, e := range l.state.Endpoints {
		s := named[e.Service]
		if s == nil {
			continue // reported as an unknown name
		}
		at := l.defs["endpoints"][keyOf(e)]
		if count[e.Service]++; count[e.Service] == s.MaxEndpoints+1 {
			l.fail(at, "endpoints", "a larger max_endpoints",
				"service '%s' has more than %d", e.Service, s.MaxEndpoints)
		}
		if isIPv4(e.Address) != isIPv4(s.Address) {
			l.fail(at, "endpoints", "addresses of one family",
				"'%s' and '%s' of service '%s' have different IP versions",
				e.Address, s.Address, s.Name)
		}
		switch {
		case e.Port == 0:
		case !natHasPorts(s.Protocol):
			l.fail(at, "endpoints", "a service of protocol TCP, UDP or SCTP",
				"the service's protocol has no ports")
		case s.Protocol == apiv1.NatProtocol_NAT_PROTOCOL_SCTP && e.Port != s.Port:
			l.fail(at, "endpoints", "the service's port, or 0", "ports of SCTP are not translated")
		}
	}
}

// serviceClash returns the translation rule that excludes a service, or nil.
func serviceClash(s *apiv1.Service, rules []*apiv1.NatRule) *apiv1.NatRule {
	as := &apiv1.NatRule{Vrf: s.Vrf, ExternalVrf: s.ExternalVrf, Protocol: s.Protocol,
		Kind: &apiv1.NatRule_Destination{Destination: &apiv1.DestinationNat{Address: s.Address, Port: s.Port}}}
	return newNatIndex(rules).clash(as)
}

// findGoneServices decides which services are deleted before any object is added, with their endpoints: those with
// another address, and those of VRFs that are deleted first.
func (d *differ) findGoneServices() {
	for _, have := range d.haveState.Services {
		want, _ := d.want["services"][have.Name].(*apiv1.Service)
		if want == nil {
			continue // all of its endpoints are unwanted, too
		}
		fixed := slices.DeleteFunc(changed(want, have), func(f string) bool {
			return f == "scheduler" || f == "no_endpoints" || f == "client_prefix"
		})
		if len(fixed) > 0 || d.namesGone(have) {
			d.gone["services"][have.Name] = "its address or VRF changes"
		}
	}
}
