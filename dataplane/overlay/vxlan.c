// SPDX-License-Identifier: Apache-2.0
// VXLAN (RFC 7348). The VNI of a bridge domain carries its frames; the VNI of a VRF carries routed packets as in EVPN,
// with an Ethernet header between the routers' MACs.
#include <netinet/in.h>

#include <rte_vxlan.h>

#include "l3/tunnel.h"
#include "overlay/decap.h"
#include "overlay/encap.h"

DROP_REASON(vxlan_bad_flags, "The I flag of the VXLAN header, which marks its VNI as valid, is not set (RFC 7348).");
DROP_REASON(vxlan_unknown_vni,
	    "This node does not have the packet's VNI. See `corelane vni list`. Beside a host port, those "
	    "from addresses without a tunnel are the kernel's.");
DROP_REASON(vxlan_wrong_router_mac,
	    "The inner frame of a routed VNI is for another router's MAC. See `corelane vrf show` for this one's.");

#define VXLAN_HAS_VNI RTE_BE32(0x08000000)

static void vxlan_push(struct nexthop *nh, const struct tunnel_config *t)
{
	struct rte_vxlan_hdr *vx;

	tunnel_push_router_eth(nh, t);
	vx = tunnel_push(nh, sizeof(*vx));
	vx->vx_flags = VXLAN_HAS_VNI;
	vx->vx_vni = rte_cpu_to_be_32(t->vni << 8);
}

static enum encap_inner vxlan_inner(const uint8_t *p, unsigned n, unsigned *at)
{
	*at = sizeof(struct rte_vxlan_hdr);
	return ENCAP_INNER_FRAME;
}

static const struct encap_ops vxlan = {
	.name = "vxlan",
	.mirrors = true,
	.proto = IPPROTO_UDP,
	.udp_port = LIMIT_SETTINGS_VXLAN_PORTS_DEFAULT,
	.udp_setting = "vxlan_ports",
	.send_node = {"encap_vxlan4", "encap_vxlan6"},
	.receive_node = "decap_vxlan",
	.header = 8 + 8 + 14, // UDP, VXLAN, inner Ethernet
	.inner_eth = true,
	.udp6_checksum = true, // RFC 8200, section 8.1; by default Linux accepts no other packets
	.check = tunnel_check_vni,
	.push = vxlan_push,
	.inner = vxlan_inner,
};
ENCAP(vxlan);

// encap_vxlan4, encap_vxlan6: by the family of the underlay.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
ENCAP_NODE(encap_vxlan4, vxlan, false);
ENCAP_NODE(encap_vxlan6, vxlan, true);

// decap_vxlan: for this node.
// Reads: l3 (the VXLAN header).  Writes: vrf, bridge or nexthop, flags, arg.
// Next: by the VNI's target and the inner version.
static inline edge_t vxlan_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, md->l3 - sizeof(*udp));
	const struct rte_vxlan_hdr *vx = (const struct rte_vxlan_hdr *)(udp + 1);
	unsigned at = md->l3 + (unsigned)sizeof(*vx);

	if (unlikely(m->data_len < at + sizeof(struct rte_ether_hdr)))
		return drop_as(m, decap_truncated);
	if (unlikely(udp->dgram_cksum != 0 && !decap_udp_ok(m, udp)))
		return drop_as(m, decap_udp_checksum);
	if (unlikely(!(vx->vx_flags & VXLAN_HAS_VNI)))
		return drop(m, vxlan_bad_flags);
	md->arg = rte_be_to_cpu_32(vx->vx_vni) >> 8;
	return decap_vni_frame(m, md, at, &drop_vxlan_unknown_vni, &drop_vxlan_wrong_router_mac);
}

NODE_EACH(decap_vxlan, vxlan_one, DECAP_NEXT);
