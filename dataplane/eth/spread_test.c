// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eth/spread_hash.h"
#include "testing/router_fixture.h"
#include "worker/handoff.h"
#include "worker/spread.h"
#include "worker/worker.h"

#define MACS_AB "02000000000a 02000000000b "
#define MACS_BA "02000000000b 02000000000a "
#define IP4_AB "45000024 00010000 40110000 0a000001 0a000002 03e807d0 00100000 00000000 00000000"
#define IP4_BA "45000024 00020000 3f110000 0a000002 0a000001 07d003e8 00100000 00000000 00000000"
#define IP6_AB                                                                                                   \
	"60000000 00101140 fd000000000000000000000000000001 fd000000000000000000000000000002 03e807d0 00100000 " \
	"0000000000000000"
#define IP6_BA                                                                                                   \
	"60000000 00101140 fd000000000000000000000000000002 fd000000000000000000000000000001 07d003e8 00100000 " \
	"0000000000000000"
#define UNDERLAY4(proto) "02000000f001 020000000f01 0800 45000050 00000000 40" proto "0000 c0000202 c0000201 "
#define UNDERLAY6(proto)                                                                            \
	"02000000f001 020000000f01 86dd 60000000 0050" proto "40 20010db8000000000000000000000002 " \
	"20010db8000000000000000000000001 "
#define MPLS "003e8140 "
#define UDP_MPLS "c00019eb 00400000 " MPLS
#define UDP_VXLAN "c00012b5 00400000 08000000 000bb800 "
#define GRE_MPLS "00008847 " MPLS
#define GRE_KEY_MPLS "20008847 00000007 " MPLS

static uint32_t hash(const char *hex, bool fabric)
{
	struct rte_mbuf *m = router_hex(hex);
	uint32_t h = spread_hash(m, fabric);

	rte_pktmbuf_free(m);
	return h;
}

// A session has the same hash in both directions and in every encapsulation.
static void one_session(void **state)
{
	uint32_t four = hash(MACS_AB "0800" IP4_AB, false), six = hash(MACS_AB "86dd" IP6_AB, false);

	assert_int_not_equal(four, 0);
	assert_int_not_equal(six, 0);
	assert_int_not_equal(four, six);
	assert_int_equal(hash(MACS_BA "0800" IP4_BA, false), four);
	assert_int_equal(hash(MACS_BA "86dd" IP6_BA, false), six);
	assert_int_equal(hash(MACS_AB "81000064 0800" IP4_BA, false), four);
	assert_int_equal(hash(UNDERLAY4("11") UDP_MPLS IP4_BA, true), four);
	assert_int_equal(hash(UNDERLAY6("11") UDP_MPLS IP4_AB, true), four);
	assert_int_equal(hash(UNDERLAY4("2f") GRE_MPLS IP4_AB, true), four);
	assert_int_equal(hash(UNDERLAY4("2f") GRE_KEY_MPLS IP4_AB, true), four);
	assert_int_equal(hash(UNDERLAY6("2f") GRE_MPLS IP6_BA, true), six);
	assert_int_equal(hash(UNDERLAY4("11") UDP_VXLAN MACS_AB "0800" IP4_AB, true), four);
	assert_int_equal(hash(UNDERLAY6("11") UDP_VXLAN MACS_BA "86dd" IP6_BA, true), six);
}

static void others_differ(void **state)
{
	uint32_t ports = hash(MACS_AB "0800 45000024 00010000 40110000 0a000001 0a000002 03e907d0 00100000", false);
	uint32_t fragment = hash(MACS_AB "0800 45000024 00012000 40110000 0a000001 0a000002 03e807d0 00100000", false);
	uint32_t later = hash(MACS_AB "0800 45000024 00010010 40110000 0a000001 0a000002 deadbeef 00100000", false);

	assert_int_not_equal(ports, hash(MACS_AB "0800" IP4_AB, false));
	assert_int_equal(fragment, later); // all fragments of a packet stay together
	assert_int_not_equal(fragment, ports);
	assert_int_not_equal(hash(MACS_AB "88b5 0102", false), 0);
	assert_int_equal(hash(MACS_AB "88b5 0102", false), hash(MACS_BA "88b5 0304", false));
	assert_int_not_equal(hash(MACS_AB "88b5 0102", false), hash("02000000000a 02000000000c 88b5 0102", false));
}

