// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "main/router_fixture.h"
#include "worker/punt.h"

#define RING 4095 // what a ring of 4096 takes

static unsigned taken[PUNT_KINDS];

static void take_arp(struct rte_mbuf *m)
{
	taken[PUNT_ARP]++;
	rte_pktmbuf_free(m);
}

static void take_nd(struct rte_mbuf *m)
{
	taken[PUNT_ND]++;
	rte_pktmbuf_free(m);
}

static int reset(void **state)
{
	punt_register(PUNT_ARP, take_arp);
	punt_register(PUNT_ND, take_nd);
	taken[PUNT_ARP] = taken[PUNT_ND] = 0;
	return 0;
}

static void punt_packets(unsigned n, uint16_t kind)
{
	struct rte_mbuf *pkts[256];
	unsigned i;

	for (i = 0; i < n; i++) {
		pkts[i] = router_hex("00");
		pkts[i]->port = RED0;
		punt_mark(pkts[i], kind);
	}
	assert_int_equal(node_test_run("punt", pkts, n), 0);
}

static void by_kind(void **state)
{
	punt_packets(10, PUNT_ARP);
	punt_packets(200, PUNT_ND);
	assert_int_equal(node_test_in_use(), 210);
	punt_poll();
	assert_int_equal(taken[PUNT_ARP], 10);
	assert_int_equal(taken[PUNT_ND], 200);
	assert_int_equal(node_test_in_use(), 0);
	punt_poll();
	assert_int_equal(taken[PUNT_ARP], 10);
}

static void nobody_takes(void **state)
{
	punt_packets(3, PUNT_KINDS); // a kind that does not exist
	punt_poll();
	assert_int_equal(node_test_in_use(), 0);
}

static void full(void **state)
{
	uint64_t before = router_drops(RED0, "punt_full");
	unsigned sent;

	for (sent = 0; sent < RING + 305; sent += 200)
		punt_packets(200, PUNT_ARP);
	assert_int_equal(node_test_in_use(), RING);
	assert_int_equal(router_drops(RED0, "punt_full"), before + sent - RING);
	punt_poll();
	assert_int_equal(taken[PUNT_ARP], RING);
	assert_int_equal(node_test_in_use(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(by_kind, reset), cmocka_unit_test_setup(nobody_takes, reset),
					   cmocka_unit_test_setup(full, reset)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
