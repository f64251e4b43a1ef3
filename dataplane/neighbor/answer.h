// SPDX-License-Identifier: Apache-2.0
// The addresses for which the router answers ARP requests and neighbour solicitations.
#pragma once

#include <stdbool.h>

#include "base/ip.h"
#include "port/registry.h"

enum answer {
	ANSWER_NO,
	ANSWER_OWN,   // the router's own address on this port
	ANSWER_PROXY, // another host's, to which the router has a route that does not lead back to the request's port
};

// Called by workers and by the master thread.
// fe80:: and the MAC's EUI-64 (RFC 4291, appendix A).
void answer_link_local(const struct rte_ether_addr *mac, uint8_t out[16]);
// True: a is a gateway or fabric address of the port, or its link-local address.
bool answer_is_own(const struct port_fwd *f, const struct ip_addr *a);
enum answer answer_for(const struct port_fwd *f, uint16_t port, const struct ip_addr *target);

// Master thread. True: the port has a configured guest MAC, and a is an address of that guest, but mac is a different
// MAC.
bool answer_is_wrong_guest(const struct port *p, const struct ip_addr *a, const struct rte_ether_addr *mac);
