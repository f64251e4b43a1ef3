// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/procfs"
)

// addNetns makes a named namespace in which IPv6 addresses are usable at once.
func (l *Ledger) addNetns(name string) error {
	if _, err := os.Stat(filepath.Join(namespace.Dir, name)); err == nil {
		return fmt.Errorf("namespace %s exists, but no lab made it: ip netns del %s", name, name)
	}
	l.Namespaces = append(l.Namespaces, name)
	if err := l.save(); err != nil {
		return err
	}
	return namespace.New(name, func() error {
		for _, s := range []string{"accept_dad", "accept_ra", "router_solicitations"} {
			if err := namespace.Sysctl("net/ipv6/conf/default/"+s, "0"); err != nil {
				return err
			}
		}
		return nil
	})
}

// end is one end of a veth pair.
type end struct {
	netns, name, mac string
	wire             Wire
}

// wire connects two namespaces. Both ends are made in place, and never exist in the namespace of the machine.
func wire(a, b end, mtu int) error {
	peer, err := netns.GetFromName(b.netns)
	if err != nil {
		return err
	}
	defer peer.Close()
	err = namespace.Do(a.netns, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.HardwareAddr = a.name, mtu, parseMAC(a.mac)
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: b.name, PeerHardwareAddr: parseMAC(b.mac),
			PeerNamespace: netlink.NsFd(int(peer))})
	})
	if err != nil {
		return fmt.Errorf("wire from %s to %s: %w", a.netns, b.netns, err)
	}
	for _, e := range []end{a, b} {
		if err := namespace.Do(e.netns, func() error { return e.up(mtu) }); err != nil {
			return fmt.Errorf("%s in %s: %w", e.name, e.netns, err)
		}
	}
	return nil
}

func parseMAC(text string) net.HardwareAddr {
	mac, err := net.ParseMAC(text)
	if err != nil {
		return nil // the kernel chooses
	}
	return mac
}

// up sets the MTU and brings an end up, with the offloads of its wire. A corelaned at the other end has to see packets
// as on a cable, with checksums.
func (e end) up(mtu int) error {
	link, err := netlink.LinkByName(e.name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return err
	}
	switch e.wire {
	case WireFinished:
		err = namespace.OffloadsOff(e.name)
	case WireCut:
		err = namespace.SegmentationOff(e.name)
	}
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// addresses gives an interface of the current namespace its addresses; IPv6 ones are usable at once.
func addresses(ifname string, cidrs ...string) error {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return err
	}
	for _, cidr := range cidrs {
		addr, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		addr.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("address %s of %s: %w", cidr, ifname, err)
		}
	}
	return netlink.LinkSetUp(link)
}

func defaultRoute(gateway string) error {
	dst := "0.0.0.0/0"
	if strings.Contains(gateway, ":") {
		dst = "::/0"
	}
	_, all, err := net.ParseCIDR(dst)
	if err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{Dst: all, Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("default route via %s: %w", gateway, err)
	}
	return nil
}

// bridge makes a bridge of the kernel in the current namespace, with some of its interfaces as ports.
func bridge(name string, mtu int, ports ...string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	br := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(br); err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	for _, port := range ports {
		if err := enslave(name, port); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(br)
}

// enslave makes an interface of the current namespace a port of a bridge.
func enslave(bridge, port string) error {
	br, err := netlink.LinkByName(bridge)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(port)
	if err == nil {
		err = netlink.LinkSetMaster(link, br)
	}
	if err != nil {
		return fmt.Errorf("bridge %s, port %s: %w", bridge, port, err)
	}
	return nil
}

// foreignProcesses lists processes in a lab's namespaces that the lab did not start. They keep the namespace alive
// without its name.
func foreignProcesses(namespaces []string, ours []Process) []string {
	inodes := map[uint64]string{}
	for _, name := range namespaces {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(namespace.Dir, name), &st) == nil {
			inodes[st.Ino] = name
		}
	}
	own := map[int]bool{os.Getpid(): true}
	for _, p := range ours {
		own[p.Pid] = true
	}
	pids, _ := procfs.Host.Processes() // an incomplete list is better than none
	var list []string
	for _, pid := range pids {
		var st unix.Stat_t
		if own[pid] || unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &st) != nil || inodes[st.Ino] == "" {
			continue
		}
		list = append(list, fmt.Sprintf("%s (pid %d) in %s", procfs.Host.Name(pid), pid, inodes[st.Ino]))
	}
	return list
}
