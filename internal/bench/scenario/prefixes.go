// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"encoding/binary"
	"net/netip"
)

// destinations are n different prefixes, always the same ones, that look random: /24 over the unicast space. None of them has
// an address of a port or a tunnel. Of IPv6 there is one.
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

// scatter permutes the numbers of 24 bits: steps that can be undone, so no two numbers meet.
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

// usable: unicast, and neither loopback nor in the networks that the ports' and tunnels' addresses are from.
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
