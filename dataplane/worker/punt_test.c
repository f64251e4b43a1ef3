// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "testing/router_fixture.h"
#include "worker/punt.h"

#define GONE 100 // ids from here on belong to removed ports

static unsigned taken[PUNT_KINDS], slow_us;
static uint16_t last_port;

static void pass_us(uint64_t us)
{
	clock_stopped += us * (rte_get_tsc_hz() / 1000000);
}

static void take(enum punt kind, struct rte_mbuf *m)
{
	taken[kind]++;
	last_port = m->port;
	pass_us(slow_us);
	rte_pktmbuf_free(m);
}

static void take_arp(struct rte_mbuf *m)
{
	take(PUNT_ARP, m);
}

static void take_nd(struct rte_mbuf *m)
{
	take(PUNT_ND, m);
}

static void take_asked(struct rte_mbuf *m)
{
	take(PUNT_ARP_ASKED, m);
}

static void take_arp_reply(struct rte_mbuf *m)
{
	take(PUNT_ARP_REPLY, m);
}

static void take_nd_reply(struct rte_mbuf *m)
{
	take(PUNT_ND_REPLY, m);
}

static void take_hold(struct rte_mbuf *m)
{
	take(PUNT_HOLD, m);
}

// Empties the rings; the buckets of the ports that a test uses are full when it begins. Time stands still but for what
// a test lets pass.
static int reset(void **state)
{
	if (clock_stopped == 0)
		clock_stopped = rte_rdtsc();
	punt_register(PUNT_ARP, take_arp);
	punt_register(PUNT_ARP_ASKED, take_asked);
	punt_register(PUNT_ARP_REPLY, take_arp_reply);
	punt_register(PUNT_ND, take_nd);
	punt_register(PUNT_ND_REPLY, take_nd_reply);
	punt_register(PUNT_HOLD, take_hold);
	slow_us = 0;
	while (node_test_in_use() > 0)
		punt_poll();
	pass_us(10000000);
	memset(taken, 0, sizeof(taken));
	return 0;
}

static void punt_packets(uint16_t port, unsigned n, uint16_t kind)
{
	struct rte_mbuf *pkts[64];
	unsigned i, k;

	for (; n > 0; n -= k) {
		k = RTE_MIN(n, RTE_DIM(pkts));
		for (i = 0; i < k; i++) {
			pkts[i] = router_hex("00");
			pkts[i]->port = port;
			punt_mark(pkts[i], kind);
		}
		assert_int_equal(node_test_run("punt", pkts, k), 0);
	}
}

static void by_kind(void **state)
{
	punt_packets(RED0, 10, PUNT_ARP);
	punt_packets(RED0, 100, PUNT_ND);
	punt_packets(RED0, 20, PUNT_HOLD);
	assert_int_equal(node_test_in_use(), 130);
	punt_poll();
	assert_int_equal(taken[PUNT_ARP], 10);
	assert_int_equal(taken[PUNT_HOLD], 20);
	assert_int_equal(taken[PUNT_ND], 100);
}

static void nobody_takes(void **state)
{
	punt_packets(RED0, 3, PUNT_KINDS); // a kind that does not exist
	punt_poll();
	assert_int_equal(node_test_in_use(), 0);
}

// A batch with packets of all classes: each class keeps its order.
static void mixed(void **state)
{
	static const struct {
		uint16_t port, kind;
	} all[] = {{RED0, PUNT_ARP}, {FABRIC0, PUNT_ARP}, {RED0, PUNT_HOLD}, {BLUE0, PUNT_ND}, {FABRIC1, PUNT_ND}};
	struct rte_mbuf *pkts[RTE_DIM(all)];
	unsigned i;

	for (i = 0; i < RTE_DIM(all); i++) {
		pkts[i] = router_hex("00");
		pkts[i]->port = all[i].port;
		punt_mark(pkts[i], all[i].kind);
	}
	assert_int_equal(node_test_run("punt", pkts, RTE_DIM(all)), 0);
	punt_poll();
	assert_int_equal(taken[PUNT_ARP], 2);
	assert_int_equal(taken[PUNT_ND], 2);
	assert_int_equal(taken[PUNT_HOLD], 1);
	assert_int_equal(last_port, RED0); // the class that is served last
}

// A guest floods: only its own packets are dropped.
static void port_rate(void **state)
{
	uint32_t burst = punt_limits[PUNT_GUEST].burst;
	uint64_t red = router_drops(RED0, "punt_rate"), blue = router_drops(BLUE0, "punt_rate");
	uint64_t fabric = router_drops(FABRIC0, "punt_rate"), full = router_drops(RED0, "punt_full");
	unsigned i, passed;

	for (i = 0; i < 10; i++)
		punt_packets(RED0, 1000, i % 2 ? PUNT_ND : PUNT_ARP); // one bucket for both
	passed = node_test_in_use();
	assert_int_equal(passed, burst);
	assert_int_equal(router_drops(RED0, "punt_rate"), red + 10000 - passed);
	assert_int_equal(router_drops(RED0, "punt_full"), full);
	punt_packets(BLUE0, burst, PUNT_ARP);
	punt_packets(FABRIC0, 50, PUNT_ARP);
	assert_int_equal(node_test_in_use(), passed + burst + 50);
	assert_int_equal(router_drops(BLUE0, "punt_rate"), blue);
	assert_int_equal(router_drops(FABRIC0, "punt_rate"), fabric);
	pass_us(10500); // 10 more at 1000/s
	punt_packets(RED0, 100, PUNT_ARP);
	assert_int_equal(node_test_in_use(), passed + burst + 50 + 10);
}

