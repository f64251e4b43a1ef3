// SPDX-License-Identifier: Apache-2.0
// Builds the headers of tunnels. They are at the end of nexthop.hdr and are built backwards: the header pushed first is
// next to the payload.
#pragma once

#include "l3/nexthop.h"

extern struct rte_ether_addr tunnel_router_mac; // inner MAC of this node in routed VXLAN and Geneve
// Before the first tunnel. A zero MAC is replaced by one that is the same at each start with this run directory.
void tunnel_set_router_mac(const struct rte_ether_addr *mac, const char *run_dir);

// Reserves n bytes in front of the headers that were pushed so far.
void *tunnel_push(struct nexthop *nh, unsigned n);
// Pushes an Ethernet header between the MACs of the two routers.
void tunnel_push_router_eth(struct nexthop *nh, const struct tunnel_config *t);

bool tunnel_udp6_checksum(const struct tunnel_config *t); // whether packets over IPv6 get a UDP checksum
// Refuses a number that an encapsulation needs, and that is missing (0) or out of range.
int tunnel_check_id(const char *field, uint32_t id, uint32_t min, uint32_t max, struct error *err);
int tunnel_check_vni(const struct tunnel_config *t, struct error *err); // encap_ops.check of encapsulations with a VNI
