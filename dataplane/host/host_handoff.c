// SPDX-License-Identifier: Apache-2.0
// host_handoff: hands packets for the kernel to the host-path worker, so that no other worker makes system calls.
// Reads: port, out_port.  Writes: arg.  Next: port_tx if there is no host-path worker, or this is it.
#include "base/rcu.h"
#include "graph/node.h"
#include "port/registry.h"
#include "worker/handoff.h"
#include "worker/spread.h"
#include "worker/worker.h"

enum { TX = 1 };

DROP_REASON(
	host_ring_full,
	"The ring of packets for the kernel was full: the host-path worker is too slow, or other threads use its CPU. "
	"See `corelane worker rings`.");

static inline unsigned sender_of(const struct rte_mbuf *m)
{
	const struct port *fabric = rcu_read(port_table[m->port % PORT_MAX]);

	return fabric ? fabric->host_worker : SPREAD_LOCAL;
}

static void host_handoff_hand_over(unsigned to, struct rte_mbuf **pkts, unsigned n)
{
	unsigned i, given = handoff_give(this_worker, to, pkts, n, INJECT_TX);

	for (i = given; i < n; i++)
		drop(pkts[i], host_ring_full);
	if (unlikely(given < n))
		drop_packets(pkts + given, n - given);
}

static uint16_t host_handoff(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	edge_t edges[NODE_CHUNK];
	unsigned i, j, to;

	for (i = 0; i < NODE_CHUNK; i++)
		edges[i] = TX;
	for (i = 0; i < n; i = j) {
		to = sender_of(pkts[i]);
		for (j = i + 1; j < n && j - i < NODE_CHUNK && pkts[j]->port == pkts[i]->port; j++)
			;
		if (to == SPREAD_LOCAL || to == this_worker->id)
			node_pass(graph, node, objs + i, edges, j - i);
		else
			host_handoff_hand_over(to, pkts + i, j - i);
	}
	return n;
}

NODE(host_handoff, host_handoff, [TX] = "port_tx");
