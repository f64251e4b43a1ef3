// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/node.h"
#include "graph/node_test.h"

static inline edge_t by_arg_one(struct rte_mbuf *m)
{
	return (edge_t)meta(m)->arg;
}

NODE_EACH(by_arg, by_arg_one, [1] = "one", [2] = "two", [3] = "three");

#define MOST 256

static struct rte_mbuf *pkts[MOST];

static int packets(void **state)
{
	unsigned i;

	for (i = 0; i < MOST; i++) {
		pkts[i] = node_test_packet("", 1);
		meta(pkts[i])->hash = i;
	}
	return 0;
}

static int no_packets(void **state)
{
	rte_pktmbuf_free_bulk(pkts, MOST);
	return 0;
}

// Each packet comes out by its edge, and those of an edge in their order.
static void assert_passed(unsigned n)
{
	static const char *const names[] = {"drop", "one", "two", "three"};
	uint32_t next[RTE_DIM(names)] = {0};
	unsigned i;

	assert_int_equal(node_test_run("by_arg", pkts, n), n);
	for (i = 0; i < n; i++) {
		const struct pkt_meta *md = meta(node_test_outs[i].m);

		assert_string_equal(node_test_outs[i].edge, names[md->arg]);
		assert_in_range(md->hash, next[md->arg], n - 1);
		next[md->arg] = md->hash + 1;
	}
}

static void one_edge(void **state)
{
	unsigned i, n;

	for (i = 0; i < MOST; i++)
		meta(pkts[i])->arg = 2;
	for (n = 1; n <= MOST; n++)
		assert_passed(n);
}

// One packet of another edge, at each place of batches of each length.
static void one_packet_apart(void **state)
{
	unsigned i, n, apart;

	for (i = 0; i < MOST; i++)
		meta(pkts[i])->arg = 1;
	for (n = 1; n <= 40; n++) {
		for (apart = 0; apart < n; apart++) {
			meta(pkts[apart])->arg = 3;
			assert_passed(n);
			meta(pkts[apart])->arg = 1;
		}
	}
}

static void runs_of_each_length(void **state)
{
	unsigned i, length, n;

	for (length = 1; length <= 20; length++) {
		for (i = 0; i < MOST; i++)
			meta(pkts[i])->arg = i / length % 4;
		for (n = MOST - 20; n <= MOST; n++)
			assert_passed(n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_edge, packets, no_packets),
		cmocka_unit_test_setup_teardown(one_packet_apart, packets, no_packets),
		cmocka_unit_test_setup_teardown(runs_of_each_length, packets, no_packets),
	};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
