// SPDX-License-Identifier: Apache-2.0
package state

import (
	"net/netip"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// ports changes the ports that stay and adds the others. An address that moves from one port to another is first
// removed from the port that has it.
func (d *differ) ports() {
	left := d.takeAddresses()
	for _, want := range narrowedFirst(d.wantState.Ports, left) {
		want = d.withMirror(want)
		if have := left[want.Name]; have != nil && len(changed(want, have)) > 0 {
			d.op(Set, "ports", want, have, "")
		}
	}
	for _, want := range dependentsLast(d.wantState.Ports) {
		if left[want.Name] == nil {
			d.op(Add, "ports", d.withMirror(want), nil, "")
		}
	}
}

// takeAddresses removes addresses from ports if other ports get them, and the VRF if the port's bridge moves to another
// one: all ports of a bridge are in one VRF. It returns the ports that stay, as they are then.
func (d *differ) takeAddresses() map[string]*apiv1.Port {
	owner := map[Route]string{} // wanted owners of prefixes
	vrf := map[string]string{}  // wanted VRFs of bridges
	for _, p := range d.wantState.Ports {
		for _, key := range addressKeys(p) {
			owner[key] = p.Name
		}
		if p.Vrf != "" {
			vrf[p.Bridge] = p.Vrf
		}
	}
	left := map[string]*apiv1.Port{}
	for _, have := range d.haveState.Ports {
		if d.isGone("ports", have.Name) {
			continue
		}
		left[have.Name] = have
		less := proto.CloneOf(have)
		less.Addresses = keep(have.Addresses, func(a string) bool { return noOther(owner, fabricKeys(a), have.Name) })
		less.GuestAddresses = keep(have.GuestAddresses, func(a string) bool {
			return noOther(owner, guestKeys(have, a), have.Name)
		})
		why := "another port gets the address"
		if next := vrf[have.Bridge]; have.Bridge != "" && have.Vrf != "" && next != "" && next != have.Vrf {
			less.Vrf, less.Gateways = "", nil
			less.FlowLimit, less.FlowRate = 0, 0
			less.Stateful, less.EgressRules, less.IngressRules = false, "", ""
			less.EgressMeter, less.IngressMeter, less.Mirror = "", "", ""
			if less.SourceCheck == apiv1.SourceCheck_SOURCE_CHECK_REVERSE_PATH {
				less.SourceCheck = apiv1.SourceCheck_SOURCE_CHECK_DEFAULT
			}
			why = "its bridge moves to another VRF"
		}
		if len(changed(less, have)) > 0 {
			d.op(Set, "ports", less, have, why)
			left[have.Name] = less
		}
	}
	return left
}

// noOther says whether no other port gets one of the prefixes.
func noOther(owner map[Route]string, keys []Route, name string) bool {
	for _, key := range keys {
		if owner[key] != "" && owner[key] != name {
			return false
		}
	}
	return true
}

func keep(list []string, ok func(string) bool) []string {
	var out []string
	for _, s := range list {
		if ok(s) {
			out = append(out, s)
		}
	}
	return out
}

// addressKeys returns the prefixes that only one port can have: Vrf and Prefix of a Route. Several may share a gateway,
// and guests that are only bridged any address.
func addressKeys(p *apiv1.Port) []Route {
	var keys []Route
	for _, a := range p.Addresses {
		keys = append(keys, fabricKeys(a)...)
	}
	for _, a := range p.GuestAddresses {
		keys = append(keys, guestKeys(p, a)...)
	}
	return keys
}

// fabricKeys returns the address itself and the prefix of its link.
func fabricKeys(cidr string) []Route {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil // not an address, which Load has reported
	}
	return []Route{{Vrf: FabricVrf, Prefix: host(p.Addr())}, {Vrf: FabricVrf, Prefix: p.Masked()}}
}

func guestKeys(p *apiv1.Port, address string) []Route {
	if p.Vrf == "" {
		return nil
	}
	if a, err := netip.ParseAddr(address); err == nil {
		return []Route{{Vrf: p.Vrf, Prefix: host(a)}}
	}
	prefix, err := netip.ParsePrefix(address)
	if err != nil {
		return nil
	}
	return []Route{{Vrf: p.Vrf, Prefix: prefix}}
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// ownPrefixes returns the prefixes for which a node adds routes by itself because of a port.
func ownPrefixes(p *apiv1.Port) []Route {
	list := addressKeys(p)
	for _, cidr := range p.Gateways {
		if gw, err := netip.ParsePrefix(cidr); err == nil {
			list = append(list, Route{Vrf: p.Vrf, Prefix: host(gw.Addr())})
		}
	}
	return list
}
