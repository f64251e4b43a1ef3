// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"encoding/binary"
	"net/netip"
)

// destinations returns n different prefixes, always the same ones, which look random: /24 over the unicast space,
// without the networks of ports and tunnels. For IPv6 it is a single prefix.
func destinations(n int, v6 bool) []netip.Prefix {
	if v6 {
		return []netip.Prefix{netip.MustParsePrefix("2001:db8::/64")}
	}
	list := make([]netip.Prefix, 0, n)
	for i := uint32(0); len(list) < n; i++ {
		if p := prefix4(scatter(i)); usable(p.Addr()) {
			list = append(list, p)
		}
	}
	return list
}

// scatter permutes the numbers of 24 bits. Each step is invertible, so no two numbers give the same one.
func scatter(x uint32) uint32 {
	for _, odd := range []uint32{0x9e3779b1, 0x85ebca6b, 0xc2b2ae35} {
		x = (x + 1) * odd & 0xffffff
		x ^= x >> 12
	}
	return x
}

func prefix4(network uint32) netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], network<<8)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}

// usable says whether an address is unicast, not loopback, and not in the networks of ports and tunnels.
func usable(a netip.Addr) bool {
	switch first := a.As4()[0]; first {
	case 0, 10, 127, 192, 198:
		return false
	default:
		return first < 224
	}
}

// host is the destination of packets to a prefix.
func host(p netip.Prefix) netip.Addr { return p.Addr().Next() }
