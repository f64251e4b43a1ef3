// SPDX-License-Identifier: Apache-2.0
// ERSPAN type II (draft-foschiano-erspan-03) in GRE with sequence numbers (RFC 2890). Mirrors send whole frames in it.
#include <netinet/in.h>

#include "l3/tunnel.h"
#include "overlay/encap.h"

#define ERSPAN_HEADERS 16     // GRE 4, sequence number 4, ERSPAN 8
#define ERSPAN_TRUNCATED 0x04 // in the header's third byte

static void erspan_push(struct nexthop *nh, const struct tunnel_config *t)
{
	rte_be32_t *erspan = tunnel_push(nh, 2 * sizeof(*erspan)), *sequence;
	rte_be16_t *gre;

	erspan[0] = rte_cpu_to_be_32(1u << 28 | t->session); // version 1, no VLAN; index 0
	erspan[1] = 0;
	sequence = tunnel_push(nh, sizeof(*sequence));
	*sequence = 0; // set per packet
	gre = tunnel_push(nh, 4);
	gre[0] = RTE_BE16(0x1000); // it has a sequence number
	gre[1] = RTE_BE16(0x88be);
}

static const struct encap_ops erspan = {
	.name = "erspan",
	.mirrors = true,
	.mirrors_only = true,
	.proto = IPPROTO_GRE,
	.send_node = {"encap_erspan4", "encap_erspan6"},
	.header = ERSPAN_HEADERS,
	.sequenced = true,
	.push = erspan_push,
};
ENCAP(erspan);

// encap_erspan4, encap_erspan6: by the family of the underlay.
// Reads: nexthop, hash, arg (sequence number), cut.  Writes: out_port.  Next: port_tx, or neighbor_hold.
static __rte_always_inline edge_t erspan_one(struct rte_mbuf *m, const bool v6)
{
	struct pkt_meta *md = meta(m);
	const struct nexthop *nh = md->nexthop;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *hdr = frame - nh->hdr_len;
	unsigned len = m->pkt_len + nh->hdr_len;

	if (unlikely(m->ol_flags & (OFFLOAD_UNFINISHED | OFFLOAD_CAME_WHOLE)))
		return ENCAP_SEGMENT;

	copy_header(frame, nh, header_room(&erspan, v6));
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

ENCAP_NODE_ONE(encap_erspan4, erspan_one(m, false));
ENCAP_NODE_ONE(encap_erspan6, erspan_one(m, true));
