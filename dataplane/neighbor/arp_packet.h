// SPDX-License-Identifier: Apache-2.0
// ARP for Ethernet and IPv4 (RFC 826), for nodes and for the master thread.
#pragma once

#include <rte_arp.h>
#include <rte_mbuf.h>

#include "graph/meta.h"

// The ARP header at offset meta->l3 of a frame. NULL: malformed, by its address types and lengths, its operation, or a
// sender whose MAC or IPv4 address cannot be a host's.
struct rte_arp_hdr *arp_parse(struct rte_mbuf *m);

// Turns a request into the reply that the requested address is at mac.
void arp_answer(struct rte_mbuf *m, struct rte_arp_hdr *arp, const struct rte_ether_addr *mac);

static inline bool arp_is_gratuitous(const struct rte_arp_hdr *arp)
{
	return arp->arp_data.arp_sip == arp->arp_data.arp_tip;
}
