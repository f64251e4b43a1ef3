// SPDX-License-Identifier: Apache-2.0
// What happens to a packet whose flow is known. `v6` is a constant where these are called.
#pragma once

#include "flow/packet.h"
#include "l3/forward.h"
#include "worker/worker.h"

enum { FLOW_EDGE_BYPASS = FORWARD_EDGES, FLOW_EDGE_CREATE }; // the second one: only of lookups

// Packets and bytes of a direction. Each worker counts without atomics where it is the owner: who saw the first packet mostly sees all.
static __rte_always_inline void flow_count_packet(struct flow *f, unsigned dir, unsigned worker, uint32_t bytes)
{
	struct flow_dir *d = &f->dir[dir];

	if (likely(d->owner == worker)) {
		d->bytes += bytes;
		if (unlikely(++d->packets == 0))
			d->hi++;
	} else {
		__atomic_add_fetch(&f->others[dir].packets, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&f->others[dir].bytes, bytes, __ATOMIC_RELAXED);
	}
}

void flow_translate(struct rte_mbuf *m, const struct flow *f, unsigned dir); // nat.c

// The packet's flow is decided and up to date.
static __rte_always_inline edge_t flow_act(struct rte_mbuf *m, struct pkt_meta *md, flow_entry_t e, uint16_t now, unsigned worker,
					   const bool v6)
{
	struct flow *f = flow_of(e);
	unsigned dir = e & 1;
	struct flow_dir *d = &f->dir[dir];
	void *ip = rte_pktmbuf_mtod_offset(m, void *, md->l3);
	edge_t edge;

	d->seen = now;
	flow_count_packet(f, dir, worker, m->pkt_len - md->l3);
	if (unlikely(d->flags & FLOW_DENY)) {
		md->reason = f->reason;
		return EDGE_DROP;
	}
	edge = forward_by(m, md, rcu_read(nexthop_table[d->nexthop]), ip, v6);
	if (unlikely(d->flags & FLOW_NAT) && likely(edge >= NH_EDGE_PORT))
		flow_translate(m, f, dir);
	return edge;
}
