// SPDX-License-Identifier: Apache-2.0
package host

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Link is the network interface of a port.
type Link struct {
	Name    string
	Enabled bool // administratively up
	// its other end, if that is another interface of this machine (veth), and whether it is administratively up
	Peer        string
	PeerEnabled bool
}

const administrativelyUp = 1 // IFF_UP of netdevice(7)

// Link reads the state of an interface.
func (r Root) Link(name string) (l Link, ok bool) {
	enabled, err := r.enabled(name)
	l = Link{Name: name, Enabled: enabled}
	index, _ := r.text("sys/class/net", name, "ifindex")
	others, _ := filepath.Glob(r.path("sys/class/net/*")) // the pattern is well formed
	to, _ := r.text("sys/class/net", name, "iflink")
	for _, dir := range others {
		other := filepath.Base(dir)
		its, _ := r.text("sys/class/net", other, "ifindex")
		back, _ := r.text("sys/class/net", other, "iflink")
		// an end in another namespace may have the number of an interface of this one, which does not lead back
		if other != name && its != "" && its == to && back == index {
			l.Peer = other
			l.PeerEnabled, _ = r.enabled(other)
		}
	}
	return l, err == nil
}

func (r Root) enabled(name string) (bool, error) {
	text, err := r.text("sys/class/net", name, "flags")
	flags, err2 := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err == nil {
		err = err2
	}
	return flags&administrativelyUp != 0, err
}

// InterfaceOf returns the interface of a DPDK device, "net_af_packet0,iface=eth1" or "0000:3b:00.0"; "": it has none.
func (r Root) InterfaceOf(devargs string) string {
	for _, arg := range strings.Split(devargs, ",") {
		if name, ok := strings.CutPrefix(arg, "iface="); ok {
			return name
		}
	}
	address, _, _ := strings.Cut(devargs, ",")
	found, _ := filepath.Glob(r.path("sys/bus/pci/devices", address, "net/*")) // no name has special characters
	if address == "" || len(found) == 0 {
		return ""
	}
	return filepath.Base(found[0])
}
