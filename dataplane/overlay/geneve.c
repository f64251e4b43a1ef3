// SPDX-License-Identifier: Apache-2.0
// Geneve (RFC 8926), as OVN and Open vSwitch use it: frames of bridges, and routed packets with an Ethernet header
// between the routers' MACs. No option is sent. Received options are skipped, unless they are critical.
#include <netinet/in.h>

#include "l3/tunnel.h"
#include "overlay/decap.h"
#include "overlay/encap.h"

DROP_REASON(geneve_bad_version, "The version of the Geneve header is not 0.");
DROP_REASON(geneve_control, "A Geneve control packet (RFC 8926, O bit), which this node does not support.");
DROP_REASON(geneve_critical_option,
	    "The Geneve header has a critical option. This node supports none, so RFC 8926 requires the drop.");
DROP_REASON(geneve_bad_options,
	    "The lengths of the Geneve options do not add up to their total (RFC 8926, section 3.5).");
DROP_REASON(geneve_unknown_protocol, "The Geneve packet carries neither Ethernet nor IP, or it carries IP and its VNI "
				     "stands for a bridge, which needs frames.");
DROP_REASON(geneve_unknown_vni,
	    "This node does not have the packet's VNI. See `corelane vni list`. Beside a host port, those "
	    "from addresses without a tunnel are the kernel's.");
DROP_REASON(geneve_wrong_router_mac,
	    "The inner frame of a routed VNI is for another router's MAC. See `corelane vrf show` for this one's.");

struct geneve {
	uint8_t version_options; // version: 2 bits; length of all options in words: 6 bits
	uint8_t flags;
	rte_be16_t protocol;
	rte_be32_t vni; // << 8
};

#define GENEVE_CONTROL 0x80
#define GENEVE_CRITICAL 0x40 // some option is critical
#define OPTION_CRITICAL 0x80 // in the type of an option
#define PROTOCOL_ETHERNET RTE_BE16(0x6558)
#define PROTOCOL_IP4 RTE_BE16(RTE_ETHER_TYPE_IPV4)
#define PROTOCOL_IP6 RTE_BE16(RTE_ETHER_TYPE_IPV6)

static inline unsigned geneve_length(const struct geneve *g)
{
	return (unsigned)sizeof(*g) + 4u * (g->version_options & 0x3f);
}

static void geneve_push(struct nexthop *nh, const struct tunnel_config *t)
{
	struct geneve *g;

	tunnel_push_router_eth(nh, t);
	g = tunnel_push(nh, sizeof(*g));
	*g = (struct geneve){.protocol = PROTOCOL_ETHERNET, .vni = rte_cpu_to_be_32(t->vni << 8)};
}

static enum encap_inner geneve_inner(const uint8_t *p, unsigned n, unsigned *at)
{
	const struct geneve *g = (const struct geneve *)p;

	if (n < sizeof(*g))
		return ENCAP_INNER_NONE;
	*at = geneve_length(g);
	return g->protocol == PROTOCOL_ETHERNET                             ? ENCAP_INNER_FRAME
	       : g->protocol == PROTOCOL_IP4 || g->protocol == PROTOCOL_IP6 ? ENCAP_INNER_PACKET
									    : ENCAP_INNER_NONE;
}

static const struct encap_ops geneve = {
	.name = "geneve",
	.mirrors = true,
	.proto = IPPROTO_UDP,
	.udp_port = LIMIT_SETTINGS_GENEVE_PORTS_DEFAULT,
	.udp_setting = "geneve_ports",
	.send_node = {"encap_geneve4", "encap_geneve6"},
	.receive_node = "decap_geneve",
	.header = 8 + 8 + 14, // UDP, Geneve, inner Ethernet
	.inner_eth = true,
	.udp6_checksum = true, // RFC 8926, section 3.3
	.check = tunnel_check_vni,
	.push = geneve_push,
	.inner = geneve_inner,
};
ENCAP(geneve);

// encap_geneve4, encap_geneve6: by the family of the underlay.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
ENCAP_NODE(encap_geneve4, geneve, false);
ENCAP_NODE(encap_geneve6, geneve, true);

// Checks the options from p to end: each has 4 bytes, and data whose length in words is in the last 5 bits of those.
// Returns the drop reason, NULL if the options may be skipped.
static const struct drop_reason *geneve_options(const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		if (p[2] & OPTION_CRITICAL)
			return &drop_geneve_critical_option;
		p += 4 + 4 * (p[3] & 0x1f);
	}
	return p == end ? NULL : &drop_geneve_bad_options;
}

static inline edge_t geneve_payload(struct rte_mbuf *m, struct pkt_meta *md, const struct geneve *g, unsigned at)
{
	uint32_t vni = rte_be_to_cpu_32(g->vni) >> 8, target;

	md->arg = vni;
	if (likely(g->protocol == PROTOCOL_ETHERNET)) {
		if (unlikely(m->data_len < at + sizeof(struct rte_ether_hdr)))
			return drop_as(m, decap_truncated);
		return decap_vni_frame(m, md, at, &drop_geneve_unknown_vni, &drop_geneve_wrong_router_mac);
	}
	target = vni_target(vni);
	if (TARGET_KIND(target) == TARGET_NONE)
		return decap_not_mine(m, DECAP_UNKNOWN, &drop_geneve_unknown_vni);
	if (TARGET_KIND(target) == TARGET_BRIDGE || (g->protocol != PROTOCOL_IP4 && g->protocol != PROTOCOL_IP6))
		return drop(m, geneve_unknown_protocol);
	return decap_to(m, md, TUNNEL_ID_VNI(vni), target, at);
}

// decap_geneve: for this node.
// Reads: l3 (the Geneve header).  Writes: vrf, bridge or nexthop, flags, arg.
// Next: by the VNI's target and the inner version.
static inline edge_t geneve_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, md->l3 - sizeof(*udp));
	const struct geneve *g = (const struct geneve *)(udp + 1);
	const struct drop_reason *bad;
	unsigned l3 = md->l3, length;

	if (unlikely(m->data_len < l3 + sizeof(*g)))
		return drop_as(m, decap_truncated);
	length = geneve_length(g);
	if (unlikely(m->data_len < l3 + length))
		return drop_as(m, decap_truncated);
	if (unlikely(udp->dgram_cksum != 0 && !decap_udp_ok(m, udp)))
		return drop_as(m, decap_udp_checksum);
	if (unlikely(g->version_options >> 6))
		return drop(m, geneve_bad_version);
	if (unlikely(g->flags & (GENEVE_CONTROL | GENEVE_CRITICAL)))
		return drop_as(m, g->flags & GENEVE_CONTROL ? &drop_geneve_control : &drop_geneve_critical_option);
	if (unlikely(length > sizeof(*g))) {
		bad = geneve_options((const uint8_t *)(g + 1), (const uint8_t *)g + length);
		if (bad)
			return drop_as(m, bad);
	}
	return geneve_payload(m, md, g, l3 + length);
}

NODE_EACH(decap_geneve, geneve_one, DECAP_NEXT);
