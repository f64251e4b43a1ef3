// SPDX-License-Identifier: Apache-2.0
// bridge_tagged: frames for the gateway of a bridge domain that have a VLAN tag. If it says only a priority, it is
// removed.
// Reads: l3, vrf, reason (of a drop).  Next: the route lookup.
#include "base/eth.h"
#include "flow/flow.h"
#include "graph/node.h"

enum { IP4 = 1, IP6, FLOW4, FLOW6 };

static inline edge_t bridge_tagged_one(struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	bool stateful = flow_zones[meta(m)->vrf].stateful;

	if (!eth_has_priority_tag(m, eth))
		return EDGE_DROP;
	eth_untag(m, sizeof(struct rte_vlan_hdr));
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return stateful ? FLOW4 : IP4;
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && !eth_is_nd(m, sizeof(*eth)))
		return stateful ? FLOW6 : IP6;
	return EDGE_DROP;
}

NODE_EACH(bridge_tagged, bridge_tagged_one, [IP4] = "ip4_forward", [IP6] = "ip6_forward", [FLOW4] = "flow4_lookup",
	  [FLOW6] = "flow6_lookup");
