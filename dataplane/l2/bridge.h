// SPDX-License-Identifier: Apache-2.0
// Bridge domains: MAC learning, flooding and, if their ports have a VRF, integrated routing and bridging (IRB).
//
// A domain belongs to one tenant: its local ports share one VRF, if any, and one gateway MAC. Frames have no TTL. Split
// horizon prevents loops: a frame from a tunnel is sent only to local ports, so the remote ends must form a full mesh.
// A guest that bridges two of its ports creates a loop that nothing here breaks; the counter `moves` then keeps rising.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/ip.h"
#include "base/referrer.h"
#include "l2/mac_ip.h"

#define BRIDGE_MAX (LIMIT_BRIDGE_ID_MAX + 1)
#define BRIDGE_NAME (NOTATION_NAME_LONGEST + 1)
#define BRIDGE_FLOOD_MAX LIMIT_BRIDGE_FLOOD_ITEMS
#define BRIDGE_NONE UINT16_MAX
#define BRIDGE_L2 (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + 0u) // of a frame, beyond the MTU
#define MAC_MAX (1u << 20)                                 // in all domains together

struct bridge_config {
	char name[BRIDGE_NAME];
	uint32_t id;       // 0: the next free one
	bool drop_unknown; // unknown unicast is dropped instead of flooded
	bool no_learning;
	bool suppress;      // neighbor suppression: see bridge_suppress.c
	bool snooping;      // of multicast: see snoop.h
	uint32_t mac_limit; // learnt addresses, 0 = the default
	uint32_t flood[BRIDGE_FLOOD_MAX];
	unsigned n_flood;
};

// The form that workers read: immutable, replaced as a whole.
struct bridge_fwd {
	bool drop_unknown, learning, suppress, snooping;
	uint16_t vrf;                  // VRF of the ports, UINT16_MAX = frames are not routed
	struct rte_ether_addr gateway; // with a VRF
	unsigned n_ports, n_flood;
	uint16_t *ports; // local ports of the domain
	uint32_t *flood; // tunnel next hops
};

struct bridge { // control plane
	struct bridge_config cfg;
	uint16_t id;
	uint8_t owner; // base/owner.h
	uint32_t refs; // held by the modules of bridge_refer()
	uint32_t n_macs, n_learnt, n_learnt_by_tunnels;
	uint64_t learn_refused;     // not learnt: mac_limit, the port's share of it, MAC_MAX or no memory
	uint64_t learn_unreachable; // not learnt: no tunnel of the domain leads to the sending host
	uint64_t moves;             // learnt addresses that moved
	unsigned n_vias;            // tunnels used by static addresses
	struct bridge_via {
		uint32_t nexthop, macs;
	} * vias;
};

extern struct bridge_fwd *bridge_fwds[BRIDGE_MAX]; // workers: ro (RCU), NULL = there is none
extern uint32_t mac_age_seconds;
extern uint32_t flood_copies_per_second; // of each port, and of the tunnels of each bridge; per worker

int bridge_init(struct error *err);
struct bridge *bridge_add(const struct bridge_config *cfg, struct error *err);
int bridge_set(struct bridge *b, const struct bridge_config *cfg, struct error *err);
int bridge_del(const char *name, struct error *err);
struct bridge *bridge_get(uint16_t id);                                                 // NULL
struct bridge *bridge_find(const char *name);                                           // NULL
struct bridge *bridge_find_err(const char *name, const char *field, struct error *err); // NULL with err
struct bridge *bridge_next(const struct bridge *b);
unsigned bridge_count(void);
void bridge_refer(struct referrer *r); // of a module that counts in bridge.refs

// MAC table.
struct mac_entry {
	uint16_t bridge;
	struct rte_ether_addr mac;
	bool learnt;
	uint8_t owner;         // of a static address (base/owner.h)
	uint16_t port;         // a local port, if nexthop is 0
	uint32_t nexthop;      // a tunnel, else 0
	struct ip_addr remote; // the tunnel's remote end; read only
	uint64_t seen;         // TSC, to a tenth of a second; read only
	unsigned n_addrs;      // IP addresses of a static address
	struct ip_addr addrs[MAC_IP_MAX];
};

int mac_set(const struct mac_entry *e, struct error *err); // adds a static address
int mac_unset(uint16_t bridge, const struct rte_ether_addr *mac, struct error *err);
bool mac_get(uint16_t bridge, const struct rte_ether_addr *mac, struct mac_entry *out); // false: there is none
// Entries are ordered by bridge and MAC. after NULL: the first one. Returns false if there is none.
bool mac_next(const struct mac_entry *after, struct mac_entry *out);
unsigned mac_count(void);
uint64_t mac_learn_too_many(uint16_t bridge);  // frames whose source was not reported: their port reports too many
uint64_t mac_learn_too_many_of(uint16_t port); // those of a port
void bridge_tick(void); // learns the addresses that workers have reported; from the master's loop, often
void bridge_poll(void); // ageing; from the master's loop, every 100 ms
