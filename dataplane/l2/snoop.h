// SPDX-License-Identifier: Apache-2.0
// Multicast snooping of bridge domains (RFC 4541): a frame to a group goes only to the ports that joined it, and to
// those of multicast routers. Workers report what hosts say through a ring, as in mac_learn.c; the master keeps the
// memberships and publishes them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/ip.h"
#include "graph/drop.h"
#include "l2/bridge.h"

#define SNOOP_PORT_MAX 256u    // memberships of a port
#define SNOOP_BRIDGE_MAX 4096u // of a bridge domain
#define SNOOP_TOTAL_MAX 65536u // of all together

// --- Workers. ---

// The local ports that get a frame: those in either list, in ascending order.
struct snoop_ends {
	const uint16_t *ports, *more;
	unsigned n_ports, n_more;
	const struct drop_reason *none; // why, if there are none
};

// The ends of a frame to several receivers, in a domain with snooping, where out has all of them already. False: the
// frame is damaged, or its port reports too much, and `none` says which. Tunnels get all frames (RFC 4541, 2.1.2).
bool snoop_ends(struct rte_mbuf *m, bool from_tunnel, struct snoop_ends *out);

static inline bool snoop_ends_next(struct snoop_ends *e, uint16_t *port)
{
	uint16_t a = e->n_ports > 0 ? *e->ports : UINT16_MAX, b = e->n_more > 0 ? *e->more : UINT16_MAX;

	*port = a < b ? a : b;
	if (*port == UINT16_MAX)
		return false;
	if (a == *port) {
		e->ports++;
		e->n_ports--;
	}
	if (b == *port) {
		e->more++;
		e->n_more--;
	}
	return true;
}

// --- Master. ---

struct snoop_entry {
	uint16_t bridge, port;
	struct ip_addr group;
	uint32_t seen; // mac_clock, when the last report came
};

int snoop_init(struct error *err);
void snoop_follow(struct bridge *b);  // its settings or its ports have changed, and what workers read is published
void snoop_forget(struct bridge *b);  // it is removed
void snoop_port_begin(uint16_t port); // joined a domain, or its link came up
void snoop_port_end(uint16_t bridge, uint16_t port); // leaves it
void snoop_tick(void);
void snoop_poll(void); // every 100 ms

bool snoop_next(const struct snoop_entry *after, struct snoop_entry *out); // by bridge, group and port; NULL: the first
bool snoop_is_router(uint16_t port);
uint32_t snoop_count(uint16_t bridge);
uint64_t snoop_refused(uint16_t bridge); // joins that were not noted, because of a limit
