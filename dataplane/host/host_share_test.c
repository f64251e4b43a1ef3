// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/counters.h"
#include "host/host_fixture.h"
#include "worker/punt.h"

#define REPLY "02000000f001 020000000f01 0806 0001 0800 06 04 0002 020000000f01 c0000202 02000000f001 c0000201"

static struct rte_mbuf *reply(void)
{
	struct rte_mbuf *m = router_hex(REPLY);

	m->port = FABRIC0;
	meta(m)->out_port = PUNT_ARP;
	return m;
}

// punt and host_output each get the packet or its copy, both whole.
static void both(void **state)
{
	struct rte_mbuf *pkts[200];
	unsigned i, n, punted = 0, copies = 0;

	for (i = 0; i < 200; i++)
		pkts[i] = reply();
	n = node_test_run("host_share", pkts, 200);
	assert_int_equal(n, 400);
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = node_test_outs[i].m;

		assert_bytes(m, REPLY);
		assert_int_equal(m->port, FABRIC0);
		if (strcmp(node_test_outs[i].edge, "punt") == 0) {
			assert_int_equal(meta(m)->out_port, PUNT_ARP);
			punted++;
		} else {
			assert_string_equal(node_test_outs[i].edge, "host_output");
			copies++;
		}
		rte_pktmbuf_free(m);
	}
	assert_int_equal(punted, 200);
	assert_int_equal(copies, 200);
}

static void without_buffers(void **state)
{
	static struct rte_mbuf *all[16384];
	struct rte_mbuf *m = reply();
	uint64_t before = router_drops(FABRIC0, "host_no_buffer");
	unsigned n = 0;

	while (n < RTE_DIM(all) && (all[n] = rte_pktmbuf_alloc(node_test_pool)) != NULL)
		n++;
	assert_true(n < RTE_DIM(all));
	assert_string_equal(node_test_one("host_share", m), "punt");
	assert_int_equal(router_drops(FABRIC0, "host_no_buffer"), before + 1);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(all, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both),
		cmocka_unit_test(without_buffers),
	};

	return cmocka_run_group_tests(tests, host_setup, router_teardown);
}
