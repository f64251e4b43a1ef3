// SPDX-License-Identifier: Apache-2.0
// host_handoff: hands packets for the kernel to the host-path worker, so that no other worker makes system calls.
// Reads: port, out_port.  Writes: arg.  Next: port_tx if there is no host-path worker, or this is it.
#include <rte_cycles.h>

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

static struct senders {       // that a worker has used last
	uint8_t of[PORT_MAX]; // by fabric port: worker + 1, 0 = itself
	uint64_t late_since;  // TSC; the last one has not sent all packets since then, 0 = it has
} senders[WORKER_MAX];

// Whether the previous sender still has packets of this worker. It is waited for as long as for any worker (spread.h).
static __rte_noinline bool host_handoff_is_late(struct senders *s, uint8_t previous)
{
	uint64_t now = rte_rdtsc();

	if (!handoff_pending(this_worker, previous))
		return false;
	if (s->late_since == 0)
		s->late_since = now;
	return now - s->late_since < rte_get_tsc_hz() / 1000 * SPREAD_LATE_MS;
}

// The worker that sends a packet. When it changes, the previous one goes on until it has sent all packets that it was
// handed, so that none overtakes another.
static inline uint8_t host_handoff_sender(const struct rte_mbuf *m)
{
	const struct port *fabric = rcu_read(port_table[m->port % PORT_MAX]);
	uint8_t to = fabric ? __atomic_load_n(&fabric->host_worker, __ATOMIC_RELAXED) : SPREAD_LOCAL;
	struct senders *s = &senders[this_worker->id];
	uint8_t *last = &s->of[m->port % PORT_MAX], previous = (uint8_t)(*last - 1);

	if (likely(to == previous))
		return to;
	if (host_handoff_is_late(s, previous))
		return previous;
	s->late_since = 0;
	*last = (uint8_t)(to + 1);
	return to;
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
	unsigned i, j;
	uint8_t to;

	for (i = 0; i < NODE_CHUNK; i++)
		edges[i] = TX;
	for (i = 0; i < n; i = j) {
		to = host_handoff_sender(pkts[i]);
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
