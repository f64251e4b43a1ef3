// SPDX-License-Identifier: Apache-2.0
// punt: hands packets to the master thread.
// Reads: out_port (enum punt).  Next: nothing but drop.
#include "worker/punt.h"

#include <errno.h>

#include <rte_ring.h>

#include "graph/node.h"

#define PUNT_RING 4096

DROP_REASON(punt_full, "Too many packets needed the control plane at once (ARP, ND, unknown neighbours). A host that scans "
		       "addresses or floods ARP does this.");

static struct rte_ring *ring;
static void (*handlers[PUNT_KINDS])(struct rte_mbuf *m);

int punt_init(void)
{
	ring = rte_ring_create("punt", PUNT_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return ring ? 0 : -ENOMEM;
}

void punt_register(enum punt kind, void (*fn)(struct rte_mbuf *m))
{
	handlers[kind] = fn;
}

void punt_poll(void)
{
	struct rte_mbuf *pkts[64];
	unsigned i, n;

	while ((n = rte_ring_sc_dequeue_burst(ring, (void **)pkts, RTE_DIM(pkts), NULL)) > 0) {
		for (i = 0; i < n; i++) {
			unsigned kind = meta(pkts[i])->out_port;

			if (kind < PUNT_KINDS && handlers[kind])
				handlers[kind](pkts[i]);
			else
				rte_pktmbuf_free(pkts[i]);
		}
	}
}

static uint16_t punt(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	unsigned i, taken = rte_ring_mp_enqueue_burst(ring, objs, n, NULL);

	for (i = taken; i < n; i++)
		drop(objs[i], punt_full);
	if (taken < n)
		drop_packets((struct rte_mbuf **)objs + taken, n - taken);
	return n;
}

NODE(punt, punt, );
