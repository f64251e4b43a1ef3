// SPDX-License-Identifier: Apache-2.0
// neighbor_hold: packets whose neighbour's MAC is not known go to the control plane, which asks for it and sends them then.
// Reads: nexthop, arg (adjacency), l3.  Next: punt.
#include "graph/node.h"
#include "l3/nexthop.h"
#include "worker/punt.h"

enum { PUNT = 1 };

static inline edge_t hold_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);

	rte_pktmbuf_adj(m, md->l3);
	md->l3 = 0;
	if (md->nexthop && md->nexthop->kind == NH_GLEAN) {
		md->arg = md->nexthop->port;
		punt_mark(m, PUNT_GLEAN);
	} else {
		punt_mark(m, PUNT_HOLD);
	}
	return PUNT;
}

static uint16_t neighbor_hold(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, hold_one);
}

NODE(neighbor_hold, neighbor_hold, [PUNT] = "punt");
