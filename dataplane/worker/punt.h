// SPDX-License-Identifier: Apache-2.0
// Packets for the control plane: node `punt` sends them through rings to the master thread, which handles a bounded
// number in each turn.
//
// Each class has a ring and a share of the master's turn of its own, so that no class delays another. Before the ring,
// the node also limits ARP and ND from each port.
#pragma once

#include <stdbool.h>

#include <rte_mbuf.h>

#include "graph/meta.h"

enum punt {
	PUNT_ARP,       // a frame; m->port is the port that it came in by
	PUNT_ND,        // the same
	PUNT_ARP_REPLY, // a reply to the port's MAC: the router has asked for it, or the sender lies
	PUNT_ND_REPLY,  // the same
	PUNT_ARP_ASKED, // a request for the router's address, for which the node has called punt_take(PUNT_ARP)
	PUNT_ND_ASKED,  // the same with PUNT_ND
	PUNT_HOLD,      // an IP packet (data starts there) that waits for adjacency meta->arg
	PUNT_GLEAN,     // an IP packet that waits for its destination address, a host on port meta->arg
	PUNT_PATH_MTU,  // an ICMP error for the router; its IP header is at meta->l3
	PUNT_BOOT,      // a request that boot_input has checked; its IP header is at meta->l3
	PUNT_KINDS
};

// In the order in which the master serves them.
enum punt_class {
	PUNT_REPLY,   // ARP and ND of the underlay that answers the router
	PUNT_FABRIC,  // other ARP and ND of the underlay, and PUNT_PATH_MTU
	PUNT_GUEST,   // ARP and ND of tenants
	PUNT_WAITING, // PUNT_HOLD and PUNT_GLEAN, of all ports: neighbor_hold limits them
	PUNT_BOOTING, // PUNT_BOOT
	PUNT_CLASSES
};

struct punt_limits {
	uint32_t room;        // packets that fit in the ring, a power of two minus one
	uint32_t rate, burst; // token bucket of each port on each worker, in packets; rate 0: no limit. PUNT_REPLY and
		// PUNT_FABRIC have one for each kind, so that a flood of one kind takes nothing of another
	uint32_t turn; // most packets that the master handles in a turn
};
extern const struct punt_limits punt_limits[PUNT_CLASSES];

int punt_init(void);
void punt_register(enum punt kind, void (*fn)(struct rte_mbuf *m)); // fn runs on the master thread and owns the packet
void punt_poll(void);                                               // a turn: from the master's loop, each millisecond

// Packets of PUNT_WAITING outlive the worker's walk: an index that they refer to must not be reused while one is on its
// way. Master thread.
uint64_t punt_token(void);        // marks the packets that have been punted so far
bool punt_passed(uint64_t token); // the master has handled all of them

// For nodes: takes a token of a fabric port's bucket, which `punt` then does not ask for. False: there is none.
bool punt_take(uint16_t port, enum punt kind);

// For nodes: marks the packet; the caller returns its edge to "punt".
static inline void punt_mark(struct rte_mbuf *m, enum punt kind)
{
	meta(m)->out_port = kind;
}
