// SPDX-License-Identifier: Apache-2.0
// decap_vxlan: VXLAN (RFC 7348) for this node. A VNI of a bridge domain keeps its frame; one of a VRF carries routed traffic as EVPN
// does: the inner frame is for this router's MAC.
// Reads: l3 (the VXLAN header).  Writes: vrf, bridge or nexthop, flags, arg.  Next: by the VNI's target and the inner version.
#include <rte_vxlan.h>

#include "overlay/decap.h"

DROP_REASON(vxlan_bad_flags, "The VXLAN header does not say that its VNI is valid (RFC 7348, I flag).");
DROP_REASON(vxlan_unknown_vni, "The VNI is nobody's here. See `corelane vni list`.");
DROP_REASON(vxlan_wrong_router_mac,
	    "The inner frame of a routed VNI is for another router's MAC. See `corelane vrf show` for this one's.");

static inline edge_t routed(struct rte_mbuf *m, struct pkt_meta *md, uint32_t target, unsigned at)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod_offset(m, const struct rte_ether_hdr *, at);

	if (unlikely(!eth_same(&eth->dst_addr, &overlay_router_mac) && !eth_same(&eth->dst_addr, &overlay_gateway_mac)))
		return drop(m, vxlan_wrong_router_mac);
	if (unlikely(eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) && eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6)))
		return drop_as(m, decap_not_ip);
	return decap_to(m, md, target, at + (unsigned)sizeof(*eth));
}

static inline edge_t vxlan_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, md->l3 - sizeof(*udp));
	const struct rte_vxlan_hdr *vx = (const struct rte_vxlan_hdr *)(udp + 1);
	unsigned at = md->l3 + (unsigned)sizeof(*vx);
	uint32_t target;

	if (unlikely(m->data_len < at + sizeof(struct rte_ether_hdr)))
		return drop_as(m, decap_truncated);
	if (unlikely(udp->dgram_cksum != 0 && !decap_udp_ok(m, udp)))
		return drop_as(m, decap_udp_checksum);
	if (unlikely(!(vx->vx_flags & RTE_BE32(0x08000000))))
		return drop(m, vxlan_bad_flags);
	md->arg = rte_be_to_cpu_32(vx->vx_vni) >> 8;
	target = vni_target(md->arg);
	switch (TARGET_KIND(target)) {
	case TARGET_NONE:
		return drop(m, vxlan_unknown_vni);
	case TARGET_BRIDGE:
		return decap_to(m, md, target, at);
	default:
		return routed(m, md, target, at);
	}
}

static uint16_t decap_vxlan(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, vxlan_one);
}

NODE(decap_vxlan, decap_vxlan, DECAP_NEXT);
