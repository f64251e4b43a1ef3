// SPDX-License-Identifier: Apache-2.0
// Neighbours: link addresses of the hosts on a port, found with ARP (RFC 826) and ND (RFC 4861), and the adjacencies that lead to
// them.
// Master thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/error.h"
#include "base/ip.h"
#include "port/port.h"

#define NEIGHBOR_WAITING 32 // packets that wait for one address
#define NEIGHBOR_RETRIES 3
#define NEIGHBOR_MAX 65535 // adjacencies

enum neighbor_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_STALE, NEIGH_PROBE, NEIGH_FAILED, NEIGH_PERMANENT };

struct neighbor {
	struct neighbor *next; // in its hash chain
	uint16_t port;
	struct ip_addr addr; // family 0: known by its MAC only
	struct rte_ether_addr mac;
	enum neighbor_state state;
	uint32_t adj;
	uint32_t refs;      // next hops
	uint64_t confirmed; // TSC when it last answered, 0 = never
	uint64_t changed;   // TSC of the last state change or probe
	uint8_t probes;
	uint8_t n_waiting;
	struct rte_mbuf *waiting[NEIGHBOR_WAITING];
};

int neighbor_init(void);

// What neighbours tell and ask those that lead packets to them (base/notify.h).
struct neighbor_listener {
	void (*changed)(void);    // one that a next hop holds can be reached now, or no longer
	bool (*rebuilding)(void); // may what workers use still name an adjacency that was given back?
	bool (*leads_elsewhere)(uint16_t vrf, const struct ip_addr *target, uint16_t port); // is there a route that does not
											    // lead to port? Workers and master
	struct neighbor_listener *next;
};
void neighbor_listen(struct neighbor_listener *l);

// An adjacency for a next hop: by address, or by MAC when that is given. Creates the neighbour and starts resolving it.
int adjacency_hold(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, uint32_t *adj, struct error *err);
void adjacency_put(uint32_t adj);

int neighbor_set(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, struct error *err); // permanent
int neighbor_del(uint16_t port, const struct ip_addr *addr, struct error *err);
struct neighbor *neighbor_find(uint16_t port, const struct ip_addr *addr);
// Heard of: updates an entry that exists; creates one only when create is set (a host of the underlay asked for us). confirmed: it
// answered a solicitation of ours.
void neighbor_learn(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, bool create, bool confirmed);
extern uint32_t neighbor_end;             // indices in use lie below
struct neighbor *neighbor_at(uint32_t i); // by adjacency index, NULL: none
unsigned neighbor_count(void);

// A packet that waits for an address: takes it over.
void neighbor_wait(uint32_t adj, struct rte_mbuf *m);
void neighbor_wait_on_port(uint16_t port, const struct ip_addr *addr, struct rte_mbuf *m);
void neighbor_poll(void); // timers: probes, ageing, giving up
extern uint32_t neighbor_age_seconds;
extern uint64_t (*neighbor_clock)(void); // TSC; tests have their own

// arp.c, nd.c: frames. They send through worker_inject().
void arp_send_request(const struct port *port, const struct ip_addr *target);
void nd_send_solicit(const struct port *port, const struct ip_addr *target);
void arp_receive(struct rte_mbuf *m); // takes the frame over; m->port is where it came in
void nd_receive(struct rte_mbuf *m);
