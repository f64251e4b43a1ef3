// SPDX-License-Identifier: Apache-2.0
// bridge_suppress: broadcasts and multicasts from local ports of a bridge domain with neighbor suppression. Answers, in
// place, ARP requests and neighbour solicitations for stations whose MAC and IP address are given, as their owner would
// (RFC 9161); all other frames are flooded.
// Reads: bridge, port.  Writes: l3, out_port, flags.  Next: port_tx, bridge_flood.
#include "base/eth.h"
#include "graph/node.h"
#include "l2/bridge.h"
#include "l2/mac_ip.h"
#include "neighbor/arp_packet.h"
#include "neighbor/nd_packet.h"

enum { TX = 1, FLOOD };

// Nobody may be told that an address is taken by its own guest, which sends from another port or has moved here.
static inline bool bridge_suppress_knows(struct rte_mbuf *m, const struct rte_ether_addr *asks,
					 const struct ip_addr *target, struct rte_ether_addr *mac)
{
	return mac_ip_find(meta(m)->bridge, target, mac) && !rte_is_same_ether_addr(asks, mac);
}

// Announcements and probes (RFC 5227) are for the owner of the address, if there is one, and for all who know it.
static inline bool bridge_suppress_arp(struct rte_mbuf *m, const struct rte_ether_hdr *eth)
{
	struct rte_arp_hdr *arp = arp_parse(m);
	struct rte_ether_addr mac;
	struct ip_addr target;

	if (arp == NULL || arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST) || arp_is_gratuitous(arp) ||
	    arp->arp_data.arp_sip == 0)
		return false;
	target = ip4_addr(arp->arp_data.arp_tip);
	if (!bridge_suppress_knows(m, &eth->src_addr, &target, &mac))
		return false;
	arp_answer(m, arp, &mac);
	return true;
}

// The answer has the router flag: a host that loses it is no router any more for those who use it as one.
static inline bool bridge_suppress_nd(struct rte_mbuf *m, const struct rte_ether_hdr *eth)
{
	struct rte_ether_addr mac;
	struct ip_addr target;
	struct nd_packet p;

	if (!eth_is_nd(m, sizeof(*eth)) || !nd_parse(m, &p) || p.nd->type != ND_SOLICIT ||
	    nd_is_unspecified(p.ip->src_addr))
		return false;
	target = ip6_addr(p.nd->target);
	return bridge_suppress_knows(m, &eth->src_addr, &target, &mac) && nd_answer(m, &p, &mac, true);
}

static inline edge_t bridge_suppress_one(struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct pkt_meta *md = meta(m);
	bool answered = false;

	md->l3 = sizeof(*eth);
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		answered = bridge_suppress_arp(m, eth);
	else if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		answered = bridge_suppress_nd(m, eth);
	md->l3 = 0; // the payload is the whole frame
	if (!answered)
		return FLOOD;
	md->out_port = m->port;
	md->flags |= META_ANSWER;
	return TX;
}

static uint16_t bridge_suppress(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, bridge_suppress_one);
}

NODE(bridge_suppress, bridge_suppress, [TX] = "port_tx", [FLOOD] = "bridge_flood");
