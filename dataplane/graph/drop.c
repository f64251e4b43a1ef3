// SPDX-License-Identifier: Apache-2.0
// drop: counts and frees every packet that is given up.
// Reads: reason, port.  Next: nothing.
#include "graph/drop.h"

#include <stdlib.h>
#include <string.h>

#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/node.h"

static struct drop_reason *reasons[DROP_MAX];
static unsigned n_reasons = 1; // 0 belongs to no reason: a packet without one is a bug that shows

void drop_reason_register(struct drop_reason *reason)
{
	if (n_reasons == DROP_MAX)
		abort();
	reason->id = (uint16_t)n_reasons;
	reasons[n_reasons++] = reason;
}

const struct drop_reason *drop_reason_get(uint16_t id)
{
	static const struct drop_reason none = {.name = "unknown", .text = "No reason was given: please report this."};

	if (id == 0)
		return &none;
	return id < n_reasons ? reasons[id] : NULL;
}

const struct drop_reason *drop_reason_find(const char *name)
{
	unsigned i;

	for (i = 0; i < n_reasons; i++)
		if (strcmp(drop_reason_get((uint16_t)i)->name, name) == 0)
			return drop_reason_get((uint16_t)i);
	return NULL;
}

void drop_packets(struct rte_mbuf **pkts, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		counters->drops[pkts[i]->port % PORT_MAX][meta(pkts[i])->reason]++;
	if (unlikely(capture_active))
		capture_batch(CAPTURE_DROP, 0, pkts, n);
	rte_pktmbuf_free_bulk(pkts, n);
}

static uint16_t drop_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	drop_packets((struct rte_mbuf **)objs, n);
	return n;
}

static struct node_desc node_drop = {.name = "drop", .process = drop_process};

__attribute__((constructor)) static void node_drop_register(void)
{
	node_register(&node_drop);
}
