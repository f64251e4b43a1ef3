// SPDX-License-Identifier: Apache-2.0
// ARP of the master thread: requests MACs, learns from replies, answers on fabric ports.
#include "neighbor/answer.h"
#include "neighbor/arp_packet.h"
#include "neighbor/frame.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"

DROP_REASON(arp_late, "An ARP frame reached the control plane after its port had been removed or had been given the "
		      "sender's address.");
DROP_REASON(
	arp_address_conflict,
	"Another host on the underlay claims one of this node's addresses in ARP: the address is configured twice.");
DROP_REASON(arp_wrong_guest_mac,
	    "The guest claimed one of its addresses with another MAC than the one configured for it.");

void arp_send_request(const struct port *p, const struct ip_addr *target)
{
	static const struct rte_ether_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	const struct neighbor *n = neighbor_find(p->id, target);
	bool probe = n && n->state == NEIGH_PROBE;
	struct ip_addr src = {.family = IPV4};
	struct rte_arp_hdr *arp;
	struct rte_mbuf *m =
		frame_new(p, probe ? &n->mac : &broadcast, RTE_ETHER_TYPE_ARP, sizeof(*arp), (void **)&arp);

	if (m == NULL)
		return;
	frame_source(p, target, &src); // without an address, 0.0.0.0: a probe (RFC 5227)
	arp->arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = RTE_ETHER_ADDR_LEN;
	arp->arp_plen = sizeof(uint32_t);
	arp->arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST);
	arp->arp_data.arp_sha = port_fwds[p->id]->mac;
	arp->arp_data.arp_sip = ip4_be(&src);
	arp->arp_data.arp_tip = ip4_be(target);
	frame_send(p, m);
}

// Returns why the sender must not be learnt; NULL: it may.
static const struct drop_reason *arp_refuse(const struct port *p, const struct rte_arp_hdr *arp,
					    const struct ip_addr *sender)
{
	if (answer_is_own(port_fwds[p->id], sender))
		return p->role == PORT_FABRIC ? &drop_arp_address_conflict : &drop_arp_late;
	if (answer_is_wrong_guest(p, sender, &arp->arp_data.arp_sha))
		return &drop_arp_wrong_guest_mac;
	return NULL;
}

// Entries are created only for hosts of the underlay that ask for the router's address: they are about to send to it.
static void arp_learn(const struct port *p, const struct rte_arp_hdr *arp, const struct ip_addr *sender, bool for_us)
{
	const struct rte_arp_ipv4 *d = &arp->arp_data;
	bool reply = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY);
	bool create = !reply && for_us && frame_is_connected(p, sender);

	if (!ip_is_unspecified(sender))
		neighbor_learn(p->id, sender, &d->arp_sha, create,
			       reply && rte_is_same_ether_addr(&d->arp_tha, &port_fwds[p->id]->mac));
}

void arp_receive(struct rte_mbuf *m)
{
	const struct port *p = port_get(m->port);
	struct rte_arp_hdr *arp = arp_parse(m);
	const struct drop_reason *refused;
	struct ip_addr sender, target;
	bool for_us;

	if (p == NULL || arp == NULL) {
		neighbor_drop(m, &drop_arp_late);
		return;
	}
	sender = ip4_addr(arp->arp_data.arp_sip);
	target = ip4_addr(arp->arp_data.arp_tip);
	refused = arp_refuse(p, arp, &sender);
	if (refused) {
		neighbor_drop(m, refused);
		return;
	}
	for_us = answer_is_own(port_fwds[p->id], &target);
	arp_learn(p, arp, &sender, for_us);
	if (!for_us || arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST)) {
		rte_pktmbuf_free(m);
		return;
	}
	arp_answer(m, arp, &port_fwds[p->id]->mac);
	frame_send(p, m);
}
