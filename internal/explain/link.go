// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"

	"github.com/corelane/corelane/internal/explain/host"
)

// isDead says whether the link of a port to the network is down, although packets came or went by it before. A guest's
// port is without its peer whenever the guest does not run.
func (p *Port) isDead() bool { return !p.Disabled && !p.Up && p.Carried > 0 && p.toNetwork() }

func (p *Port) toNetwork() bool { return p.Device == "dpdk" || p.Role == "fabric" }

// fillLinks reads the interfaces of the ports whose link is down.
func (e *Evidence) fillLinks(root host.Root) {
	e.Host.Links = map[string]host.Link{}
	for _, p := range e.Ports {
		name := p.Peer // of a tap
		if p.Device == "dpdk" {
			name = root.InterfaceOf(p.Peer)
		}
		if p.Up || p.Elsewhere || name == "" || p.Device != "dpdk" && p.Device != "tap" {
			continue
		}
		if l, ok := root.Link(name); ok {
			e.Host.Links[p.Name] = l
		}
	}
}

// describeLink says why the link of a port is down.
func describeLink(e *Evidence, p *Port, c *Cause) {
	l, known := e.Host.Links[p.Name]
	switch {
	case p.Up || p.Disabled || !known:
	case !l.Enabled:
		c.Why = fmt.Sprintf("its interface %s is administratively down", l.Name)
	case l.Peer != "" && !l.PeerEnabled:
		c.Why = fmt.Sprintf("the other end of its interface %s, %s, is administratively down", l.Name, l.Peer)
	default:
		c.Why = fmt.Sprintf("its interface %s is administratively up, but has no carrier", l.Name)
	}
}

const unlessDown = "the interface is administratively down; if that is not intended, bring it up:"

// remedyLink brings the link of a port up again.
func remedyLink(e *Evidence, p *Port, c *Cause) {
	l, known := e.Host.Links[p.Name]
	switch {
	case p.Disabled:
		c.FixNote = unlessMeant
		c.then("corelane port set %s --disabled=false", p.Name)
	case p.Up:
	case known && !l.Enabled:
		c.FixNote = unlessDown
		c.then("ip link set dev %s up", l.Name)
	case known && l.Peer != "" && !l.PeerEnabled:
		c.FixNote = unlessDown
		c.then("ip link set dev %s up", l.Peer)
	case p.toNetwork() && c.Fix == "":
		c.FixNote = "look at the cable, the transceiver, the switch's port, or the program at the other end of " +
			p.Peer
	}
}
