// SPDX-License-Identifier: Apache-2.0
// The one tracing session: which packets it marks, and what is recorded of them.
#include "graph/trace.h"

#include <errno.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_string_fns.h>

#include "base/notify.h"
#include "base/rcu.h"
#include "graph/graph.h"
#include "graph/node.h"

bool graph_tracing;

static struct trace *session;
static struct trace_listener *trace_listeners;

void trace_listen(struct trace_listener *l)
{
	LISTEN(trace_listeners, l);
}

void trace_mark(struct rte_mbuf *m, uint32_t packet)
{
	meta(m)->flags |= META_TRACED;
	meta(m)->traced = (uint8_t)packet;
}

static bool trace_wanted(struct trace *t, const struct rte_mbuf *m)
{
	if (t->port && t->port != m->port)
		return false;
	return t->filter.bf_insns == NULL ||
	       bpf_filter(t->filter.bf_insns, rte_pktmbuf_mtod(m, const u_char *), m->pkt_len, m->data_len) != 0;
}

void trace_start(struct rte_mbuf **pkts, unsigned n)
{
	struct trace *t = rcu_read(session);
	unsigned i;

	if (t == NULL || t->only_ours)
		return;
	for (i = 0; i < n && __atomic_load_n(&t->wanted, __ATOMIC_RELAXED) > 0; i++)
		if (trace_wanted(t, pkts[i]) && __atomic_fetch_sub(&t->wanted, 1, __ATOMIC_RELAXED) > 0)
			trace_mark(pkts[i], __atomic_add_fetch(&t->marked, 1, __ATOMIC_RELAXED));
}

static void graph_trace_record(struct trace *t, const struct rte_node *node, struct rte_mbuf *m, edge_t edge)
{
	struct rte_mbuf *out = rte_pktmbuf_alloc(m->pool);
	const struct pkt_meta *md = meta(m);
	struct trace_listener *l;
	struct trace_record *r;

	if (out == NULL)
		return;
	r = rte_pktmbuf_mtod(out, struct trace_record *);
	r->meta = *md;
	r->tsc = rte_rdtsc();
	r->packet = md->traced;
	r->worker = graph_worker == GRAPH_NO_WORKER ? 0 : graph_worker;
	r->edge = edge;
	r->port = m->port;
	r->length = (uint16_t)RTE_MIN(m->data_len, (uint16_t)TRACE_BYTES);
	for (l = trace_listeners; l; l = l->next)
		if (l->record)
			l->record(r, md);
	rte_strscpy(r->node, node->name, sizeof(r->node));
	memcpy(r->data, rte_pktmbuf_mtod(m, void *), r->length);
	if (rte_ring_mp_enqueue(t->ring, out) != 0)
		rte_pktmbuf_free(out);
}

void graph_trace_batch(struct rte_graph *graph, struct rte_node *node, void **objs, const edge_t *edges, unsigned n)
{
	struct trace *t = rcu_read(session);
	unsigned i;

	for (i = 0; t && i < n; i++)
		if (meta(objs[i])->flags & META_TRACED)
			graph_trace_record(t, node, objs[i], edges[i]);
}

int trace_begin(struct trace *t, struct error *err)
{
	static unsigned count; // for unique names: an ended session may still have its ring
	char name[RTE_RING_NAMESIZE];

	if (session)
		return error_set(err, EBUSY, NULL, NULL, "one trace at a time", "another trace is running");
	snprintf(name, sizeof(name), "trace-%u", count++);
	t->ring = rte_ring_create(name, TRACE_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (t->ring == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a trace");
	rcu_publish(session, t);
	__atomic_store_n(&graph_tracing, true, __ATOMIC_RELAXED);
	return 0;
}

static void trace_session_free(void *arg)
{
	struct trace *t = arg;
	struct rte_mbuf *m;

	while (rte_ring_sc_dequeue(t->ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(t->ring);
	t->gone(t);
}

void trace_end(struct trace *t)
{
	__atomic_store_n(&graph_tracing, false, __ATOMIC_RELAXED);
	rcu_publish(session, NULL);
	rcu_defer(trace_session_free, t);
}
