// SPDX-License-Identifier: Apache-2.0
// flow4_lookup, flow6_lookup, and flow4_bridge, flow6_bridge for packets of bridge domains: looks up the flows of a
// batch and applies them. Packets without a flow, or with a stale one, go to flow_create.
// Reads: vrf, l3, flags; bridged: arg, out_port, nexthop.  Writes: nexthop, hash; bridged: l3.
// Next: by the flow's next hop; bridged: by the packet's target.
#include "base/rcu.h"
#include "flow/act.h"
#include "l3/vrf.h"

static __rte_always_inline bool needs_decision(const struct flow_dir *d, uint16_t gen, uint8_t tcp_flags)
{
	return d->gen != gen || (d->flags & FLOW_WATCH) ||
	       ((d->flags & FLOW_TCP) && (tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST)));
}

static __rte_always_inline edge_t flow_lookup_act(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m,
						  struct pkt_meta *md, flow_entry_t e, uint16_t now, unsigned worker,
						  const bool v6, const bool bridged)
{
	uint8_t flags = flow_entry_dir(e)->flags;
	edge_t edge;

	if (unlikely(flags & FLOW_MIRROR))
		flow_mirror_sent(graph, node, m, flow_of(e), e & 1);
	edge = flow_forward(m, md, e, now, worker, v6, bridged);
	if (unlikely(flags & (FLOW_NAT | FLOW_MIRROR)) && likely(edge >= NH_EDGE_PORT)) {
		if ((flags & FLOW_NAT) && unlikely(!flow_translate(m, flow_of(e), e & 1)))
			return drop_as(m, flow_untranslatable);
		if (flags & FLOW_MIRROR)
			flow_mirror_received(graph, node, m, flow_of(e), e & 1);
	}
	return bridged ? flow_bridge_leave(md, edge, FLOW_FLOOD_RECEIVERS) : edge;
}

// What does not hold an IP header cannot be decided. The frame is not changed: what follows the packet stays.
static __rte_always_inline const struct drop_reason *flow_bridge_check4(const struct rte_mbuf *m,
									const struct pkt_meta *md,
									const struct rte_ipv4_hdr *ip)
{
	unsigned hlen, len;

	if (unlikely(m->data_len < md->l3 + sizeof(*ip)))
		return forward_reasons.ip_truncated;
	hlen = ip4_header_len(ip, m->data_len - md->l3);
	if (unlikely(hlen == 0))
		return (ip->version_ihl >> 4) != 4 ? forward_reasons.ip_bad_version
						   : forward_reasons.ip4_bad_header_length;
	len = rte_be_to_cpu_16(ip->total_length);
	return likely(len >= hlen && md->l3 + len <= m->pkt_len) ? NULL : forward_reasons.ip_truncated;
}

static __rte_always_inline const struct drop_reason *flow_bridge_check6(const struct rte_mbuf *m,
									const struct pkt_meta *md,
									const struct rte_ipv6_hdr *ip)
{
	if (unlikely(m->data_len < md->l3 + sizeof(*ip)))
		return forward_reasons.ip_truncated;
	if (unlikely((*(const uint8_t *)ip >> 4) != 6))
		return forward_reasons.ip_bad_version;
	return likely(rte_be_to_cpu_16(ip->payload_len) + sizeof(*ip) <= m->pkt_len - md->l3)
		       ? NULL
		       : forward_reasons.ip_truncated;
}

static __rte_always_inline const struct drop_reason *flow_lookup_check(struct rte_mbuf *m, const struct pkt_meta *md,
								       const void *ip, const bool v6,
								       const bool bridged)
{
	if (bridged)
		return v6 ? flow_bridge_check6(m, md, ip) : flow_bridge_check4(m, md, ip);
	return v6 ? forward_check6(m, md, ip) : forward_check4(m, md, ip);
}

struct flow_lookup_arrays {
	const struct drop_reason *bad[NODE_CHUNK];
	struct flow_key keys[NODE_CHUNK];
	flow_entry_t entries[NODE_CHUNK];
	edge_t edges[NODE_CHUNK];
	uint8_t tcp_flags[NODE_CHUNK];
};