static void not_hashed(void **state)
{
	assert_int_equal(hash(MACS_AB "0806 0001", false), 0);
	assert_int_equal(hash(MACS_AB "0800 4500", false), 0);
	assert_int_equal(hash("0200", false), 0);
	assert_int_equal(hash(MACS_AB "0806 0001", true), 0);
	assert_int_equal(hash(UNDERLAY4("01") "08000000", true), 0);
	assert_int_equal(hash(UNDERLAY4("11") "c0000035 00400000 0000", true), 0); // UDP that is not a tunnel
	assert_int_equal(hash(UNDERLAY4("11") "c00019eb 00400000 003e80", true), 0);
	assert_int_equal(
		hash(UNDERLAY4("11") "c00019eb 00400000 003e8040 003e8040 003e8040 003e8040 003e8040 003e8040 003e8040 "
				     "003e8040 " IP4_AB,
		     true),
		0);
	assert_int_equal(hash(UNDERLAY4("2f") "00000800" IP4_AB, true), 0);
}

// --- The node. The calling thread is worker 0. ---

static struct worker *other;
static struct spread_view *view;

static int give_view(void **state)
{
	struct error err;

	other = calloc(1, sizeof(*other));
	other->id = 1;
	other->memory = SOCKET_ID_ANY;
	other->ring_size = 64;
	assert_int_equal(handoff_connect(router_worker(), other, &err), 0);
	view = calloc(1, sizeof(*view));
	view->home = view->all_to = SPREAD_LOCAL;
	port_get(RED0)->queues[1].view = view;
	return 0;
}

static int take_view(void **state)
{
	port_get(RED0)->queues[1].view = NULL;
	handoff_disconnect(other);
	router_worker()->out[1] = NULL;
	router_poll();
	free(view);
	free(other);
	return 0;
}

static struct rte_mbuf *from_queue(const char *hex)
{
	struct rte_mbuf *m = router_hex(hex);

	m->port = RED0;
	meta(m)->arg = 1;
	return m;
}

static unsigned taken(void)
{
	struct rte_mbuf *pkts[64];
	unsigned i, n = handoff_take(other->in->h[0], pkts, 64);

	for (i = 0; i < n; i++) {
		assert_int_equal(meta(pkts[i])->arg, INJECT_INPUT);
		assert_int_equal(pkts[i]->port, RED0);
		rte_pktmbuf_free(pkts[i]);
	}
	return n;
}

static void all_here(void **state)
{
	struct rte_mbuf *m = from_queue(MACS_AB "0800" IP4_AB);

	assert_string_equal(node_test_one("spread", m), "tenant_input");
	rte_pktmbuf_free(m);
	m = from_queue(MACS_AB "0800" IP4_AB);
	m->port = FABRIC0; // its queues have no view
	assert_string_equal(node_test_one("spread", m), "fabric_input");
	rte_pktmbuf_free(m);
}

static void all_away(void **state)
{
	view->all_to = 1;
	view->targets = 2;
	assert_null(node_test_one("spread", from_queue(MACS_AB "0806 0001")));
	assert_int_equal(taken(), 1);
}

static void by_entry(void **state)
{
	uint32_t entry = hash(MACS_AB "0800" IP4_AB, false) & (SPREAD_ENTRIES - 1);
	uint64_t before = view->load[entry];
	struct rte_mbuf *m[3];

	memset(view->to, SPREAD_LOCAL, sizeof(view->to));
	view->to[entry] = 1;
	view->targets = 2;
	view->all_to = SPREAD_SEVERAL;
	m[0] = from_queue(MACS_AB "0800" IP4_AB);
	m[1] = from_queue(MACS_AB "86dd" IP6_AB);
	m[2] = from_queue(MACS_AB "0806 0001");
	assert_int_equal(node_test_run("spread", m, 3), 2);
	assert_ptr_equal(node_test_outs[0].m, m[1]);
	assert_ptr_equal(node_test_outs[1].m, m[2]);
	rte_pktmbuf_free_bulk(m + 1, 2);
	assert_int_equal(taken(), 1);
	assert_int_equal(view->load[entry], before + 1);
}

// 64 packets fit; the port's ring_full decides about the others.
static void full_ring(void **state)
{
	struct rte_mbuf *m[80];
	uint64_t lost = router_drops(RED0, "worker_ring_full");
	unsigned i;

	view->all_to = 1;
	view->targets = 2;
	view->full = SPREAD_FULL_DROP;
	for (i = 0; i < 80; i++)
		m[i] = from_queue(MACS_AB "0800" IP4_AB);
	assert_int_equal(node_test_run("spread", m, 80), 0);
	assert_int_equal(router_drops(RED0, "worker_ring_full"), lost + 16);
	assert_int_equal(other->in->h[0]->refused, 16);
	assert_int_equal(other->in->h[0]->high, 64);
	assert_int_equal(spread_room(router_worker(), view, 256), 0);
	view->full = SPREAD_FULL_LOCAL;
	for (i = 0; i < 5; i++)
		m[i] = from_queue(MACS_AB "0800" IP4_AB);
	assert_int_equal(node_test_run("spread", m, 5), 5);
	for (i = 0; i < 5; i++)
		assert_string_equal(node_test_outs[i].edge, "tenant_input");
	rte_pktmbuf_free_bulk(m, 5);
	assert_int_equal(taken(), 64);
	assert_int_equal(spread_room(router_worker(), view, 256), 64);
}

