// SPDX-License-Identifier: Apache-2.0
// mirror_output: sends copies, which are whole frames, to the target of their mirror: a port, or the tunnel to a
// collector.
// Reads: arg (mirror).  Writes: out_port, nexthop, hash, arg (ERSPAN: sequence number).
// Next: port_tx, an encapsulation.
#include "base/eth.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "l3/ip_header.h"
#include "policy/mirror.h"
#include "port/registry.h"

enum { TX = NH_EDGES };

DROP_REASON(mirror_no_buffer, "A mirror could not copy a packet: no buffer was free. The packet itself was forwarded. "
			      "`corelane status` shows the buffers in use; corelaned --mbufs sets their number.");
DROP_REASON(mirror_too_long, "A mirror's copy exceeds the MTU of its target, tunnel headers included. The packet "
			     "itself was forwarded. Set a snap length on the mirror, or a larger MTU on the target's "
			     "port.");
DROP_REASON(mirror_unresolved,
	    "A mirror's collector is not reachable through the underlay. The packet itself was forwarded. See "
	    "`corelane mirror list` and `corelane route lookup` in the VRF fabric.");
DROP_REASON(mirror_gone, "The mirror, or its port, was removed before its copy was sent.");

struct rte_mbuf *mirror_copy(uint16_t id, enum mirror_direction dir, struct rte_mbuf *m, const void *eth)
{
	const struct mirror_fwd *f = rcu_read(mirror_table[id % MIRROR_MAX]);
	struct pkt_meta *md = meta(m);
	unsigned len = m->pkt_len - md->l3, want;
	struct rte_ether_hdr *to;
	struct rte_mbuf *c;

	if (f == NULL || !(dir == MIRROR_EGRESS ? f->egress : f->ingress))
		return NULL;
	want = RTE_MIN(len, f->snap - (unsigned)sizeof(*to));
	c = rte_pktmbuf_copy(m, f->pool, md->l3, want);
	if (unlikely(c == NULL)) {
		f->count[this_worker->id].lost++;
		counters->drops[m->port % PORT_MAX][drop_mirror_no_buffer.id]++;
		return NULL;
	}
	to = (struct rte_ether_hdr *)rte_pktmbuf_prepend(c, sizeof(*to)); // every buffer has headroom for it
	memcpy(to, eth, sizeof(*to));
	to->ether_type = eth_type_of_ip((const uint8_t *)(to + 1));
	c->port = 0;
	if (want < len) // no length that a mark or a header states is right any more
		c->ol_flags &= ~(OFFLOAD_FLAGS | OFFLOAD_WHOLE | OFFLOAD_CAME_WHOLE);
	if (offload_is_whole(c)) // a further tunnel cuts it
		c->ol_flags |= OFFLOAD_CAME_WHOLE;
	*meta(c) = (struct pkt_meta){.arg = id, .cut = want < len};
	return c;
}

static inline edge_t mirror_output_lost(struct rte_mbuf *m, const struct mirror_fwd *f, const struct drop_reason *why)
{
	f->count[this_worker->id].lost++;
	return drop_as(m, why);
}

static inline edge_t send_to_port(struct rte_mbuf *m, const struct mirror_fwd *f)
{
	const struct port_fwd *p = rcu_read(port_fwds[f->port]);

	if (unlikely(p == NULL))
		return mirror_output_lost(m, f, &drop_mirror_gone);
	if (unlikely(offload_frame_size(m) - sizeof(struct rte_ether_hdr) > p->mtu))
		return mirror_output_lost(m, f, &drop_mirror_too_long);
	meta(m)->out_port = f->port;
	return TX;
}

static inline edge_t send_to_collector(struct rte_mbuf *m, const struct mirror_fwd *f)
{
	const struct nexthop *nh = rcu_read(nexthop_table[f->nexthop]);
	struct pkt_meta *md = meta(m);

	if (unlikely(nh == NULL || nh->edge < NH_EDGE_PORT))
		return mirror_output_lost(m, f, &drop_mirror_unresolved);
	if (unlikely(offload_frame_size(m) - nh->inner_eth > nh->mtu))
		return mirror_output_lost(m, f, &drop_mirror_too_long);
	md->nexthop = nh;
	md->hash = ip_hash(m, sizeof(struct rte_ether_hdr));
	md->arg = nh->sequenced ? __atomic_fetch_add(f->sequence, 1, __ATOMIC_RELAXED) : 0;
	return nh->edge;
}

static inline edge_t mirror_output_one(struct rte_mbuf *m)
{
	const struct mirror_fwd *f = rcu_read(mirror_table[meta(m)->arg % MIRROR_MAX]);
	unsigned len = m->pkt_len;
	edge_t edge;

	if (unlikely(f == NULL))
		return drop(m, mirror_gone);
	edge = f->target == MIRROR_PORT ? send_to_port(m, f) : send_to_collector(m, f);
	if (likely(edge != EDGE_DROP)) {
		f->count[this_worker->id].packets++;
		f->count[this_worker->id].bytes += len;
	}
	return edge;
}

static uint16_t mirror_output(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, mirror_output_one);
}

NODE(mirror_output, mirror_output, NH_NEXT, [TX] = "port_tx");
