// SPDX-License-Identifier: Apache-2.0
package state

import (
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// ports changes those that live and adds the others. An address that moves from one port to another is first taken
// from the one that has it.
func (d *differ) ports() {
	given := d.takeAddresses()
	for _, want := range d.wantState.Ports {
		if have := given[want.Name]; have != nil && len(changed(want, have)) > 0 {
			d.op(Set, "ports", want, have, "")
		}
	}
	for _, want := range d.wantState.Ports {
		if given[want.Name] == nil {
			d.op(Add, "ports", want, nil, "")
		}
	}
}

// takeAddresses returns the ports that live, without the addresses that another one is about to get.
func (d *differ) takeAddresses() map[string]*apiv1.Port {
	owner := map[string]string{} // wanted
	for _, p := range d.wantState.Ports {
		for _, key := range addressKeys(p) {
			owner[key] = p.Name
		}
	}
	left := map[string]*apiv1.Port{}
	for _, have := range d.haveState.Ports {
		if d.isGone("ports", have.Name) {
			continue
		}
		left[have.Name] = have
		less := proto.CloneOf(have)
		less.Addresses = keep(have.Addresses, func(a string) bool { return mine(owner, addressKey(have, a), have.Name) })
		less.GuestAddresses = keep(have.GuestAddresses, func(a string) bool { return mine(owner, guestKey(have, a), have.Name) })
		if len(changed(less, have)) > 0 {
			d.op(Set, "ports", less, have, "another port gets the address")
			left[have.Name] = less
		}
	}
	return left
}

func mine(owner map[string]string, key, name string) bool {
	return owner[key] == "" || owner[key] == name
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

func addressKey(p *apiv1.Port, address string) string { return "fabric " + address }

func guestKey(p *apiv1.Port, address string) string { return "guest " + p.Vrf + " " + address }

// addressKeys name what only one port can have.
func addressKeys(p *apiv1.Port) []string {
	var keys []string
	for _, a := range p.Addresses {
		keys = append(keys, addressKey(p, a))
	}
	for _, a := range p.GuestAddresses {
		keys = append(keys, guestKey(p, a))
	}
	return keys
}
