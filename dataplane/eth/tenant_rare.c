// SPDX-License-Identifier: Apache-2.0
// tenant_rare: frames of guests with a VLAN tag, or with the gateway's MAC as their source. A tag with id 0 says only a
// priority: it is removed where the router reads what the guest sends, while bridges carry tags as they are. On a port
// without a gateway, its MAC is one like others.
// Reads: port, vrf, bridge.  Writes: l3.  Next: tenant_input again, or the port's bridge.
#include "base/eth.h"
#include "base/rcu.h"
#include "boot/boot.h"
#include "eth/source_check.h"
#include "graph/node.h"
#include "port/registry.h"

enum { AGAIN = 1, BRIDGE, BOOT };

DROP_REASON(eth_spoofed_gateway,
	    "The guest sent a frame with the virtual gateway's MAC as its own source: forged, or of VRRP or CARP with "
	    "group 1, whose MAC it is. Give the guest's virtual router another group, or the gateway another MAC "
	    "(`--mac` of `corelane port add`).");
DROP_REASON(eth_vlan_tagged,
	    "The guest sent a VLAN-tagged frame, and its port has neither sub-ports nor a bridge domain.");
DROP_REASON(eth_gateway_tagged,
	    "The guest sent a VLAN-tagged frame to the gateway, which has no VLANs. Sub-ports have: see "
	    "`corelane port add --help`.");

static inline bool tenant_rare_reads(const struct port_fwd *f)
{
	return f->vrf != UINT16_MAX || f->source_check != SOURCE_CHECK_NONE || f->stateful || f->boot;
}

static inline edge_t tenant_rare_bridge(struct rte_mbuf *m, const struct port_fwd *f, const struct rte_ether_hdr *eth)
{
	const struct drop_reason *why = f->source_check != SOURCE_CHECK_NONE ? source_check(m, f) : NULL;

	meta(m)->l3 = sizeof(*eth);
	if (why)
		return drop_as(m, why);
	if (f->boot && boot_claims(m, f))
		return BOOT;
	if (f->vrf != UINT16_MAX && eth_same(&eth->dst_addr, &f->mac))
		return drop(m, eth_gateway_tagged);
	return BRIDGE;
}

static inline edge_t tenant_rare_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port]);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (f == NULL)
		return AGAIN; // its drop reason
	if (f->vrf != UINT16_MAX && eth_same(&eth->src_addr, &f->mac))
		return drop(m, eth_spoofed_gateway);
	if (eth_has_priority_tag(m, eth) && tenant_rare_reads(f)) {
		eth_untag(m, sizeof(struct rte_vlan_hdr));
		return AGAIN;
	}
	return f->bridge != UINT16_MAX ? tenant_rare_bridge(m, f, eth) : drop(m, eth_vlan_tagged);
}

NODE_EACH(tenant_rare, tenant_rare_one, [AGAIN] = "tenant_input", [BRIDGE] = "bridge_input", [BOOT] = "boot_input");
