// SPDX-License-Identifier: Apache-2.0
package state

import apiv1 "github.com/corelane/corelane/internal/api/v1"

// A host port is added after its fabric port and deleted before it. Addresses are steered while both exist.

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

func (d *differ) findGoneHosts() {
	for fabric, host := range d.hosts() {
		if d.isGone("ports", fabric) && !d.isGone("ports", host.Name) {
			d.gone["ports"][host.Name] = "its fabric port '" + fabric + "' is deleted first"
		}
	}
}

// hostGone says whether the host port of a fabric port is deleted, to be replaced or for good.
func (d *differ) hostGone(fabric string) bool {
	host := d.hosts()[fabric]
	return host != nil && d.isGone("ports", host.Name)
}

func (d *differ) delGonePorts() {
	for _, host := range []bool{true, false} {
		for _, p := range d.haveState.Ports {
			if why, gone := d.gone["ports"][p.Name]; gone && host == (p.Role == apiv1.PortRole_PORT_ROLE_HOST) {
				d.op(Del, "ports", nil, p, why)
			}
		}
	}
}

// hostsLast moves host ports to the end of a list, whose order is kept otherwise.
func hostsLast(ports []*apiv1.Port) []*apiv1.Port {
	var first, last []*apiv1.Port
	for _, p := range ports {
		if p.Role == apiv1.PortRole_PORT_ROLE_HOST {
			last = append(last, p)
		} else {
			first = append(first, p)
		}
	}
	return append(first, last...)
}
