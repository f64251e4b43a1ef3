// SPDX-License-Identifier: Apache-2.0
#include "graph/counters.h"

#include <string.h>

#include <rte_malloc.h>

#define MAX_THREADS 256

__thread struct counters *counters;

// Of every thread that ever counted: a worker that ends leaves its counters behind, so that sums never fall.
static struct counters *all[MAX_THREADS];
static unsigned n_all;

struct counters *counters_create(int numa)
{
	struct counters *c;

	if (n_all == MAX_THREADS)
		return NULL;
	c = rte_zmalloc_socket("counters", sizeof(*c), RTE_CACHE_LINE_SIZE, numa);
	if (c)
		all[n_all++] = c;
	return c;
}

void counters_port_reset(uint16_t port)
{
	unsigned i;

	for (i = 0; i < n_all; i++) {
		memset(&all[i]->port[port], 0, sizeof(all[i]->port[port]));
		memset(all[i]->drops[port], 0, sizeof(all[i]->drops[port]));
	}
}

void counters_port(uint16_t port, struct port_counters *out)
{
	unsigned i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < n_all; i++) {
		out->rx_packets += all[i]->port[port].rx_packets;
		out->rx_bytes += all[i]->port[port].rx_bytes;
		out->tx_packets += all[i]->port[port].tx_packets;
		out->tx_bytes += all[i]->port[port].tx_bytes;
	}
}

uint64_t counters_drops(uint16_t port, uint16_t reason)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < n_all; i++)
		sum += all[i]->drops[port][reason];
	return sum;
}
