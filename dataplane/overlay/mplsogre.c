// SPDX-License-Identifier: Apache-2.0
// MPLS over GRE (RFC 4023). A key may be sent; received headers may have checksum, key and sequence number (RFC 2784,
// RFC 2890).
#include <netinet/in.h>

#include "l3/tunnel.h"
#include "overlay/encap.h"
#include "overlay/mpls.h"

DROP_REASON(gre_bad_header, "The GRE header is not supported: its version is not 0, or it has source routing.");
DROP_REASON(gre_not_mpls, "The GRE packet carries a protocol other than MPLS.");
DROP_REASON(gre_checksum, "The GRE checksum is wrong: the packet was damaged in transit.");

#define GRE_CHECKSUM RTE_BE16(0x8000)
#define GRE_ROUTING RTE_BE16(0x4000)
#define GRE_RFC1701 RTE_BE16(0x0c00) // bits 4 and 5, which RFC 2784 (section 2.1) tells to discard
#define GRE_KEY RTE_BE16(0x2000)
#define GRE_SEQUENCE RTE_BE16(0x1000)
#define GRE_VERSION RTE_BE16(0x0007)

static void mplsogre_push(struct nexthop *nh, const struct tunnel_config *t)
{
	rte_be32_t *key;
	rte_be16_t *gre; // flags and version, protocol

	mpls_push(nh, t);
	if (t->gre_has_key) {
		key = tunnel_push(nh, sizeof(*key));
		*key = rte_cpu_to_be_32(t->gre_key);
	}
	gre = tunnel_push(nh, 4);
	gre[0] = t->gre_has_key ? GRE_KEY : 0;
	gre[1] = ETHERTYPE_MPLS;
}

// Length of a GRE header with these flags.
static inline unsigned mplsogre_length(rte_be16_t flags)
{
	if (likely(!(flags & (GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE))))
		return 4;
	return 4u + 4u * (!!(flags & GRE_CHECKSUM) + !!(flags & GRE_KEY) + !!(flags & GRE_SEQUENCE));
}

static enum encap_inner mplsogre_inner(const uint8_t *p, unsigned n, unsigned *at)
{
	const unaligned_uint16_t *gre = (const unaligned_uint16_t *)p;

	if (n < 4 || gre[1] != ETHERTYPE_MPLS)
		return ENCAP_INNER_NONE;
	*at = mplsogre_length(gre[0]);
	return mpls_inner(p, n, at);
}

static const struct encap_ops mplsogre = {
	.name = "mplsogre",
	.proto = IPPROTO_GRE,
	.send_node = {"encap_mplsogre4", "encap_mplsogre6"},
	.receive_node = "decap_mplsogre",
	.header = 8 + 4, // GRE with a key, label
	.inner_ttl = true,
	.check = mpls_check,
	.push = mplsogre_push,
	.inner = mplsogre_inner,
};
ENCAP(mplsogre);

// encap_mplsogre4, encap_mplsogre6: by the family of the underlay.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
ENCAP_NODE(encap_mplsogre4, mplsogre, false);
ENCAP_NODE(encap_mplsogre6, mplsogre, true);

static bool gre_checksum_ok(const struct rte_mbuf *m, unsigned at)
{
	uint16_t raw;

	return rte_raw_cksum_mbuf(m, at, m->pkt_len - at, &raw) == 0 && raw == 0xffff;
}

// decap_mplsogre: for this node.
// Reads: l3 (the GRE header).  Writes: vrf, bridge or nexthop, flags, arg.
// Next: by the label's target and the inner version.
static inline edge_t mplsogre_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const rte_be16_t *gre = rte_pktmbuf_mtod_offset(m, const rte_be16_t *, md->l3);

	if (unlikely(m->data_len < md->l3 + 4u))
		return drop_as(m, decap_truncated);
	if (unlikely(gre[1] != ETHERTYPE_MPLS))
		return decap_not_mine(m, DECAP_KERNEL, &drop_gre_not_mpls);
	if (unlikely(gre[0] & (GRE_ROUTING | GRE_RFC1701 | GRE_VERSION)))
		return drop(m, gre_bad_header);
	if (unlikely((gre[0] & GRE_CHECKSUM) && !gre_checksum_ok(m, md->l3)))
		return drop(m, gre_checksum);
	return mpls_decap(m, md, md->l3 + mplsogre_length(gre[0]));
}

NODE_EACH(decap_mplsogre, mplsogre_one, DECAP_NEXT);
