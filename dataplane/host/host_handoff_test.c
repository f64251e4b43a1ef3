// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "host/host_fixture.h"
#include "worker/handoff.h"
#include "worker/spread.h"
#include "worker/worker.h"

#define OTHER 7
#define SIZE 64

static struct handoff ring = {.size = SIZE, .opened = true, .flowing = true};

static int setup(void **state)
{
	if (host_setup(state) < 0)
		return -1;
	ring.ring = rte_ring_create("host_handoff_test", SIZE, SOCKET_ID_ANY,
				    RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	router_worker()->out[OTHER] = &ring;
	return ring.ring ? 0 : -1;
}

static struct rte_mbuf *packet(uint16_t fabric)
{
	struct rte_mbuf *m = router_hex("02000000f001 020000000f01 0800 45");

	m->port = fabric;
	meta(m)->out_port = host_port(fabric);
	return m;
}

static void set_worker(uint16_t fabric, uint8_t id)
{
	port_get(fabric)->host_worker = id;
}

static void nobody_else_s(void **state)
{
	struct rte_mbuf *m = packet(FABRIC0);

	set_worker(FABRIC0, SPREAD_LOCAL);
	assert_string_equal(node_test_one("host_handoff", m), "port_tx");
	assert_int_equal(meta(m)->out_port, host_port(FABRIC0));
	set_worker(FABRIC0, (uint8_t)router_worker()->id);
	assert_string_equal(node_test_one("host_handoff", m), "port_tx");
	rte_pktmbuf_free(m);
}

static void handed_over(void **state)
{
	struct rte_mbuf *pkts[3] = {packet(FABRIC0), packet(FABRIC1), packet(FABRIC0)}, *got[3];

	set_worker(FABRIC0, OTHER);
	set_worker(FABRIC1, SPREAD_LOCAL);
	assert_int_equal(node_test_run("host_handoff", pkts, 3), 1);
	assert_ptr_equal(node_test_outs[0].m, pkts[1]);
	assert_int_equal(handoff_take(&ring, got, 3), 2);
	assert_ptr_equal(got[0], pkts[0]);
	assert_ptr_equal(got[1], pkts[2]);
	ring.done = ring.taken;
	assert_int_equal(meta(got[0])->arg, INJECT_TX);
	assert_int_equal(meta(got[0])->out_port, host_port(FABRIC0));
	rte_pktmbuf_free_bulk(pkts, 3);
}

// A packet must not overtake those that the previous sender has in its ring.
static void sender_changes(void **state)
{
	struct rte_mbuf *pkts[4] = {packet(FABRIC0), packet(FABRIC0), packet(FABRIC0), packet(FABRIC0)}, *got[4];

	set_worker(FABRIC0, OTHER);
	assert_int_equal(node_test_run("host_handoff", &pkts[0], 1), 0);
	set_worker(FABRIC0, SPREAD_LOCAL);
	assert_int_equal(node_test_run("host_handoff", &pkts[1], 1), 0);
	assert_int_equal(handoff_take(&ring, got, 4), 2);
	assert_ptr_equal(got[1], pkts[1]);
	assert_int_equal(node_test_run("host_handoff", &pkts[2], 1), 0); // they are still in its graph
	assert_int_equal(handoff_take(&ring, got, 4), 1);
	ring.done = ring.taken;
	assert_int_equal(node_test_run("host_handoff", &pkts[3], 1), 1);
	rte_pktmbuf_free_bulk(pkts, 4);
}

// A previous sender that is stuck does not hold the packets up for good.
static void previous_sender_is_late(void **state)
{
	struct rte_mbuf *pkts[3] = {packet(FABRIC0), packet(FABRIC0), packet(FABRIC0)}, *got[3];

	set_worker(FABRIC0, OTHER);
	assert_int_equal(node_test_run("host_handoff", &pkts[0], 1), 0);
	set_worker(FABRIC0, SPREAD_LOCAL);
	assert_int_equal(node_test_run("host_handoff", &pkts[1], 1), 0);
	rte_delay_ms(SPREAD_LATE_MS + 1);
	assert_int_equal(node_test_run("host_handoff", &pkts[2], 1), 1);
	assert_int_equal(handoff_take(&ring, got, 3), 2);
	ring.done = ring.taken;
	rte_pktmbuf_free_bulk(pkts, 3);
}

static void full(void **state)
{
	uint64_t before = router_drops(FABRIC0, "host_ring_full");
	struct rte_mbuf *pkts[SIZE + 8], *got[SIZE];
	unsigned i;

	set_worker(FABRIC0, OTHER);
	for (i = 0; i < RTE_DIM(pkts); i++)
		pkts[i] = packet(FABRIC0);
	assert_int_equal(node_test_run("host_handoff", pkts, RTE_DIM(pkts)), 0);
	assert_int_equal(router_drops(FABRIC0, "host_ring_full"), before + 8);
	assert_int_equal(handoff_take(&ring, got, SIZE), SIZE);
	ring.done = ring.taken;
	rte_pktmbuf_free_bulk(got, SIZE);
	set_worker(FABRIC0, OTHER + 1); // no ring leads there
	pkts[0] = packet(FABRIC0);
	assert_int_equal(node_test_run("host_handoff", pkts, 1), 0);
	assert_int_equal(router_drops(FABRIC0, "host_ring_full"), before + 9);
	set_worker(FABRIC0, SPREAD_LOCAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_else_s),  cmocka_unit_test(handed_over),
		cmocka_unit_test(sender_changes), cmocka_unit_test(previous_sender_is_late),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
