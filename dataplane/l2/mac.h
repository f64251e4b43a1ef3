// SPDX-License-Identifier: Apache-2.0
// Learnt and static MACs of bridge domains; private to l2/. Master thread only, unless stated otherwise.
#pragma once

#include <rte_mbuf.h>

#include "l2/bridge.h"
#include "l2/mac_table.h"

extern uint64_t (*bridge_clock)(void); // TSC; tests set their own

int mac_learn_init(struct error *err);
void mac_learn_begin(uint16_t bridge);    // a new domain
void mac_learn_begin_port(uint16_t port); // a new port

// Worker. Reports to the master that the frame's source is not where the MAC table has it; the master decides.
void mac_learn_ask(const struct rte_mbuf *m, uint64_t key);

// Learns again what was known before a restart, last seen so many tenths of a second ago. remote: family 0, or the
// remote end behind which it was learnt. Returns false if it cannot be learnt any more, is too old, or is known.
bool mac_learn_again(uint64_t key, uint16_t port, const struct ip_addr *remote, uint64_t idle);

// Whether the MAC is the `guest_mac` of other ports of its domain, and not of this one.
bool mac_guest_of_another(uint64_t key, uint16_t port);
void mac_guests_changed(void); // ports were added, changed or removed

// Learnt addresses: counts n more, if the target is of a learnt address; and how many the target's port has, or all
// tunnels of the domain.
void mac_count_learnt(struct bridge *b, uint64_t target, int n);
uint32_t mac_learnt_at(const struct bridge *b, uint64_t target);

int mac_add(struct bridge *b, uint64_t key, uint64_t target); // a new key; updates the domain's counts
void mac_remove(uint32_t slot);
void mac_describe(uint64_t key, uint64_t target, struct mac_entry *out); // all but `seen`

// Remove the addresses of a domain, of a port, or behind a tunnel.
void mac_flush_bridge(struct bridge *b, bool learnt_only);
void mac_flush_port(uint16_t bridge, uint16_t port);
void mac_flush_tunnel(struct bridge *b, uint32_t nexthop); // only learnt ones

// The domain's tunnel to a remote end, 0 = none.
uint32_t bridge_tunnel_to(const struct bridge *b, const struct ip_addr *remote);
bool bridge_floods_to(const struct bridge *b, uint32_t nexthop);
bool bridge_has_via(const struct bridge *b, uint32_t nexthop); // a static address is behind this tunnel
bool bridge_is_gateway(const struct bridge *b, const struct rte_ether_addr *mac);
int bridge_check_tunnel(uint32_t nexthop, const char *field, struct error *err);
void bridge_publish(struct bridge *b, uint16_t without_port); // leaves this port out; 0: none
int bridge_ports_init(struct error *err);
