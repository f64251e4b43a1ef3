// SPDX-License-Identifier: Apache-2.0
// port_tx: sends whole frames.
// Reads: out_port.  Next: only drop.
#include "base/rcu.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "port/registry.h"
#include "worker/worker.h"

DROP_REASON(port_gone, "The port that the packet should leave by has been removed.");
DROP_REASON(port_down,
	    "The port that the packet should leave by is down: its link, its peer or its administrative state. See "
	    "`corelane port show`.");
DROP_REASON(port_tx_full, "The transmit queue was full: the guest or the device does not take packets as fast as they "
			  "come. The guest is slow or has stopped, or its ring is too small for the bursts.");

static void port_tx_drop(struct rte_mbuf **pkts, unsigned n, const struct drop_reason *reason)
{
	unsigned i;

	for (i = 0; i < n; i++)
		drop_as(pkts[i], reason);
	drop_packets(pkts, n);
}

static uint64_t port_tx_bytes_of(struct rte_mbuf **pkts, unsigned n)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len;
	return bytes;
}

static uint16_t port_tx_transmit(struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct port_queue *q = &port->queues[this_worker->id % port->n_queues];
	uint16_t sent;

	if (likely(!__atomic_load_n(&port->shared_tx, __ATOMIC_RELAXED)))
		return port->ops->tx(q, pkts, n);
	rte_spinlock_lock(&q->tx_lock);
	sent = port->ops->tx(q, pkts, n);
	rte_spinlock_unlock(&q->tx_lock);
	return sent;
}

static void port_tx_send_run(uint16_t out, struct rte_mbuf **pkts, uint16_t n)
{
	struct port *port = rcu_read(port_table[out % PORT_MAX]);
	struct port_counters *c = &counters->port[out % PORT_MAX];
	uint64_t bytes, lost;
	uint16_t sent;

	if (unlikely(port == NULL)) {
		port_tx_drop(pkts, n, &drop_port_gone);
		return;
	}
	if (unlikely(!port->up)) {
		port_tx_drop(pkts, n, &drop_port_down);
		return;
	}
	if (unlikely(capture_active))
		capture_batch(CAPTURE_TX, out, pkts, n);
	bytes = port_tx_bytes_of(pkts, n); // counted before: sent packets belong to the device
	sent = port_tx_transmit(port, pkts, n);
	lost = sent < n ? port_tx_bytes_of(pkts + sent, n - sent) : 0;
	c->tx_packets += sent;
	c->tx_bytes += bytes - lost;
	if (likely(sent == n))
		return;
	c->tx_refused += n - sent;
	port_tx_drop(pkts + sent, n - sent, &drop_port_tx_full);
}

static uint16_t port_tx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	uint16_t i, j, out;

	for (i = 0; i < n; i = j) {
		out = meta(pkts[i])->out_port;
		for (j = i + 1; j < n && meta(pkts[j])->out_port == out; j++)
			;
		port_tx_send_run(out, pkts + i, (uint16_t)(j - i));
	}
	return n;
}

NODE(port_tx, port_tx, );
