// SPDX-License-Identifier: Apache-2.0
// Packets for the control plane: node `punt` puts them into a ring that the master thread empties.
#pragma once

#include <rte_mbuf.h>

#include "graph/meta.h"

enum punt {
	PUNT_ARP,   // a frame, m->port is where it came in
	PUNT_ND,    // the same
	PUNT_HOLD,  // an IP packet (data starts there) that waits for adjacency meta->arg
	PUNT_GLEAN, // the same, for its own destination address on port meta->arg
	PUNT_KINDS
};

int punt_init(void);
void punt_register(enum punt kind, void (*fn)(struct rte_mbuf *m)); // fn runs on the master thread and owns the packet
void punt_poll(void);

// For nodes: marks the packet; the caller returns its edge to "punt".
static inline void punt_mark(struct rte_mbuf *m, enum punt kind)
{
	meta(m)->out_port = kind;
}
