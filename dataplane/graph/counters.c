// SPDX-License-Identifier: Apache-2.0
#include "graph/counters.h"

#include <string.h>

#include <rte_malloc.h>

#define MAX_THREADS 256

__thread struct counters *counters;

static struct counters *all[MAX_THREADS]; // of every thread that counts
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

// Both consist of 64-bit counters only.
static void counters_add_all(struct counters *to, const struct counters *from)
{
	const uint64_t *src = (const uint64_t *)from;
	uint64_t *dst = (uint64_t *)to;
	unsigned i;

	for (i = 0; i < sizeof(*to) / sizeof(*dst); i++)
		dst[i] += src[i];
}

void counters_release(struct counters *c)
{
	unsigned i;

	for (i = 0; i < n_all && all[i] != c; i++)
		;
	if (i == n_all || c == counters)
		return;
	counters_add_all(counters, c);
	all[i] = all[--n_all];
	rte_free(c);
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
		out->tx_refused += all[i]->port[port].tx_refused;
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
