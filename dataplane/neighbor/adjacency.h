// SPDX-License-Identifier: Apache-2.0
// Adjacencies: prebuilt link-layer headers, and how nodes write them into packets.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_memcpy.h>

#include "base/eth.h"
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

// Lets the packet begin n bytes earlier.
static inline void adjacency_extend(struct rte_mbuf *m, int n)
{
	m->data_off = (uint16_t)(m->data_off - n);
	m->data_len = (uint16_t)(m->data_len + n);
	m->pkt_len += (uint32_t)n;
}

// Writes the adjacency's link-layer header in front of the IP header at `ip`, n bytes in front of m's begin, and sets
// out_port; then m begins with the header that was written. False: the neighbour is not resolved; then m begins with
// its IP header, and arg holds the adjacency's index, for neighbor_hold. type: the packet's EtherType.
static inline bool adjacency_write_at(struct rte_mbuf *m, uint32_t index, uint8_t *ip, rte_be16_t type, int n)
{
	const struct adjacency *a = rcu_read(adjacency_table[index]);
	struct pkt_meta *md = meta(m);

	if (unlikely(!a->resolved)) {
		md->arg = index;
		adjacency_extend(m, n);
		return false;
	}
	copy32_before(ip, a->l2);
	*(unaligned_uint16_t *)(ip - 2) = type;
	adjacency_extend(m, n + a->l2_len);
	md->out_port = a->port;
	return true;
}

// The same for a packet whose IP header is at md->l3.
static inline bool adjacency_write(struct rte_mbuf *m, uint32_t index)
{
	struct pkt_meta *md = meta(m);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, md->l3);
	int l3 = md->l3;

	md->l3 = 0;
	return adjacency_write_at(m, index, ip, eth_type_of_ip(ip), -l3);
}
