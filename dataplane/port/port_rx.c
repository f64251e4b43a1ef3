// SPDX-License-Identifier: Apache-2.0
// port_rx: the source of a worker's graph. Polls the worker's queues in turn until a batch is full.
// Writes: port, flags, hash.  Next: by the port's role; packets from the master where it says.
#include "base/rcu.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "graph/trace.h"
#include "port/registry.h"
#include "worker/worker.h"

enum { TENANT = 1, FABRIC, TX };

#define POLL_MIN 32 // room below which no further queue is polled

static inline void count(struct port *port, struct rte_mbuf **pkts, unsigned n)
{
	const struct port_fwd *f = rcu_read(port_fwds[port->id]);
	struct port_counters *c = &counters->port[port->id];
	uint8_t flags = f && f->mss ? META_CLAMP : 0;
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct pkt_meta *md = meta(pkts[i]);

		pkts[i]->port = port->id;
		bytes += pkts[i]->pkt_len;
		md->hash = 0;
		md->reason = 0;
		md->flags = flags;
		md->nexthop = NULL;
	}
	c->rx_packets += n;
	c->rx_bytes += bytes;
}

static uint16_t poll_queue(struct rte_graph *graph, struct rte_node *node, struct port_queue *q, uint16_t room)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)node->objs;
	struct port *port = q->port;
	edge_t edge = port->role == PORT_FABRIC ? FABRIC : TENANT;
	uint16_t n = port->ops->rx(q, pkts, room);

	if (n == 0)
		return 0;
	q->rx_packets += n;
	count(port, pkts, n);
	if (unlikely(capture_active))
		capture_batch(CAPTURE_RX, port->id, pkts, n);
	if (unlikely(graph_tracing))
		trace_start(pkts, n);
	node->idx = n;
	rte_node_next_stream_move(graph, node, edge);
	return n;
}

static uint16_t poll_inject(struct rte_graph *graph, struct rte_node *node, struct worker *w)
{
	static const edge_t edges[] = {[INJECT_TX] = TX, [INJECT_INPUT] = TENANT};
	unsigned i, n = rte_ring_sc_dequeue_burst(w->inject, node->objs, POLL_MIN, NULL);

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = node->objs[i];
		edge_t edge = edges[meta(m)->arg & 1];

		if (edge == TENANT && port_fwds[m->port] && port_fwds[m->port]->role == PORT_FABRIC)
			edge = FABRIC;
		if (unlikely(graph_tracing))
			graph_trace_batch(graph, node, node->objs + i, &edge, 1);
		rte_node_enqueue_x1(graph, node, edge, m);
	}
	return (uint16_t)n;
}

static uint16_t port_rx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t nb)
{
	struct worker *w = this_worker;
	struct rx_list *l = rcu_read(w->rx);
	unsigned i, total = 0, at = w->next_queue;

	if (unlikely(rte_ring_count(w->inject) > 0))
		total += poll_inject(graph, node, w);
	for (i = 0; i < l->n && BATCH - total >= POLL_MIN; i++, at++) {
		if (at >= l->n)
			at = 0;
		total += poll_queue(graph, node, l->q[at], (uint16_t)(BATCH - total));
	}
	w->next_queue = at;
	w->polled = total;
	return (uint16_t)total;
}

NODE_SOURCE(port_rx, port_rx, [TENANT] = "tenant_input", [FABRIC] = "fabric_input", [TX] = "port_tx");
