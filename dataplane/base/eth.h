// SPDX-License-Identifier: Apache-2.0
// Ethernet for nodes.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#define ETHERTYPE_MPLS RTE_BE16(0x8847)

static inline bool eth_same(const struct rte_ether_addr *a, const struct rte_ether_addr *b)
{
	const unaligned_uint16_t *x = (const unaligned_uint16_t *)a, *y = (const unaligned_uint16_t *)b;

	return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

// ICMPv6 types 133 to 137: router and neighbour discovery. The IP header begins at offset l3.
static inline bool eth_is_nd(const struct rte_mbuf *m, unsigned l3)
{
	const struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, l3);
	uint8_t type;

	if (m->data_len < l3 + sizeof(*ip) + 4 || ip->proto != IPPROTO_ICMPV6)
		return false;
	type = *(const uint8_t *)(ip + 1);
	return type >= 133 && type <= 137;
}
