// SPDX-License-Identifier: Apache-2.0
// Neighbours: the MAC addresses of the hosts on a port, resolved with ARP (RFC 826) and ND (RFC 4861), and the
// adjacencies that lead to these hosts. Master thread only, unless stated otherwise.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_mbuf.h>

#include "base/error.h"
#include "base/ip.h"
#include "port/port.h"

#define NEIGHBOR_WAITING 32 // packets that wait for one address
#define NEIGHBOR_RETRIES 3  // solicitations without an answer before a neighbour has failed
#define NEIGHBOR_MAX 65535  // adjacencies

enum neighbor_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_STALE, NEIGH_PROBE, NEIGH_FAILED, NEIGH_PERMANENT };

// Entries that neither next hops nor the configuration hold are bounded. Those that nobody sends to make room for those
// that somebody does.
enum neighbor_use { NEIGH_HELD, NEIGH_SENT_TO, NEIGH_IDLE };

struct neighbor {
	struct neighbor *next;                     // in its hash chain
	TAILQ_ENTRY(neighbor) idle_port, idle_all; // with NEIGH_IDLE
	uint16_t port;
	struct ip_addr addr; // family 0: only the MAC is known
	struct rte_ether_addr mac;
	enum neighbor_state state;
	uint32_t adj;
	uint32_t refs;      // next hops that hold it
	uint64_t confirmed; // TSC when it last answered, 0 = never
	uint64_t changed;   // TSC of the last state change or probe
	enum neighbor_use use;
	uint8_t owner; // of a permanent one (base/owner.h)
	uint8_t probes;
	uint8_t n_waiting;
	struct rte_mbuf *waiting[NEIGHBOR_WAITING];
};

int neighbor_init(void);

struct neighbor_config { // of a port (PORT_SETTINGS()); also in port_fwd
	bool proxy_arp;  // tenant: the gateway answers for every address that the VRF has a route for
};
const struct neighbor_config *neighbor_config(const struct port_config *cfg);
struct neighbor_config *neighbor_config_edit(struct port_config *cfg);

// Callbacks of the modules whose next hops and routes lead to neighbours (base/notify.h).
struct neighbor_listener {
	void (*changed)(void);    // a neighbour that a next hop holds became usable or unusable
	bool (*rebuilding)(void); // true: workers may still use objects that refer to a released adjacency
	// True: the VRF has a route to target that does not lead to port. Called by workers and the master.
	bool (*leads_elsewhere)(uint16_t vrf, const struct ip_addr *target, uint16_t port);
	struct neighbor_listener *next;
};
void neighbor_listen(struct neighbor_listener *l);

// Takes a reference to the adjacency of a neighbour: by its MAC if that is given, else by its address. Creates the
// neighbour if there is none, and starts to resolve it.
int adjacency_hold(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, uint32_t *adj,
		   struct error *err);
void adjacency_put(uint32_t adj); // releases the reference

// Creates a permanent entry, or makes an entry permanent.
int neighbor_set(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, struct error *err);
// Refuses the address of a host that is on no link of a fabric port: it has neither an address of the port's prefixes
// nor a link-local one. Where all prefixes are single addresses, those of the link are not known.
int neighbor_check_link(uint16_t port, const struct ip_addr *addr, const char *field, struct error *err);
int neighbor_del(uint16_t port, const struct ip_addr *addr, struct error *err);
struct neighbor *neighbor_find(uint16_t port, const struct ip_addr *addr);
// Updates the entry of an address that a received packet claims. create: makes one if there is none (a host of the
// underlay asked for an address of the router). confirmed: the packet answers a solicitation of the router.
void neighbor_learn(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, bool create,
		    bool confirmed);
extern uint32_t neighbor_end;             // all indices in use are lower
struct neighbor *neighbor_at(uint32_t i); // by adjacency index, NULL: none
unsigned neighbor_count(void);

// Sends the packet, or queues it until the neighbour is resolved. Both functions take ownership of m.
void neighbor_wait(uint32_t adj, struct rte_mbuf *m);
void neighbor_wait_on_port(uint16_t port, const struct ip_addr *addr, struct rte_mbuf *m);
void neighbor_poll(void); // timers: retries, ageing, failure
extern uint32_t neighbor_age_seconds;
extern uint64_t (*neighbor_clock)(void); // TSC; tests replace it

// arp.c, nd.c. Frames are sent through worker_inject().
void arp_send_request(const struct port *port, const struct ip_addr *target);
void nd_send_solicit(const struct port *port, const struct ip_addr *target);
void arp_receive(struct rte_mbuf *m); // takes ownership of m; m->port is the port that it came in by
void nd_receive(struct rte_mbuf *m);