// Each kind of a fabric port has a bucket of its own. Requests for which the node has taken a token are not counted
// again.
static void fabric_kinds(void **state)
{
	static const uint16_t kinds[] = {PUNT_ARP, PUNT_ND, PUNT_ARP_REPLY, PUNT_ND_REPLY};
	uint32_t burst = punt_limits[PUNT_FABRIC].burst;
	uint64_t refused = router_drops(FABRIC0, "punt_rate");
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		punt_packets(FABRIC0, burst + 10, kinds[i]);
		refused += 10;
		assert_int_equal(router_drops(FABRIC0, "punt_rate"), refused);
		while (node_test_in_use() > 0)
			punt_poll();
	}
	assert_false(punt_take(FABRIC0, PUNT_ARP));
	assert_false(punt_take(FABRIC0, PUNT_ND));
	assert_true(punt_take(FABRIC1, PUNT_ND));
	pass_us(250); // 2 more at 10,000/s
	assert_true(punt_take(FABRIC0, PUNT_ARP) && punt_take(FABRIC0, PUNT_ARP));
	assert_false(punt_take(FABRIC0, PUNT_ARP));
	punt_packets(FABRIC0, 2, PUNT_ARP_ASKED);
	assert_int_equal(router_drops(FABRIC0, "punt_rate"), refused);
}

// Questions fill their ring: answers have their own, which is served before it.
static void replies_first(void **state)
{
	unsigned room = punt_limits[PUNT_FABRIC].room;
	uint64_t full = router_drops(FABRIC0, "punt_full");

	punt_packets(FABRIC0, room + 10, PUNT_ARP_ASKED);
	assert_int_equal(router_drops(FABRIC0, "punt_full"), full + 10);
	punt_packets(FABRIC0, 5, PUNT_ARP_REPLY);
	punt_packets(FABRIC0, 5, PUNT_ND_REPLY);
	slow_us = 25;
	punt_poll();
	assert_int_equal(taken[PUNT_ARP_REPLY] + taken[PUNT_ND_REPLY], 9); // 200 us, and the one that exceeds them
	assert_int_equal(taken[PUNT_ARP_ASKED], 9);
}

// All tenants flood at once, and packets wait for a dead remote: the fabric's ARP has its own ring, which is served
// first.
static void fabric_first(void **state)
{
	unsigned i, room = punt_limits[PUNT_GUEST].room, burst = punt_limits[PUNT_GUEST].burst;
	uint64_t full = router_drops(GONE + room / burst, "punt_full"), waiting = router_drops(RED0, "punt_full");

	for (i = 0; i <= room / burst; i++)
		punt_packets((uint16_t)(GONE + i), burst, PUNT_ARP);
	assert_true(router_drops(GONE + room / burst, "punt_full") > full);
	punt_packets(RED0, punt_limits[PUNT_WAITING].room + 10, PUNT_HOLD);
	assert_int_equal(router_drops(RED0, "punt_full"), waiting + 10);
	punt_packets(FABRIC0, 50, PUNT_ND);
	punt_poll();
	assert_int_equal(taken[PUNT_ND], 50);
	assert_int_equal(taken[PUNT_ARP], punt_limits[PUNT_GUEST].turn); // the other classes had turns
	assert_int_equal(taken[PUNT_HOLD], punt_limits[PUNT_WAITING].turn);
}

static void bounded_packets(void **state)
{
	punt_packets(RED0, 1000, PUNT_HOLD);
	punt_poll();
	assert_int_equal(taken[PUNT_HOLD], punt_limits[PUNT_WAITING].turn);
}

static void bounded_time(void **state)
{
	punt_packets(RED0, 100, PUNT_HOLD);
	slow_us = 100;
	punt_poll();
	assert_int_equal(taken[PUNT_HOLD], 3); // the one that exceeds the 200 us
	slow_us = 1000;
	punt_poll();
	assert_int_equal(taken[PUNT_HOLD], 4); // at least one, or it would never end
}

static void token(void **state)
{
	uint64_t before, after;

	assert_true(punt_passed(punt_token())); // no packet is on its way
	punt_packets(RED0, 200, PUNT_HOLD);
	before = punt_token();
	punt_packets(RED0, 200, PUNT_HOLD);
	after = punt_token();
	while (taken[PUNT_HOLD] < 200) {
		assert_false(punt_passed(before));
		punt_poll();
	}
	assert_true(punt_passed(before));
	while (taken[PUNT_HOLD] < 400) {
		assert_false(punt_passed(after));
		punt_poll();
	}
	assert_true(punt_passed(after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_kind, reset),      cmocka_unit_test_setup(nobody_takes, reset),
		cmocka_unit_test_setup(mixed, reset),        cmocka_unit_test_setup(port_rate, reset),
		cmocka_unit_test_setup(fabric_kinds, reset), cmocka_unit_test_setup(replies_first, reset),
		cmocka_unit_test_setup(fabric_first, reset), cmocka_unit_test_setup(bounded_packets, reset),
		cmocka_unit_test_setup(bounded_time, reset), cmocka_unit_test_setup(token, reset),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