// --- Dealing. ---

static void count(const uint8_t *to, unsigned n[64])
{
	unsigned i;

	memset(n, 0, 64 * sizeof(*n));
	for (i = 0; i < SPREAD_ENTRIES; i++)
		n[to[i]]++;
}

// What port_set() has written to the configuration counts once it is published.
static void follows_the_published(void **state)
{
	struct port_config c = router_config(RED0), was = c;
	struct port_queue *q = &port_get(RED0)->queues[1];

	spread_config_edit(&port_get(RED0)->cfg)->ring_full = SPREAD_FULL_LOCAL;
	assert_true(spread_ready(router_worker(), q, view));
	assert_int_equal(view->full, SPREAD_FULL_DROP);
	spread_config_edit(&c)->ring_full = SPREAD_FULL_LOCAL;
	router_set(RED0, &c);
	assert_true(spread_ready(router_worker(), q, view));
	assert_int_equal(view->full, SPREAD_FULL_LOCAL);
	router_set(RED0, &was);
}

static void dealt_evenly(void **state)
{
	uint8_t to[SPREAD_ENTRIES], before[SPREAD_ENTRIES];
	unsigned workers, n[64], i, moved;
	uint32_t weights[64] = {0};

	memset(to, SPREAD_LOCAL, sizeof(to));
	for (workers = 1; workers <= 64; workers++) {
		weights[workers - 1] = 1;
		memcpy(before, to, sizeof(to));
		spread_deal(to, SPREAD_ENTRIES, weights);
		count(to, n);
		for (i = 0; i < workers; i++)
			assert_in_range(n[i], SPREAD_ENTRIES / workers, SPREAD_ENTRIES / workers + 1);
		for (i = moved = 0; i < SPREAD_ENTRIES && workers > 1; i++)
			moved += to[i] != before[i];
		assert_true(workers == 1 || moved <= SPREAD_ENTRIES / workers + 1); // only the new worker's share
	}
}

static void dealt_by_weight(void **state)
{
	uint8_t to[SPREAD_ENTRIES];
	uint32_t weights[64] = {[3] = 3, [60] = 1};
	unsigned n[64];

	memset(to, SPREAD_LOCAL, sizeof(to));
	spread_deal(to, SPREAD_ENTRIES, weights);
	count(to, n);
	assert_int_equal(n[3], 768);
	assert_int_equal(n[60], 256);
	weights[3] = 0;
	spread_deal(to, SPREAD_ENTRIES, weights);
	count(to, n);
	assert_int_equal(n[60], SPREAD_ENTRIES);
}

// 100,000 flows on 2 to 16 workers: the most loaded has at most 1.05 of the mean.
static void flows_are_even(void **state)
{
	static uint8_t frame[] = {2, 0,  0,  0, 0, 10, 2, 0, 0, 0,  0, 11, 8, 0,    0x45, 0,    0,    32, 0,  0, 0,
				  0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 1, 0,  1, 0x03, 0xe8, 0x07, 0xd0, 0,  12, 0, 0};
	unsigned workers, i, n[64], most;
	uint8_t to[SPREAD_ENTRIES];
	uint32_t weights[64] = {1};
	struct rte_mbuf *m = node_test_packet(frame, sizeof(frame));
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	memset(to, SPREAD_LOCAL, sizeof(to));
	for (workers = 2; workers <= 16; workers++) {
		weights[workers - 1] = 1;
		spread_deal(to, SPREAD_ENTRIES, weights);
		memset(n, 0, sizeof(n));
		for (i = 0; i < 100000; i++) {
			p[28] = (uint8_t)(i >> 8); // consecutive addresses and ports, as generators use them
			p[29] = (uint8_t)i;
			p[34] = (uint8_t)(i >> 16);
			n[to[spread_hash(m, false) & (SPREAD_ENTRIES - 1)]]++;
		}
		for (i = most = 0; i < workers; i++)
			most = RTE_MAX(most, n[i]);
		assert_true(most * workers <= 105000);
	}
	rte_pktmbuf_free(m);
}

#define N(name) cmocka_unit_test_setup_teardown(name, give_view, take_view)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_session),
		cmocka_unit_test(others_differ),
		cmocka_unit_test(not_hashed),
		N(all_here),
		N(all_away),
		N(by_entry),
		N(full_ring),
		N(follows_the_published),
		cmocka_unit_test(dealt_evenly),
		cmocka_unit_test(dealt_by_weight),
		cmocka_unit_test(flows_are_even),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
