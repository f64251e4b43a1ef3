// SPDX-License-Identifier: Apache-2.0
// tenant_input: frames from guests. What a guest asks for when it boots is answered here; of the rest, those to the
// gateway's MAC are routed, others bridged.
// Reads: port.  Writes: vrf, bridge, l3.  Next: by destination MAC and EtherType.
#include <netinet/in.h>

#include "base/eth.h"
#include "base/rcu.h"
#include "boot/boot.h"
#include "eth/source_check.h"
#include "flow/flow.h"
#include "graph/node.h"
#include "port/registry.h"

enum { IP4 = 1, IP6, ARP, ND, BRIDGE, FLOW4, FLOW6, BOOT, RARE };

DROP_REASON(eth_truncated, "The frame is shorter than an Ethernet header.");
DROP_REASON(eth_bad_source, "The frame's source MAC is a multicast address or zero.");
DROP_REASON(eth_claims_gateway,
	    "The guest told another guest, in ARP or neighbour discovery, that the gateway's address is its own.");
DROP_REASON(eth_not_for_gateway,
	    "The frame was not addressed to the virtual gateway's MAC and the port is in no bridge domain.");
DROP_REASON(eth_multicast_ignored,
	    "The frame is multicast or broadcast, which a guest's system sends by itself. No DHCP server "
	    "or other receiver is on this port, because it is in no bridge domain.");
DROP_REASON(eth_unknown_type, "The frame carries neither IPv4, IPv6 nor ARP, and the port is in no bridge domain.");
DROP_REASON(port_unconfigured, "The port's configuration was being removed while the packet came in.");

static inline edge_t tenant_input_routed(struct rte_mbuf *m, struct pkt_meta *md, const struct rte_ether_hdr *eth,
					 uint16_t vrf)
{
	md->l3 = sizeof(*eth);
	if (likely(eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))) {
		md->bridge = UINT16_MAX; // it leaves the bridge
		return likely(!flow_zones[vrf].stateful) ? IP4 : FLOW4;
	}
	switch (eth->ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		if (eth_is_nd(m, sizeof(*eth)))
			return ND;
		md->bridge = UINT16_MAX;
		return likely(!flow_zones[vrf].stateful) ? IP6 : FLOW6;
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return ARP;
	default:
		return drop(m, eth_unknown_type);
	}
}

static inline edge_t not_for_gateway(struct rte_mbuf *m, struct pkt_meta *md, const struct port_fwd *f,
				     const struct rte_ether_hdr *eth)
{
	md->l3 = sizeof(*eth);
	// The gateway answers ARP and ND, also on a bridge; arp_input and nd_input pass on what is for others.
	if (f->vrf != UINT16_MAX && rte_is_multicast_ether_addr(&eth->dst_addr)) {
		if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
			return ARP;
		if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && eth_is_nd(m, sizeof(*eth)))
			return ND;
	}
	if (f->bridge != UINT16_MAX) {
		if (unlikely(f->vrf != UINT16_MAX && source_check_claims_gateway(m, f)))
			return drop(m, eth_claims_gateway);
		return BRIDGE;
	}
	if (rte_is_multicast_ether_addr(&eth->dst_addr))
		return drop(m, eth_multicast_ignored);
	return drop(m, eth_not_for_gateway);
}

static inline edge_t tenant_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port]);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct pkt_meta *md = meta(m);
	uint16_t vrf, bridge;
	uint64_t src, mac;

	if (unlikely(f == NULL))
		return drop(m, port_unconfigured);
	mac = eth_word(&f->mac);
	vrf = f->vrf;
	bridge = f->bridge;
	md->vrf = vrf;
	md->bridge = bridge;
	if (unlikely(m->data_len < sizeof(*eth)))
		return drop(m, eth_truncated);
	src = eth_word(&eth->src_addr);
	if (unlikely(src == 0 || rte_is_multicast_ether_addr(&eth->src_addr)))
		return drop(m, eth_bad_source);
	if (unlikely(src == mac))
		return RARE;
	if (unlikely(eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4)) && eth_is_tagged(eth))
		return RARE;
	if (unlikely(f->source_check != SOURCE_CHECK_NONE)) {
		const struct drop_reason *why = source_check(m, f);

		if (why)
			return drop_as(m, why);
	}
	if (unlikely(f->boot) && boot_claims(m, f)) {
		md->l3 = sizeof(*eth);
		return BOOT;
	}
	if (likely(vrf != UINT16_MAX && eth_word(&eth->dst_addr) == mac))
		return tenant_input_routed(m, md, eth, vrf);
	return not_for_gateway(m, md, f, eth);
}

NODE_EACH(tenant_input, tenant_one, [IP4] = "ip4_forward", [IP6] = "ip6_forward", [ARP] = "arp_input",
	  [ND] = "nd_input", [BRIDGE] = "bridge_input", [FLOW4] = "flow4_lookup", [FLOW6] = "flow6_lookup",
	  [BOOT] = "boot_input", [RARE] = "tenant_rare");
