// SPDX-License-Identifier: Apache-2.0
// Adjacencies: link-layer headers ready made, and how nodes write them.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_memcpy.h>

#include "base/rcu.h"
#include "graph/meta.h"

// One step of forwarding: a link-layer header in front of an IP packet. Indices stay, contents are replaced as a whole.
#define ADJ_MAX 65536
struct adjacency {
	uint16_t port;
	uint8_t l2_len; // 14, or 18 with a VLAN tag
	bool resolved;  // else packets wait in neighbor_hold
	uint32_t index;
	alignas(16) uint8_t l2[32]; // the last l2_len bytes, EtherType included (to be written per packet)
};
extern struct adjacency *adjacency_table[ADJ_MAX]; // workers: ro (RCU); never NULL for an index that a next hop holds

// Copies 32 bytes that end where dst ends: callers have as much headroom.
static inline void copy32_before(uint8_t *end, const uint8_t *src)
{
	rte_mov16(end - 32, src);
	rte_mov16(end - 16, src + 16);
}

// The IP packet's header begins at its start. Puts the adjacency's header in front and sets out_port. False: the neighbour is not
// resolved; then arg holds the adjacency, for neighbor_hold.
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
	*(unaligned_uint16_t *)(ip - 2) = (*ip >> 4) == 4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	m->data_off = (uint16_t)(m->data_off - a->l2_len);
	m->data_len = (uint16_t)(m->data_len + a->l2_len);
	m->pkt_len += a->l2_len;
	md->out_port = a->port;
	return true;
}
