// SPDX-License-Identifier: Apache-2.0
// Refreshes a worker's share, and drops the packets of a tenant port that holds more.
#include "worker/buffer_share.h"

#include <rte_cycles.h>

#include "graph/drop.h"
#include "graph/held.h"
#include "port/port.h"
#include "worker/worker.h"

#define UPDATE_US 50 // a worker polls fewer than 1,000 packets in this time

DROP_REASON(buffer_share,
	    "Packet buffers are scarce, and this port holds more than its share of them: its packets wait for another "
	    "worker, for a neighbour or for the control plane. See `corelane worker rings` and `corelane status`; "
	    "corelaned --mbufs sets the number of buffers.");

void buffer_share_update(struct worker *w, uint64_t now)
{
	w->share = port_pool_share_least();
	w->share_until = now + rte_get_tsc_hz() / 1000000 * UPDATE_US;
}

const struct drop_reason *buffer_share_exceeded(const struct port *port)
{
	bool fair = port->role != PORT_TENANT || held_by(port->id) <= port_pool_share(port->numa);

	return fair ? NULL : &drop_buffer_share;
}

bool buffer_share_refuses(const struct worker *w, const struct port *port, struct rte_mbuf **pkts, unsigned n)
{
	unsigned i;

	if (buffer_share_exceeded(port) == NULL)
		return false;
	for (i = 0; i < n; i++)
		drop(pkts[i], buffer_share);
	drop_packets(pkts, n);
	return true;
}
