// SPDX-License-Identifier: Apache-2.0
// Ethernet for nodes.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#define ETHERTYPE_MPLS RTE_BE16(0x8847)

// An address that has two more bytes behind it, as a word for comparisons.
static inline uint64_t eth_word(const struct rte_ether_addr *a)
{
	return *(const unaligned_uint64_t *)a & RTE_BE64(0xffffffffffff0000);
}

static inline bool eth_same(const struct rte_ether_addr *a, const struct rte_ether_addr *b)
{
	const unaligned_uint32_t *high_a = (const unaligned_uint32_t *)a, *high_b = (const unaligned_uint32_t *)b;
	const unaligned_uint16_t *low_a = (const unaligned_uint16_t *)(high_a + 1),
				 *low_b = (const unaligned_uint16_t *)(high_b + 1);

	return ((*high_a ^ *high_b) | (uint32_t)(*low_a ^ *low_b)) == 0;
}

// 802.1Q or 802.1ad.
static inline bool eth_is_tagged(const struct rte_ether_hdr *eth)
{
	return eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_QINQ);
}

// Removes n bytes behind the MAC addresses.
static inline void eth_untag(struct rte_mbuf *m, unsigned n)
{
	char *start = rte_pktmbuf_mtod(m, char *);

	memmove(start + n, start, 2 * RTE_ETHER_ADDR_LEN);
	rte_pktmbuf_adj(m, (uint16_t)n);
}

// Whether a frame, whose Ethernet header is whole, has a tag with id 0: it says a priority and no VLAN (IEEE 802.1Q).
static inline bool eth_has_priority_tag(const struct rte_mbuf *m, const struct rte_ether_hdr *eth)
{
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);

	return eth_is_tagged(eth) && m->data_len >= sizeof(*eth) + sizeof(*tag) && !(tag->vlan_tci & RTE_BE16(0xfff));
}

static inline rte_be16_t eth_type_of_ip(const uint8_t *ip)
{
	return (*ip >> 4) == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
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

// The offset of the IP header in a frame with up to two VLAN tags; 0 if it carries something else, or if the header
// does not lie in the first buffer.
static inline unsigned frame_ip(const struct rte_mbuf *m)
{
	const unsigned last = sizeof(struct rte_ether_hdr) + 2 * sizeof(struct rte_vlan_hdr);
	unsigned at;

	for (at = sizeof(struct rte_ether_hdr); at <= last && m->data_len >= at; at += sizeof(struct rte_vlan_hdr)) {
		switch (*rte_pktmbuf_mtod_offset(m, const unaligned_uint16_t *, at - 2)) {
		case RTE_BE16(RTE_ETHER_TYPE_VLAN):
		case RTE_BE16(RTE_ETHER_TYPE_QINQ):
			break;
		case RTE_BE16(RTE_ETHER_TYPE_IPV4):
			return m->data_len >= at + sizeof(struct rte_ipv4_hdr) ? at : 0;
		case RTE_BE16(RTE_ETHER_TYPE_IPV6):
			return m->data_len >= at + sizeof(struct rte_ipv6_hdr) ? at : 0;
		default:
			return 0;
		}
	}
	return 0;
}
