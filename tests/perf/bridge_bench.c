// SPDX-License-Identifier: Apache-2.0
// Cycles per frame of bridge_input, from one port to others, by the number of MACs in the domain. Each frame has a
// source and a destination of its own, drawn at random.
// Run it pinned: taskset -c 1 build/tests/perf/bridge_bench. The fastest tenth counts, so that a busy machine disturbs
// little.
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_graph_worker.h>

#include "base/rcu.h"
#include "graph/node_test.h"
#include "l2/bridge_fixture.h"

#define BATCH_SIZE 256
#define ROUNDS 4000

static uint64_t rnd(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

// MACs below half of n are behind port 1, the others behind port 2.
static uint64_t key_of(uint16_t bridge, uint64_t i)
{
	return (uint64_t)bridge << 48 | 0x020000000000 | ((i * 0x9e3779b1) & 0xffffffffff);
}

static void draw(struct rte_mbuf *m, uint16_t bridge, unsigned n)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);

	eth->src_addr = mac_key_addr(key_of(bridge, rnd() % (n / 2)));
	eth->dst_addr = mac_key_addr(key_of(bridge, n / 2 + rnd() % (n / 2)));
	meta(m)->bridge = bridge;
	meta(m)->flags = 0;
	m->port = 1;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double cycles(struct rte_mbuf **pkts, uint16_t bridge, unsigned n)
{
	static uint64_t spent[ROUNDS];
	struct rte_node *node;
	uint64_t before;
	unsigned r, i;

	node_test_run("bridge_input", pkts, BATCH_SIZE); // makes the graph
	node = rte_graph_node_get_by_name("node_test", "bridge_input");
	for (r = 0; r < ROUNDS; r++) {
		for (i = 0; i < BATCH_SIZE; i++)
			draw(pkts[i], bridge, n);
		before = node->total_cycles;
		if (node_test_run("bridge_input", pkts, BATCH_SIZE) != BATCH_SIZE)
			abort();
		spent[r] = node->total_cycles - before;
	}
	qsort(spent, ROUNDS, sizeof(spent[0]), compare);
	return (double)spent[ROUNDS / 20] / BATCH_SIZE; // median of the fastest tenth
}

int main(void)
{
	static const unsigned sizes[] = {2, 100, 1000, 10000, 100000, 1000000};
	struct bridge_config cfg = {.name = "bench", .mac_limit = MAC_MAX};
	struct rte_mbuf *pkts[BATCH_SIZE];
	unsigned s, i, done = 0;
	struct bridge *b;

	if (fixture_setup(NULL) < 0)
		return 1;
	b = bridge_add(&cfg, NULL);
	fixture_join(1, b->id, UINT16_MAX);
	fixture_join(2, b->id, UINT16_MAX);
	for (i = 0; i < BATCH_SIZE; i++)
		pkts[i] = fixture_frame(b->id, 1, HERE, ALL, "02:00:00:00:00:01", IP);
	printf("%10s %14s\n", "MACs", "cycles/frame");
	for (s = 0; s < RTE_DIM(sizes); s++) {
		mac_flush_bridge(b, false);
		for (done = 0; done < sizes[s]; done++)
			if (mac_add(b, key_of(b->id, done), MAC_LEARNT | (done < sizes[s] / 2 ? 1 : 2)) < 0)
				return 1;
		rcu_poll();
		printf("%10u %14.1f\n", sizes[s], cycles(pkts, b->id, sizes[s]));
	}
	rte_pktmbuf_free_bulk(pkts, BATCH_SIZE);
	return 0;
}
