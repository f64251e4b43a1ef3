// SPDX-License-Identifier: Apache-2.0
// Applies a known flow to a packet: counters, verdict, next hop. Callers pass `v6` and `bridged` as constants.
#pragma once

#include "flow/bridged.h"
#include "flow/packet.h"
#include "flow/translate.h"
#include "l3/forward.h"
#include "worker/worker.h"

// _CREATE: only from nodes that look flows up. _TX, _FLOOD: only of bridge domains.
enum { FLOW_EDGE_BYPASS = FORWARD_EDGES, FLOW_EDGE_MIRROR, FLOW_EDGE_CREATE, FLOW_EDGE_TX, FLOW_EDGE_FLOOD };

// The first worker that sees a direction after a restart becomes its owner.
static inline void flow_own(struct flow_dir *d, unsigned worker)
{
	uint8_t none = FLOW_UNOWNED;

	__atomic_compare_exchange_n(&d->owner, &none, (uint8_t)worker, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Counts packets for a direction. The owner, which is the worker that saw the first packet and mostly sees all of them,
// counts without atomics.
static __rte_always_inline void flow_count_packet(flow_entry_t e, unsigned worker, uint32_t packets, uint32_t bytes)
{
	struct flow_dir *d = flow_entry_dir(e);

	if (likely(d->owner == worker)) {
		d->bytes += bytes;
		d->packets += packets;
		if (unlikely(d->packets < packets))
			d->hi++;
	} else {
		if (unlikely(d->owner == FLOW_UNOWNED))
			flow_own(d, worker);
		__atomic_add_fetch(&flow_of(e)->other_packets[e & 1], packets, __ATOMIC_RELAXED);
		__atomic_add_fetch(&flow_of(e)->other_bytes[e & 1], bytes, __ATOMIC_RELAXED);
	}
}

// Counts a large segment as the packets that it stands for.
void flow_count_large(flow_entry_t e, unsigned worker, const struct rte_mbuf *m, unsigned l3);

// The slow half of flow_forward(), for flows that are denied or metered. Returns false if the packet must be dropped
// for md->reason.
bool flow_admit(const struct rte_mbuf *m, struct flow *f, unsigned dir, struct pkt_meta *md);

// Enqueue copies for the mirrors to FLOW_EDGE_MIRROR: of the packet as the sender sent it, and as the receiver will
// receive it.
void flow_mirror_sent(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, const struct flow *f,
		      unsigned dir);
void flow_mirror_received(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m, const struct flow *f,
			  unsigned dir);

// The edge to the target of a packet in a bridge domain.
static inline edge_t flow_bridge_edge(const struct pkt_meta *md)
{
	if (md->nexthop)
		return md->nexthop->edge;
	return likely(md->out_port != FLOW_TARGET_UNKNOWN) ? FLOW_EDGE_TX : FLOW_EDGE_FLOOD;
}

// The packet leaves as a whole frame. Returns its edge.
static inline edge_t flow_bridge_leave(struct pkt_meta *md, edge_t edge, enum flow_flood flood)
{
	md->l3 = 0;
	if (unlikely(edge == FLOW_EDGE_FLOOD))
		md->arg = flood;
	return edge;
}

// Forwards a packet. The caller has checked that the flow's decision is not stale.
static __rte_always_inline edge_t flow_forward(struct rte_mbuf *m, struct pkt_meta *md, flow_entry_t e, uint16_t now,
					       unsigned worker, const bool v6, const bool bridged)
{
	struct flow_dir *d = flow_entry_dir(e);

	d->seen = now;
	md->hash = e * 0x9e3779b1u; // all packets of the direction take one path through the underlay
	if (unlikely(offload_is_large(m)))
		flow_count_large(e, worker, m, md->l3);
	else
		flow_count_packet(e, worker, 1, m->pkt_len - md->l3);
	if (unlikely(d->flags & (FLOW_DENY | FLOW_METER)) && !flow_admit(m, flow_of(e), e & 1, md))
		return EDGE_DROP;
	if (bridged)
		return flow_bridge_edge(md);
	return forward_by(m, md, rcu_read(nexthop_table[d->nexthop]), rte_pktmbuf_mtod_offset(m, void *, md->l3), v6);
}
