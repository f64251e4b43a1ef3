// SPDX-License-Identifier: Apache-2.0
// MPLS over UDP (RFC 7510).
#include <netinet/in.h>

#include "overlay/encap.h"
#include "overlay/mpls.h"

static enum encap_inner mplsoudp_inner(const uint8_t *p, unsigned n, unsigned *at)
{
	*at = 0;
	return mpls_inner(p, n, at);
}

static const struct encap_ops mplsoudp = {
	.name = "mplsoudp",
	.proto = IPPROTO_UDP,
	.udp_port = LIMIT_SETTINGS_MPLSOUDP_PORTS_DEFAULT,
	.udp_setting = "mplsoudp_ports",
	.send_node = {"encap_mplsoudp4", "encap_mplsoudp6"},
	.receive_node = "decap_mplsoudp",
	.header = 8 + 4, // UDP, label
	.inner_ttl = true,
	.udp6_checksum = true, // RFC 7510, section 3.1
	.check = mpls_check,
	.push = mpls_push,
	.inner = mplsoudp_inner,
};
ENCAP(mplsoudp);

// encap_mplsoudp4, encap_mplsoudp6: by the family of the underlay.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
ENCAP_NODE(encap_mplsoudp4, mplsoudp, false);
ENCAP_NODE(encap_mplsoudp6, mplsoudp, true);

// decap_mplsoudp: for this node.
// Reads: l3 (the label stack), outer.  Writes: vrf, bridge or nexthop, flags, arg.
// Next: by the label's target and the inner version.
static inline edge_t mplsoudp_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, md->l3 - sizeof(*udp));

	if (unlikely(udp->dgram_cksum != 0 && !decap_udp_ok(m, udp)))
		return drop_as(m, decap_udp_checksum);
	return mpls_decap(m, md, md->l3);
}

NODE_EACH(decap_mplsoudp, mplsoudp_one, DECAP_NEXT);
