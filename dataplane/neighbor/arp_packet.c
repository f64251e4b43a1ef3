// SPDX-License-Identifier: Apache-2.0
// Checks received ARP packets, and turns requests into replies.
#include "neighbor/arp_packet.h"

#define MULTICAST_OR_ABOVE 0xe0000000u

struct rte_arp_hdr *arp_parse(struct rte_mbuf *m)
{
	unsigned l3 = meta(m)->l3;
	struct rte_arp_hdr *arp = rte_pktmbuf_mtod_offset(m, struct rte_arp_hdr *, l3);

	if (l3 < sizeof(struct rte_ether_hdr) || m->data_len < l3 + sizeof(*arp))
		return NULL;
	if (arp->arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) || arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return NULL;
	if (arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != sizeof(uint32_t))
		return NULL;
	if (arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST) && arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REPLY))
		return NULL;
	if (!rte_is_valid_assigned_ether_addr(&arp->arp_data.arp_sha))
		return NULL;
	return rte_be_to_cpu_32(arp->arp_data.arp_sip) < MULTICAST_OR_ABOVE ? arp : NULL;
}

void arp_answer(struct rte_mbuf *m, struct rte_arp_hdr *arp, const struct rte_ether_addr *mac)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_arp_ipv4 *d = &arp->arp_data;
	uint32_t asked = d->arp_tip;

	arp->arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	d->arp_tha = d->arp_sha;
	d->arp_tip = d->arp_sip;
	d->arp_sha = *mac;
	d->arp_sip = asked;
	eth->dst_addr = d->arp_tha;
	eth->src_addr = *mac;
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL; // clears the receive flags of the request
}
