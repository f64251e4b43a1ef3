// SPDX-License-Identifier: Apache-2.0
package state

import apiv1 "github.com/corelane/corelane/internal/api/v1"

// A host port is added after its fabric port and deleted before it, and so is a sub-port with its parent. Addresses are
// steered while a fabric port and its host port exist.

// portBelow returns the port that this one needs: its fabric port or its parent; empty: none.
func portBelow(p *apiv1.Port) string {
	if p.Role == apiv1.PortRole_PORT_ROLE_HOST {
		return p.Fabric
	}
	return p.GetSubport().GetParent()
}

// hosts returns the host ports of the node, by fabric port.
func (d *differ) hosts() map[string]*apiv1.Port {
	byFabric := map[string]*apiv1.Port{}
	for _, p := range d.haveState.Ports {
		if p.Role == apiv1.PortRole_PORT_ROLE_HOST {
			byFabric[p.Fabric] = p
		}
	}
	return byFabric
}

func (d *differ) findGoneDependents() {
	for _, p := range d.haveState.Ports {
		below := portBelow(p)
		if below == "" || !d.isGone("ports", below) || d.isGone("ports", p.Name) {
			continue
		}
		what := "parent"
		if p.Role == apiv1.PortRole_PORT_ROLE_HOST {
			what = "fabric port"
		}
		d.gone["ports"][p.Name] = "its " + what + " '" + below + "' is deleted first"
	}
}

// hostGone says whether the host port of a fabric port is deleted, to be replaced or for good.
func (d *differ) hostGone(fabric string) bool {
	host := d.hosts()[fabric]
	return host != nil && d.isGone("ports", host.Name)
}

func (d *differ) delGonePorts() {
	for _, p := range partition(d.haveState.Ports, func(p *apiv1.Port) bool { return portBelow(p) != "" }) {
		if why, gone := d.gone["ports"][p.Name]; gone {
			d.op(Del, "ports", nil, p, why)
		}
	}
}

// dependentsLast moves host ports and sub-ports to the end of a list, whose order is kept otherwise.
func dependentsLast(ports []*apiv1.Port) []*apiv1.Port {
	return partition(ports, func(p *apiv1.Port) bool { return portBelow(p) == "" })
}

// narrowedFirst moves sub-ports whose MTU falls to the start of a list, and the other sub-ports to its end: a sub-port
// never has a larger MTU than its parent.
func narrowedFirst(ports []*apiv1.Port, have map[string]*apiv1.Port) []*apiv1.Port {
	return partition(dependentsLast(ports), func(p *apiv1.Port) bool {
		old := have[p.Name]
		return p.GetSubport() != nil && old != nil && mtuOf(p) < mtuOf(old)
	})
}

// partition moves the ports for which first holds to the start of a list, whose order is kept otherwise.
func partition(ports []*apiv1.Port, first func(*apiv1.Port) bool) []*apiv1.Port {
	var a, b []*apiv1.Port
	for _, p := range ports {
		if first(p) {
			a = append(a, p)
		} else {
			b = append(b, p)
		}
	}
	return append(a, b...)
}
