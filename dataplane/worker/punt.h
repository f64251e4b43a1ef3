// SPDX-License-Identifier: Apache-2.0
// Packets for the control plane: node `punt` puts them into rings that the master thread empties, a bounded number in each turn.
//
// There is a ring for each class, and the master gives each class a share of its turn, so none keeps another waiting. ARP and ND
// are limited by the port that they came in by as well, in the node, before the ring.
#pragma once

#include <stdbool.h>

#include <rte_mbuf.h>

#include "graph/meta.h"

enum punt {
	PUNT_ARP,   // a frame, m->port is where it came in
	PUNT_ND,    // the same
	PUNT_HOLD,  // an IP packet (data starts there) that waits for adjacency meta->arg
	PUNT_GLEAN, // the same, for its own destination address on port meta->arg
	PUNT_KINDS
};

// In the order in which the master looks at them.
enum punt_class {
	PUNT_FABRIC,  // ARP and ND of the underlay
	PUNT_GUEST,   // ARP and ND of tenants
	PUNT_WAITING, // PUNT_HOLD and PUNT_GLEAN, of all ports: neighbor_hold limits them
	PUNT_CLASSES
};

struct punt_limits {
	uint32_t room;        // packets in the ring, a power of two less one
	uint32_t rate, burst; // of one port on one worker, packets per second and at once; 0: not limited here
	uint32_t turn;        // packets that the master takes in a turn, at most
};
extern const struct punt_limits punt_limits[PUNT_CLASSES];

int punt_init(void);
void punt_register(enum punt kind, void (*fn)(struct rte_mbuf *m)); // fn runs on the master thread and owns the packet
void punt_poll(void);                                               // a turn: from the master's loop, each millisecond

// Packets of PUNT_WAITING outlive the worker's walk, so what they name must not become another's while one is on its way. Master thread.
uint64_t punt_token(void);        // stands for all packets that have been punted until now
bool punt_passed(uint64_t token); // the master has dealt with all of them

// For nodes: marks the packet; the caller returns its edge to "punt".
static inline void punt_mark(struct rte_mbuf *m, enum punt kind)
{
	meta(m)->out_port = kind;
}
