// SPDX-License-Identifier: Apache-2.0
// decap_mplsoudp: MPLS over UDP (RFC 7510) for this node.
// Reads: l3 (the label stack), outer.  Writes: vrf, bridge or nexthop, flags, arg.  Next: by the label's target and the inner version.
#include "overlay/mpls.h"

DROP_REASON(mpls_unknown_label, "The label is nobody's here: the other end's routes are stale, or the packet was sent to the wrong "
				"node. See `corelane label list`.");
DROP_REASON(mpls_stack_depth,
	    "There are more labels than this node pops: one service label, below explicit nulls up to the depth that is set.");
DROP_REASON(mpls_reserved, "A reserved label (RFC 3032) that has no meaning here.");
DROP_REASON(mpls_ttl_zero, "The label's TTL is 0.");

const struct drop_reason *const mpls_unknown_label = &drop_mpls_unknown_label;
const struct drop_reason *const mpls_stack_depth = &drop_mpls_stack_depth;
const struct drop_reason *const mpls_reserved = &drop_mpls_reserved;
const struct drop_reason *const mpls_ttl = &drop_mpls_ttl_zero;

static inline edge_t mplsoudp_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, md->l3 - sizeof(*udp));

	if (unlikely(udp->dgram_cksum != 0 && !decap_udp_ok(m, udp)))
		return drop_as(m, decap_udp_checksum);
	return mpls_decap(m, md, md->l3);
}

static uint16_t decap_mplsoudp(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, mplsoudp_one);
}

NODE(decap_mplsoudp, decap_mplsoudp, DECAP_NEXT);
