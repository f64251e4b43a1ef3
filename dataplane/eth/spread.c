// SPDX-License-Identifier: Apache-2.0
// spread: gives packets to the workers that finish them.
// Reads: port, arg (the queue that they came by).  Next: the port's input node for what stays here.
#include "worker/spread.h"

#include "base/rcu.h"
#include "eth/spread_hash.h"
#include "graph/node.h"
#include "port/registry.h"
#include "worker/handoff.h"
#include "worker/worker.h"

enum { TENANT = 1, FABRIC, VLAN };

DROP_REASON(worker_ring_full,
	    "The ring to the worker that should finish the packet was full: that worker is overloaded or stalled. "
	    "See `corelane worker rings`.");

static void eth_spread_deal(struct rte_mbuf **pkts, unsigned n, struct spread_view *v, bool fabric, uint8_t *to)
{
	uint32_t hash, entry;
	unsigned i;

	for (i = 0; i < n; i++) {
		node_prefetch(pkts, i, n);
		hash = spread_hash(pkts[i], fabric);
		if (unlikely(hash == 0)) {
			to[i] = v->home;
			continue;
		}
		entry = hash & (SPREAD_ENTRIES - 1);
		v->load[entry]++;
		to[i] = v->to[entry];
	}
}

// Treats packets that found no room in the ring as the port's ring_full says.
static void spread_ring_is_full(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf **pkts, unsigned n,
				uint8_t full, edge_t edge)
{
	unsigned i;

	if (full == SPREAD_FULL_LOCAL) {
		rte_node_enqueue(graph, node, edge, (void **)pkts, (uint16_t)n);
		return;
	}
	for (i = 0; i < n; i++)
		drop(pkts[i], worker_ring_full);
	drop_packets(pkts, n);
}

static void spread_give(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf **pkts, unsigned n, uint8_t to,
			uint8_t full, edge_t edge)
{
	unsigned given;

	if (to == SPREAD_LOCAL) {
		rte_node_enqueue(graph, node, edge, (void **)pkts, (uint16_t)n);
		return;
	}
	given = handoff_give(this_worker, to, pkts, n, INJECT_INPUT);
	if (unlikely(given < n))
		spread_ring_is_full(graph, node, pkts + given, n - given, full, edge);
}

static void spread_several(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf **pkts, unsigned n,
			   struct spread_view *v, edge_t edge)
{
	struct rte_mbuf *some[NODE_CHUNK];
	uint8_t to[NODE_CHUNK];
	uint64_t left = v->targets;
	unsigned i, k, t;

	eth_spread_deal(pkts, n, v, edge == FABRIC, to);
	for (i = k = 0; i < n; i++)
		if (to[i] == SPREAD_LOCAL)
			some[k++] = pkts[i];
	if (k > 0)
		spread_give(graph, node, some, k, SPREAD_LOCAL, v->full, edge);
	for (; left != 0; left &= left - 1) {
		t = (unsigned)__builtin_ctzll(left);
		for (i = k = 0; i < n; i++)
			if (to[i] == t)
				some[k++] = pkts[i];
		if (k > 0)
			spread_give(graph, node, some, k, (uint8_t)t, v->full, edge);
	}
}

// The port's input node. For tagged frames, the worker that receives them from here looks up the sub-port.
static edge_t spread_edge(const struct port *port)
{
	if (port && __atomic_load_n(&port->input, __ATOMIC_RELAXED) == PORT_INPUT_TRUNK)
		return VLAN;
	return port && port->role == PORT_FABRIC ? FABRIC : TENANT;
}

static void spread_one_queue(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf **pkts, unsigned n)
{
	struct port *port = rcu_read(port_table[pkts[0]->port]);
	struct spread_view *v = port ? port->queues[meta(pkts[0])->arg % PORT_MAX_QUEUES].view : NULL;
	edge_t edge = spread_edge(port);
	unsigned done, k;

	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, NODE_CHUNK);
		if (v == NULL || v->all_to != SPREAD_SEVERAL)
			spread_give(graph, node, pkts + done, k, v ? v->all_to : SPREAD_LOCAL, v ? v->full : 0, edge);
		else
			spread_several(graph, node, pkts + done, k, v, edge);
	}
}

static uint16_t spread(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	unsigned i, j;

	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n && pkts[j]->port == pkts[i]->port && meta(pkts[j])->arg == meta(pkts[i])->arg;
		     j++)
			;
		spread_one_queue(graph, node, pkts + i, j - i);
	}
	return n;
}

NODE(spread, spread, [TENANT] = "tenant_input", [FABRIC] = "fabric_input", [VLAN] = "vlan_input");
