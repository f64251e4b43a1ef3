// SPDX-License-Identifier: Apache-2.0
// arp_input: answers, in place, guests that ask for their gateway. ARP from neighbours, and all ARP of the underlay,
// goes to the control plane, and to the kernel as well if the port has a host port. Requests between guests go to their
// bridge. Hosts of the underlay that ask for the router's address are answered in place when the control plane has had
// enough of such requests.
// Reads: port, bridge, l3 (offset of the ARP header).  Writes: out_port.
// Next: port_tx, punt, host_share, bridge_input.
#include "base/rcu.h"
#include "graph/node.h"
#include "neighbor/answer.h"
#include "neighbor/arp_packet.h"
#include "port/registry.h"
#include "worker/punt.h"

enum { TX = 1, PUNT, SHARE, BRIDGE };

DROP_REASON(arp_malformed, "The ARP packet is truncated, not for Ethernet and IPv4, neither a request nor a reply, or "
			   "its sender is not a host.");
DROP_REASON(arp_spoofed_gateway, "The guest claimed its gateway's address in ARP.");
DROP_REASON(arp_not_ours, "The guest asked for an address that is not the router's and that it does not proxy (see "
			  "`proxy_arp` of the port).");

static inline edge_t arp_input_to_master(struct rte_mbuf *m, enum punt kind)
{
	punt_mark(m, kind);
	return PUNT;
}

static inline edge_t arp_input_answer(struct rte_mbuf *m, struct rte_arp_hdr *arp, const struct port_fwd *f)
{
	arp_answer(m, arp, &f->mac);
	meta(m)->out_port = m->port;
	meta(m)->flags |= META_ANSWER;
	return TX;
}

static inline edge_t arp_input_others(struct rte_mbuf *m)
{
	return meta(m)->bridge != UINT16_MAX ? BRIDGE : drop(m, arp_not_ours);
}

static inline edge_t arp_input_tenant(struct rte_mbuf *m, struct rte_arp_hdr *arp, const struct port_fwd *f)
{
	const struct ip_addr sender = ip4_addr(arp->arp_data.arp_sip), target = ip4_addr(arp->arp_data.arp_tip);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	enum answer answer;

	if (answer_is_own(f, &sender))
		return drop(m, arp_spoofed_gateway);
	if (arp_is_gratuitous(arp) ||
	    arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY)) // a broadcast is also for the other guests of the bridge
		return meta(m)->bridge != UINT16_MAX && rte_is_multicast_ether_addr(&eth->dst_addr)
			       ? BRIDGE
			       : arp_input_to_master(m, PUNT_ARP);
	answer = answer_for(f, m->port, &target);
	// A proxy does not answer a probe (RFC 5227): the guest would believe that its own address is taken.
	if (answer == ANSWER_NO || (answer == ANSWER_PROXY && ip_is_unspecified(&sender)))
		return arp_input_others(m);
	return arp_input_answer(m, arp, f);
}

// The kernel has neighbours and addresses of its own, but only the router answers for the router's addresses.
static inline edge_t arp_input_fabric(struct rte_mbuf *m, struct rte_arp_hdr *arp, const struct port_fwd *f)
{
	const struct ip_addr sender = ip4_addr(arp->arp_data.arp_sip), target = ip4_addr(arp->arp_data.arp_tip);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	bool reply = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY);

	if (!reply && answer_is_own(f, &target)) {
		if (!answer_is_own(f, &sender))
			return punt_take(m->port, PUNT_ARP) ? arp_input_to_master(m, PUNT_ARP_ASKED)
							    : arp_input_answer(m, arp, f);
		return arp_input_to_master(m, PUNT_ARP);
	}
	if (reply && rte_is_same_ether_addr(&eth->dst_addr, &f->mac) && !answer_is_own(f, &sender))
		arp_input_to_master(m, PUNT_ARP_REPLY);
	else
		arp_input_to_master(m, PUNT_ARP);
	return f->host ? SHARE : PUNT;
}

static inline edge_t arp_input_one(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);
	struct rte_arp_hdr *arp = arp_parse(m);

	if (unlikely(f == NULL || arp == NULL))
		return drop(m, arp_malformed);
	return f->role == PORT_FABRIC ? arp_input_fabric(m, arp, f) : arp_input_tenant(m, arp, f);
}

static uint16_t arp_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, arp_input_one);
}

NODE(arp_input, arp_input, [TX] = "port_tx", [PUNT] = "punt", [SHARE] = "host_share", [BRIDGE] = "bridge_input");
