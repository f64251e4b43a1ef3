// SPDX-License-Identifier: Apache-2.0
// port_rx: the source of a worker's graph. Polls the worker's queues in turn until a batch is full.
// Writes: port, flags, hash.  Next: by the port's role; packets from rings by their arg (enum inject).
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_vect.h>

#include "base/eth.h"
#include "base/offload.h"
#include "base/rcu.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/held.h"
#include "graph/node.h"
#include "graph/trace.h"
#include "port/registry.h"
#include "worker/buffer_share.h"
#include "worker/burst.h"
#include "worker/handoff.h"
#include "worker/port_rx.h"
#include "worker/spread.h"
#include "worker/worker.h"

// A port's edge is its role, or PORT_INPUT_TRUNK.
enum { FABRIC = PORT_FABRIC, TENANT = PORT_TENANT, HOST = PORT_HOST, VLAN = PORT_INPUT_TRUNK, TX, SPREAD, STEER };

DROP_REASON(port_disabled, "The port that received the packet is disabled. "
			   "`corelane port set PORT --disabled=false` enables it.");

#define POLL_MIN 32 // with less room in the batch, no further queue is polled
#define AHEAD 8u    // packets of a ring whose metadata are prefetched

static_assert(offsetof(struct pkt_meta, nexthop) == 0 && offsetof(struct pkt_meta, arg) == 12,
	      "fresh metadata are written at once");

// Counts the packets and initializes their metadata. Returns how many are longer than the port allows.
static inline unsigned port_rx_count(const struct port *p, uint16_t queue, struct rte_mbuf **pkts, unsigned n)
{
	const uint16_t port = p->id;
	struct port_counters *c;
	const rte_v128u32_t fresh = {0, 0, 0, queue}; // nexthop, hash, arg
	uint8_t flags = __atomic_load_n(&p->rx_flags, __ATOMIC_RELAXED);
	uint32_t longest = __atomic_load_n(&p->longest, __ATOMIC_RELAXED);
	unsigned i, too_long = 0;
	uint64_t bytes = 0;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct pkt_meta *md = meta(m);

		bytes += m->pkt_len;
		too_long += m->pkt_len > longest;
		m->port = port;
		memcpy(md, &fresh, sizeof(fresh));
		md->reason = 0;
		md->flags = flags;
	}
	c = &counters->port[p->id]; // not before the loop: it would need one more register in it
	c->rx_packets += n;
	c->rx_bytes += bytes;
	return too_long;
}

// A large segment is as long as the packets that it stands for. The lengths of its headers in a tunnel are not known
// yet: those of TCP without options bound them.
static bool port_rx_fits(const struct rte_mbuf *m, uint32_t longest)
{
	if (offload_is_whole(m))
		return m->outer_l3_len + m->tso_segsz + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_tcp_hdr) +
			       PORT_L2_OVERHEAD <=
		       longest;
	return m->pkt_len <= longest ||
	       (offload_is_large(m) && offload_ip_size(m, frame_ip(m)) + PORT_L2_OVERHEAD <= longest);
}

const struct drop_reason *port_rx_refuses(const struct rte_mbuf *m, uint32_t longest)
{
	if (longest == 0)
		return &drop_port_disabled;
	return port_rx_fits(m, longest) ? NULL : frame_too_long;
}

// Drops the packets that are longer than `longest`, which is 0 for a disabled port. Returns how many are left.
static __rte_noinline uint16_t port_rx_bound(struct rte_mbuf **pkts, uint16_t n, uint32_t longest)
{
	const struct drop_reason *why;
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		why = port_rx_refuses(pkts[i], longest);
		if (why == NULL) {
			pkts[kept++] = pkts[i];
			continue;
		}
		drop_as(pkts[i], why);
		drop_packets(&pkts[i], 1);
	}
	return kept;
}

// False: not now, or another worker polls it.
static inline bool port_rx_may_poll(struct worker *w, struct port_queue *q, uint16_t *room)
{
	struct spread_view *v;

	if (unlikely(__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) != w->id))
		return false;
	if (unlikely(__atomic_load_n(&q->rx_worker, __ATOMIC_RELAXED) != w->id)) {
		spread_give_queue(w, q);
		return false;
	}
	v = rcu_read(q->view);
	if (likely(v == NULL))
		return true;
	if (!spread_ready(w, q, v))
		return false;
	if (v->full == SPREAD_FULL_WAIT)
		*room = spread_room(w, v, *room);
	return *room > 0;
}

static inline edge_t port_rx_edge(const struct worker *w, const struct port_queue *q)
{
	const struct spread_view *v = q->view;

	if (likely(v == NULL || v->all_to == SPREAD_LOCAL))
		return __atomic_load_n(&q->port->input, __ATOMIC_RELAXED);
	return w->role == WORKER_HOST_PATH && q->port->role == PORT_FABRIC ? STEER : SPREAD;
}

static __rte_always_inline uint16_t port_rx_poll_queue(struct rte_graph *graph, struct rte_node *node, struct worker *w,
						       struct port_queue *q, uint16_t room)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)node->objs;
	struct port *port = q->port;
	uint16_t n;

	if (!port_rx_may_poll(w, q, &room))
		return 0;
	n = port->ops->rx(q, pkts, room);
	if (n == 0)
		return 0;
	q->rx_packets += n;
	if (unlikely(port_rx_count(port, q->index, pkts, n) > 0)) {
		n = port_rx_bound(pkts, n, __atomic_load_n(&port->longest, __ATOMIC_RELAXED));
		if (n == 0)
			return 0;
	}
	if (unlikely(w->share != BUFFERS_ENOUGH) && buffer_share_refuses(w, port, pkts, n))
		return 0;
	if (unlikely(capture_active))
		capture_batch(CAPTURE_RX, port->id, pkts, n);
	if (unlikely(graph_tracing))
		trace_start(pkts, n);
	node->idx = n;
	rte_node_next_stream_move(graph, node, port_rx_edge(w, q));
	return n;
}

