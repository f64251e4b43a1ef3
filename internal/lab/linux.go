// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/namespace"
)

// On a Linux host each network has a bridge of the kernel, with the guest and a VXLAN device as ports.

const vxlanPort = 4789

func (n Network) vxlanDevice() string { return fmt.Sprintf("vxlan%d", n.Vni) }

func (l *Lab) linuxNetwork(g Guest) error {
	if g.Host.Ovs {
		return nil // startOvs
	}
	return namespace.Do(l.Netns(g.Host.Name), func() error {
		if g.Second {
			return enslave(g.Network.Name, g.Name())
		}
		return bridge(g.Network.Name, int(g.Network.MTU), g.Name())
	})
}

// linuxTunnels makes the VXLAN devices of a host, or replaces them for another underlay.
func (l *Lab) linuxTunnels(h Host, u Underlay) error {
	return namespace.Do(l.Netns(h.Name), func() error {
		for _, g := range l.Guests() {
			if g.Host != h || len(l.Hosts) == 1 {
				continue
			}
			if err := l.linuxVxlan(g, u); err != nil {
				return fmt.Errorf("%s: %w", g.Network.vxlanDevice(), err)
			}
		}
		return nil
	})
}

func (l *Lab) linuxVxlan(g Guest, u Underlay) error {
	n := g.Network
	old, err := netlink.LinkByName(n.vxlanDevice())
	var none netlink.LinkNotFoundError
	switch {
	case err == nil:
		err = netlink.LinkDel(old)
	case errors.As(err, &none):
		err = nil
	}
	if err != nil {
		return err
	}
	fabric, err := netlink.LinkByName(fabricPort)
	if err != nil {
		return err
	}
	br, err := netlink.LinkByName(n.Name)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.MasterIndex = n.vxlanDevice(), int(n.MTU), br.Attrs().Index
	vx := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: int(n.Vni), VtepDevIndex: fabric.Attrs().Index,
		SrcAddr: net.ParseIP(g.Host.Address(u)), Port: vxlanPort, Learning: true}
	if err := netlink.LinkAdd(vx); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(vx); err != nil {
		return err
	}
	for _, peer := range l.peers(n, g.Host) {
		if err := floodTo(vx, peer.Address(u)); err != nil {
			return fmt.Errorf("flood to %s: %w", peer.Name, err)
		}
	}
	return nil
}

// floodTo makes a device send broadcast, multicast and unknown unicast to a tunnel end.
func floodTo(vx netlink.Link, remote string) error {
	return netlink.NeighAppend(&netlink.Neigh{LinkIndex: vx.Attrs().Index, Family: unix.AF_BRIDGE,
		State: netlink.NUD_PERMANENT | netlink.NUD_NOARP, Flags: netlink.NTF_SELF, IP: net.ParseIP(remote),
		HardwareAddr: make(net.HardwareAddr, 6)})
}
