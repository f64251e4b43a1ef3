// SPDX-License-Identifier: Apache-2.0
package host

import "testing"

func TestLink(t *testing.T) {
	r := tree(t, map[string]string{
		"sys/class/net/eth1/flags": "0x1002", "sys/class/net/eth1/ifindex": "3", "sys/class/net/eth1/iflink": "3",
		"sys/class/net/v0/flags": "0x1003", "sys/class/net/v0/ifindex": "7", "sys/class/net/v0/iflink": "8",
		"sys/class/net/v1/flags": "0x1002", "sys/class/net/v1/ifindex": "8", "sys/class/net/v1/iflink": "7",
		"sys/class/net/far/flags": "0x1003", "sys/class/net/far/ifindex": "9", "sys/class/net/far/iflink": "3",
		"sys/class/net/odd/flags": "x", "sys/bus/pci/devices/0000:3b:00.0/net/ens1/x": ""})
	for name, want := range map[string]Link{
		"eth1": {Name: "eth1"},
		"v0":   {Name: "v0", Enabled: true, Peer: "v1"},
		"v1":   {Name: "v1", Peer: "v0", PeerEnabled: true},
		"far":  {Name: "far", Enabled: true}, // its other end is in a namespace, with the number of eth1
	} {
		if l, ok := r.Link(name); !ok || l != want {
			t.Errorf("%s: %+v, %v", name, l, ok)
		}
	}
	for _, name := range []string{"odd", "none"} {
		if l, ok := r.Link(name); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
	for devargs, want := range map[string]string{"net_af_packet0,iface=eth1,vnet=1": "eth1", "0000:3b:00.0": "ens1",
		"0000:3b:00.0,rx=2": "ens1", "0000:3b:00.1": "", "net_ring0": "", "": ""} {
		if got := r.InterfaceOf(devargs); got != want {
			t.Errorf("%s: '%s', want '%s'", devargs, got, want)
		}
	}
}
