// SPDX-License-Identifier: Apache-2.0
// Frames that the master thread builds.
#pragma once

#include <rte_mbuf.h>

#include "base/ip.h"
#include "port/port.h"

// Allocates a frame that leaves by the port: an Ethernet header, the VLAN tag if the port has one, and len zeroed bytes
// of payload. NULL: no buffer.
struct rte_mbuf *frame_new(const struct port *p, const struct rte_ether_addr *dst, uint16_t ether_type, unsigned len,
			   void **payload);
void frame_send(const struct port *p, struct rte_mbuf *m); // takes ownership of m

// The source address of a request: the port's address in the target's subnet, else its first one. False: the port has
// no address of this family.
bool frame_source(const struct port *p, const struct ip_addr *target, struct ip_addr *src);
bool frame_is_connected(const struct port *p, const struct ip_addr *a); // in a subnet of p, a fabric port
