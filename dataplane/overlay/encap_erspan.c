// SPDX-License-Identifier: Apache-2.0
// encap_erspan4, encap_erspan6: ERSPAN type II (draft-foschiano-erspan-03) in GRE with sequence numbers (RFC 2890), by the family of the
// underlay, around whole frames.
// Reads: nexthop, hash, arg (sequence number), cut.  Writes: out_port.  Next: port_tx, or neighbor_hold.
#include "overlay/encap.h"

#define ERSPAN_HEADERS 16     // GRE 4, sequence number 4, ERSPAN 8
#define ERSPAN_TRUNCATED 0x04 // in the header's third byte

static __rte_always_inline edge_t erspan_one(struct rte_mbuf *m, const bool v6)
{
	struct pkt_meta *md = meta(m);
	const struct nexthop *nh = md->nexthop;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *hdr = frame - nh->hdr_len;
	unsigned len = m->pkt_len + nh->hdr_len;

	copy_header(frame, nh, RTE_ALIGN_CEIL((v6 ? 40 : 20) + ERSPAN_HEADERS, 16));
	*(unaligned_uint32_t *)(frame - 12) = rte_cpu_to_be_32(md->arg);
	if (md->cut)
		frame[-6] |= ERSPAN_TRUNCATED;
	m->data_off = (uint16_t)(m->data_off - nh->hdr_len);
	m->data_len = (uint16_t)(m->data_len + nh->hdr_len);
	m->pkt_len = len;
	md->l3 = 0;
	if (v6)
		finish_ip6((struct rte_ipv6_hdr *)hdr, 0, nh->ttl, md->hash >> 8, len);
	else
		finish_ip4((struct rte_ipv4_hdr *)hdr, nh, 0, nh->ttl, len);
	return adjacency_write(m, nh->path[(md->hash >> 8) & (nh->n_paths - 1)]) ? ENCAP_TX : ENCAP_HOLD;
}

#define ERSPAN_NODE(name, v6)                                                                         \
	static inline edge_t name##_one(struct rte_mbuf *m)                                           \
	{                                                                                             \
		return erspan_one(m, v6);                                                             \
	}                                                                                             \
	static uint16_t name(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n) \
	{                                                                                             \
		return node_each(graph, node, objs, n, name##_one);                                   \
	}                                                                                             \
	NODE(name, name, [ENCAP_TX] = "port_tx", [ENCAP_HOLD] = "neighbor_hold")

ERSPAN_NODE(encap_erspan4, false);
ERSPAN_NODE(encap_erspan6, true);
