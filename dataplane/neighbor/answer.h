// SPDX-License-Identifier: Apache-2.0
// Whose address is it? What ARP requests and neighbour solicitations are answered for.
#pragma once

#include <stdbool.h>

#include "base/ip.h"
#include "port/registry.h"

enum answer {
	ANSWER_NO,
	ANSWER_OWN,   // the router's own address on this port
	ANSWER_PROXY, // another's, to which the router has a route that does not lead back to the asker
};

// Workers and master.
void answer_link_local(const struct rte_ether_addr *mac, uint8_t out[16]); // fe80:: and the MAC's EUI-64 (RFC 4291, appendix A)
bool answer_is_own(const struct port_fwd *f, const struct ip_addr *a); // a gateway, or a fabric address; the link-local address too
enum answer answer_for(const struct port_fwd *f, uint16_t port, const struct ip_addr *target);

// Master: a guest with a configured MAC that uses one of its configured addresses with another MAC.
bool answer_is_wrong_guest(const struct port *p, const struct ip_addr *a, const struct rte_ether_addr *mac);