// The edge of a packet that another worker or the master has handed over.
static edge_t port_rx_handed_edge(struct rte_mbuf *m)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);

	held_end(m);
	if (meta(m)->arg == INJECT_TX)
		return TX;
	return f ? f->input : TENANT;
}

static void port_rx_pass_handed(struct rte_graph *graph, struct rte_node *node, unsigned n)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)node->objs;
	edge_t edges[BATCH];
	unsigned i;

	if (n == 0)
		return;
	for (i = 0; i < RTE_MIN(n, AHEAD); i++)
		rte_mbuf_prefetch_part2(pkts[i]);
	for (i = 0; i < n; i++) {
		if (i + AHEAD < n) {
			rte_prefetch0(pkts[i + AHEAD]);
			rte_mbuf_prefetch_part2(pkts[i + AHEAD]);
		}
		edges[i] = port_rx_handed_edge(pkts[i]);
	}
	node->idx = (uint16_t)n;
	node_pass(graph, node, node->objs, edges, n);
	node->idx = 0;
}

static uint16_t port_rx_poll_ring(struct rte_graph *graph, struct rte_node *node, struct handoff *h, uint16_t room)
{
	unsigned n = handoff_take(h, (struct rte_mbuf **)node->objs, room);

	port_rx_pass_handed(graph, node, n);
	return (uint16_t)n;
}

static uint16_t port_rx_poll_inject(struct rte_graph *graph, struct rte_node *node, struct worker *w)
{
	unsigned n = rte_ring_sc_dequeue_burst(w->inject, node->objs, POLL_MIN, NULL);

	port_rx_pass_handed(graph, node, n);
	return (uint16_t)n;
}

// Polls a queue or ring whose burst is bounded.
static uint16_t port_rx_poll_bounded(struct rte_graph *graph, struct rte_node *node, struct worker *w,
				     struct handoff *ring, struct port_queue *q, uint16_t room)
{
	uint16_t *most = ring ? &ring->most : &q->most, n, least = 1;
	uint64_t bytes = 0;

	room = burst_room(burst_most(most), room);
	if (ring) {
		n = port_rx_poll_ring(graph, node, ring, room);
	} else {
		bytes = counters->port[q->port->id].rx_bytes;
		n = port_rx_poll_queue(graph, node, w, q, room);
		bytes = counters->port[q->port->id].rx_bytes - bytes;
		least = RTE_MAX(q->port->ops->rx_least, least);
		if (q->port->role == PORT_FABRIC && bytes > n * BURST_LONG)
			least = RTE_MAX(least, BURST_JOIN);
	}
	if (n > 0)
		burst_brought(&w->burst, most, n, n == room || bytes >= PORT_TURN_BYTES, least, bytes);
	return n;
}

// Like port_rx(), but a source whose walks were long is polled first, and a full burst of it is alone in its walk.
static __rte_noinline uint16_t port_rx_bounded(struct rte_graph *graph, struct rte_node *node, struct worker *w,
					       const struct handoff_list *in, struct rx_list *l, unsigned injected)
{
	unsigned rings = in ? in->n : 0, i, total = injected, at = w->next_queue;
	struct port_queue *q;
	struct handoff *ring;
	bool alone = false;
	uint16_t n, most;

	burst_begin(&w->burst);
	for (i = 0; i < rings + l->n && BATCH - total >= POLL_MIN && !alone; i++, at++) {
		if (at >= rings + l->n)
			at = 0;
		ring = at < rings ? in->h[at] : NULL;
		q = ring ? NULL : l->q[at - rings];
		most = burst_most(ring ? &ring->most : &q->most);
		if (unlikely(most == 1) && w->burst.resting)
			continue;
		if (most > 0 && total > injected)
			break;
		n = port_rx_poll_bounded(graph, node, w, ring, q, (uint16_t)(BATCH - total));
		total += n;
		alone = n > 0 && n == most;
	}
	w->next_queue = at;
	w->polled = total;
	return (uint16_t)total;
}

// Polls rings and queues in turn, so that neither starves the other.
static uint16_t port_rx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t nb)
{
	struct worker *w = this_worker;
	const struct handoff_list *in = rcu_read(w->in);
	struct rx_list *l = rcu_read(w->rx);
	unsigned rings = in ? in->n : 0, all = rings + l->n, left, total = 0, at = w->next_queue, sources = 0;
	uint16_t n;

	w->in_now = in;
	if (unlikely(!rte_ring_empty(w->inject)))
		total += port_rx_poll_inject(graph, node, w);
	if (unlikely(w->burst.bounded))
		return port_rx_bounded(graph, node, w, in, l, total);
	for (left = all; left > 0 && total <= BATCH - POLL_MIN; left--, at++) {
		if (at >= all)
			at = 0;
		if (at < rings)
			n = port_rx_poll_ring(graph, node, in->h[at], (uint16_t)(BATCH - total));
		else
			n = port_rx_poll_queue(graph, node, w, l->q[at - rings], (uint16_t)(BATCH - total));
		total += n;
		sources += n > 0;
	}
	w->burst.others = sources > 1 || total < POLL_MIN; // so few are costly if their walk is long
	w->next_queue = at;
	w->polled = total;
	return (uint16_t)total;
}

NODE_SOURCE(port_rx, port_rx, [TENANT] = "tenant_input", [FABRIC] = "fabric_input", [HOST] = "host_input",
	    [VLAN] = "vlan_input", [TX] = "port_tx", [SPREAD] = "spread", [STEER] = "host_steer");
