// SPDX-License-Identifier: Apache-2.0
// Applies a known flow to a packet: counters, verdict, next hop. Callers pass `v6` as a constant.
#pragma once

#include "flow/packet.h"
#include "flow/translate.h"
#include "l3/forward.h"
#include "worker/worker.h"

enum { FLOW_EDGE_BYPASS = FORWARD_EDGES, FLOW_EDGE_MIRROR, FLOW_EDGE_CREATE }; // _CREATE: only from flow_lookup

// Counts a packet for a direction. The owner, which is the worker that saw the first packet and mostly sees all of
// them, counts without atomics.
static __rte_always_inline void flow_count_packet(struct flow *f, unsigned dir, unsigned worker, uint32_t bytes)
{
	struct flow_dir *d = &f->dir[dir];

	if (likely(d->owner == worker)) {
		d->bytes += bytes;
		if (unlikely(++d->packets == 0))
			d->hi++;
	} else {
		__atomic_add_fetch(&f->other_packets[dir], 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&f->other_bytes[dir], bytes, __ATOMIC_RELAXED);
	}
}

// The slow half of flow_forward(), for flows that are denied or metered. Returns false if the packet must be dropped
// for md->reason.
bool flow_admit(struct flow *f, unsigned dir, struct pkt_meta *md, uint32_t bytes);

// Enqueue copies for the mirrors to FLOW_EDGE_MIRROR: of the packet as the sender sent it, and as the receiver will
// receive it.
void flow_mirror_sent(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, const struct flow *f,
		      unsigned dir);
void flow_mirror_received(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, const struct flow *f,
			  unsigned dir);

// Forwards a packet. The caller has checked that the flow's decision is not stale.
static __rte_always_inline edge_t flow_forward(struct rte_mbuf *m, struct pkt_meta *md, flow_entry_t e, uint16_t now,
					       unsigned worker, const bool v6)
{
	struct flow *f = flow_of(e);
	struct flow_dir *d = &f->dir[e & 1];

	d->seen = now;
	flow_count_packet(f, e & 1, worker, m->pkt_len - md->l3);
	if (unlikely(d->flags & (FLOW_DENY | FLOW_METER)) && !flow_admit(f, e & 1, md, m->pkt_len - md->l3))
		return EDGE_DROP;
	return forward_by(m, md, rcu_read(nexthop_table[d->nexthop]), rte_pktmbuf_mtod_offset(m, void *, md->l3), v6);
}