static __rte_always_inline void flow_lookup_chunk(struct rte_graph *graph, struct rte_node *node, void **objs,
						  unsigned n, uint16_t now, const bool v6, const bool bridged)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	struct flow_lookup_arrays *a = NODE_ARRAYS(struct flow_lookup_arrays);
	unsigned i, worker = this_worker->id;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct pkt_meta *md = meta(m);
		const void *ip = rte_pktmbuf_mtod_offset(m, const void *, md->l3);

		node_prefetch(pkts, i, n);
		a->bad[i] = flow_lookup_check(m, md, ip, v6, bridged);
		a->tcp_flags[i] = 0;
		if (unlikely(a->bad[i] != NULL || !flow_key_fast(m, md, ip, &a->keys[i], &a->tcp_flags[i], v6)))
			a->keys[i] = (struct flow_key){0}; // matches no flow
	}
	if (v6)
		flow_table_lookup6(rcu_read(flow_table), a->keys, a->entries, n);
	else
		flow_table_lookup4(rcu_read(flow_table), a->keys, a->entries, n);
	for (i = 0; i < n; i++) {
		struct pkt_meta *md = meta(pkts[i]);

		if (unlikely(a->entries[i] == 0 || (bridged && flow_entry_dir(a->entries[i])->nexthop != md->arg) ||
			     needs_decision(flow_entry_dir(a->entries[i]), flow_zone_gen(md->vrf), a->tcp_flags[i]))) {
			md->arg = a->entries[i];
			a->edges[i] = a->bad[i] ? drop_as(pkts[i], a->bad[i]) : FLOW_EDGE_CREATE;
		} else {
			a->edges[i] =
				flow_lookup_act(graph, node, pkts[i], md, a->entries[i], now, worker, v6, bridged);
		}
	}
	node_pass(graph, node, objs, a->edges, n);
}

static __rte_always_inline uint16_t flow_lookup_batch(struct rte_graph *graph, struct rte_node *node, void **objs,
						      uint16_t n, const bool v6, const bool bridged)
{
	uint64_t tsc = rte_rdtsc();
	uint16_t now = (uint16_t)flow_seconds(tsc);
	unsigned done, k;

	this_worker->tsc = tsc;
	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, (unsigned)NODE_CHUNK);
		flow_lookup_chunk(graph, node, objs + done, k, now, v6, bridged);
	}
	return n;
}

static uint16_t flow4_lookup(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return flow_lookup_batch(graph, node, objs, n, false, false);
}

static uint16_t flow6_lookup(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return flow_lookup_batch(graph, node, objs, n, true, false);
}

static uint16_t flow4_bridge(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return flow_lookup_batch(graph, node, objs, n, false, true);
}

static uint16_t flow6_bridge(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return flow_lookup_batch(graph, node, objs, n, true, true);
}

NODE(flow4_lookup, flow4_lookup, FORWARD_NEXT4, [FLOW_EDGE_BYPASS] = "ip4_forward",
     [FLOW_EDGE_MIRROR] = "mirror_output", [FLOW_EDGE_CREATE] = "flow4_create");
NODE(flow6_lookup, flow6_lookup, FORWARD_NEXT6, [FLOW_EDGE_BYPASS] = "ip6_forward",
     [FLOW_EDGE_MIRROR] = "mirror_output", [FLOW_EDGE_CREATE] = "flow6_create");
NODE(flow4_bridge, flow4_bridge, NH_NEXT, [FLOW_EDGE_MIRROR] = "mirror_output", [FLOW_EDGE_CREATE] = "flow4_create",
     [FLOW_EDGE_TX] = "port_tx", [FLOW_EDGE_FLOOD] = "bridge_flood");
NODE(flow6_bridge, flow6_bridge, NH_NEXT, [FLOW_EDGE_MIRROR] = "mirror_output", [FLOW_EDGE_CREATE] = "flow6_create",
     [FLOW_EDGE_TX] = "port_tx", [FLOW_EDGE_FLOOD] = "bridge_flood");
