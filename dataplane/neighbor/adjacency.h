// SPDX-License-Identifier: Apache-2.0
// Adjacencies: prebuilt link-layer headers, and how nodes write them into packets.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_memcpy.h>

#include "base/rcu.h"
#include "graph/meta.h"

// How a packet reaches a host on a link: the port and the link-layer header. The index of an adjacency stays the same;
// its contents are replaced as a whole.
#define ADJ_MAX 65536
struct adjacency {
	uint16_t port;
	uint8_t l2_len; // 14, or 18 with a VLAN tag
	bool resolved;  // false: packets wait in neighbor_hold
	uint32_t index;
	alignas(16) uint8_t l2[32]; // the header is the last l2_len bytes; the EtherType is written for each packet
};
extern struct adjacency *adjacency_table[ADJ_MAX]; // workers: ro (RCU); never NULL for an index that a next hop holds

// Writes 32 bytes just before `end`. The caller guarantees that much headroom.
static inline void copy32_before(uint8_t *end, const uint8_t *src)
{
	rte_mov16(end - 32, src);
	rte_mov16(end - 16, src + 16);
}

// Writes the adjacency's link-layer header in front of m, which begins with its IP header, and sets out_port. False:
// the neighbour is not resolved; then arg holds the adjacency's index, for neighbor_hold.
static inline bool adjacency_write(struct rte_mbuf *m, uint32_t index)
{
	const struct adjacency *a = rcu_read(adjacency_table[index]);
	struct pkt_meta *md = meta(m);
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);

	if (unlikely(!a->resolved)) {
		md->arg = index;
		return false;
	}
	copy32_before(ip, a->l2);
	*(unaligned_uint16_t *)(ip - 2) =
		(*ip >> 4) == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	m->data_off = (uint16_t)(m->data_off - a->l2_len);
	m->data_len = (uint16_t)(m->data_len + a->l2_len);
	m->pkt_len += a->l2_len;
	md->out_port = a->port;
	return true;
}
