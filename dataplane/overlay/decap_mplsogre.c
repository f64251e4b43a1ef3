// SPDX-License-Identifier: Apache-2.0
// decap_mplsogre: MPLS over GRE (RFC 4023) for this node. Checksum, key and sequence number (RFC 2784, RFC 2890) are parsed.
// Reads: l3 (the GRE header).  Writes: vrf, bridge or nexthop, flags, arg.  Next: by the label's target and the inner version.
#include "overlay/mpls.h"

DROP_REASON(gre_bad_header, "The GRE header asks for what nobody sends any more: another version than 0, or source routing.");
DROP_REASON(gre_not_mpls, "The GRE packet carries another protocol than MPLS.");
DROP_REASON(gre_checksum, "The GRE checksum is wrong: the packet was damaged on the way.");

#define GRE_CHECKSUM RTE_BE16(0x8000)
#define GRE_ROUTING RTE_BE16(0x4000)
#define GRE_KEY RTE_BE16(0x2000)
#define GRE_SEQUENCE RTE_BE16(0x1000)
#define GRE_VERSION RTE_BE16(0x0007)

static bool checksum_ok(const struct rte_mbuf *m, unsigned at)
{
	uint16_t raw;

	return rte_raw_cksum_mbuf(m, at, m->pkt_len - at, &raw) == 0 && raw == 0xffff;
}

static inline edge_t mplsogre_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const rte_be16_t *gre = rte_pktmbuf_mtod_offset(m, const rte_be16_t *, md->l3);
	unsigned at = md->l3 + 4u;

	if (unlikely(m->data_len < at))
		return drop_as(m, decap_truncated);
	if (unlikely(gre[0] & (GRE_ROUTING | GRE_VERSION)))
		return drop(m, gre_bad_header);
	if (unlikely(gre[1] != ETHERTYPE_MPLS))
		return drop(m, gre_not_mpls);
	if (unlikely(gre[0] & GRE_CHECKSUM)) {
		if (!checksum_ok(m, md->l3))
			return drop(m, gre_checksum);
		at += 4;
	}
	at += (gre[0] & GRE_KEY) ? 4 : 0;
	at += (gre[0] & GRE_SEQUENCE) ? 4 : 0;
	return mpls_decap(m, md, at);
}

static uint16_t decap_mplsogre(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, mplsogre_one);
}

NODE(decap_mplsogre, decap_mplsogre, DECAP_NEXT);
