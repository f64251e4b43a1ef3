// SPDX-License-Identifier: Apache-2.0
// Learnt and static MACs of bridge domains; private to l2/. Master thread only, unless stated otherwise.
#pragma once

#include <rte_mbuf.h>

#include "l2/bridge.h"
#include "l2/mac_table.h"

extern uint64_t (*bridge_clock)(void); // TSC; tests set their own

int mac_learn_init(struct error *err);

// Worker. Reports to the master that the frame's source is not where the MAC table has it; the master decides.
void mac_learn_ask(const struct rte_mbuf *m, uint64_t key);

int mac_add(struct bridge *b, uint64_t key, uint64_t target); // a new key; updates the domain's counts
void mac_remove(uint32_t slot);

// Remove the addresses of a domain, of a port, or behind a tunnel.
void mac_flush_bridge(struct bridge *b, bool learnt_only);
void mac_flush_port(uint16_t bridge, uint16_t port);
void mac_flush_tunnel(struct bridge *b, uint32_t nexthop); // only learnt ones

// The domain's tunnel to a remote end, 0 = none.
uint32_t bridge_tunnel_to(const struct bridge *b, const struct ip_addr *remote);
bool bridge_floods_to(const struct bridge *b, uint32_t nexthop);
bool bridge_is_gateway(const struct bridge *b, const struct rte_ether_addr *mac);
int bridge_check_tunnel(uint32_t nexthop, const char *field, struct error *err);
void bridge_publish(struct bridge *b, uint16_t without_port); // leaves this port out; 0: none
int bridge_ports_init(struct error *err);
