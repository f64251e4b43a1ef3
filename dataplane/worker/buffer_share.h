// SPDX-License-Identifier: Apache-2.0
// Shares the buffers of the packet pool fairly: while they are scarce, a tenant port whose waiting packets hold more
// than its share gets no further ones. Fabric and host ports always do.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct drop_reason;
struct port;
struct worker;

// Worker, when w->share_until is over.
void buffer_share_update(struct worker *w, uint64_t now);
// Why a packet of this port is dropped while w->share is not BUFFERS_ENOUGH; NULL: it is not.
const struct drop_reason *buffer_share_exceeded(const struct port *port);
// Worker, for the packets of a poll while w->share is not BUFFERS_ENOUGH. True: it has dropped them all.
bool buffer_share_refuses(const struct worker *w, const struct port *port, struct rte_mbuf **pkts, unsigned n);
