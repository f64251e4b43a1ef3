// SPDX-License-Identifier: Apache-2.0
package router

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/corelane/corelane/internal/namespace"
)

// linuxSysctls make a router of the thread's namespace. The first one resets others.
func linuxSysctls() error {
	for _, s := range [][2]string{
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv6/conf/all/forwarding", "1"},
		{"net/ipv4/conf/all/rp_filter", "0"},
		{"net/ipv4/conf/default/rp_filter", "0"},
		{"net/ipv4/conf/all/send_redirects", "0"},
		{"net/ipv4/conf/default/send_redirects", "0"},
		{"net/bridge/bridge-nf-call-iptables", "0"},
		{"net/bridge/bridge-nf-call-ip6tables", "0"},
	} {
		if err := sysctl(s[0], s[1]); err != nil {
			return fmt.Errorf("sysctl %s: %w", s[0], err)
		}
	}
	return nil
}

// offloadsOff on all devices of the thread's namespace that have them.
func offloadsOff() error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, link := range links {
		if kind := link.Type(); kind != "veth" && kind != "vxlan" {
			continue
		}
		if err := namespace.OffloadsOff(link.Attrs().Name); err != nil {
			return err
		}
	}
	return nil
}
