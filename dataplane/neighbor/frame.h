// SPDX-License-Identifier: Apache-2.0
// Private to neighbor/: frames that the master thread makes.
#pragma once

#include <rte_mbuf.h>

#include "base/ip.h"
#include "port/port.h"

// A frame from the port with len bytes of zeroed payload behind the Ethernet header, VLAN tag included where the port has one.
// NULL: no buffer.
struct rte_mbuf *frame_new(const struct port *p, const struct rte_ether_addr *dst, uint16_t ether_type, unsigned len,
			   void **payload);
void frame_send(const struct port *p, struct rte_mbuf *m); // takes it over

// The address to ask from: the port's in the subnet of the target, else its first one. False: it has none of the family.
bool frame_source(const struct port *p, const struct ip_addr *target, struct ip_addr *src);
bool frame_is_connected(const struct port *p, const struct ip_addr *a); // lies in a subnet of the fabric port
