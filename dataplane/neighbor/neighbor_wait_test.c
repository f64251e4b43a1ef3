// SPDX-License-Identifier: Apache-2.0
// Timers and waiting packets, with a clock that the tests advance.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ip.h>

#include "base/rcu.h"
#include "graph/node_test.h"
#include "neighbor/adjacency.h"
#include "neighbor/arp_fixture.h"
#include "neighbor/arp_packet.h"
#include "neighbor/neighbor_private.h"
#include "worker/punt.h"

#define PEER "192.0.2.9"
#define PEER_MAC "02:00:00:00:09:09"

static void fails_without_answer(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);
	struct neighbor *n = fixture_find(FABRIC, PEER);

	neighbor_wait(adj, fixture_packet(PEER, 1));
	fixture_wait(2900);
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	fixture_wait(300);
	assert_int_equal(n->state, NEIGH_FAILED);
	assert_int_equal(fixture_count_requests(), 3);
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	assert_int_equal(n->n_waiting, 0);
	neighbor_wait(adj, fixture_packet(PEER, 2)); // too soon for another request
	assert_int_equal(fixture_drops("neighbor_unresolved"), 2);
	assert_int_equal(fixture_count_requests(), 0);
	fixture_wait(1000);
	neighbor_wait(adj, fixture_packet(PEER, 3));
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	assert_int_equal(fixture_count_requests(), 1);
	fixture_wait(3200);
	assert_int_equal(n->state, NEIGH_FAILED);
	fixture_count_requests();
	fixture_wait(20000); // held: solicited periodically, so that it recovers by itself
	assert_in_range(fixture_count_requests(), 3, 4);
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_changes, 1);
	adjacency_put(adj);
}

static void ages_held(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);
	struct neighbor *n = fixture_find(FABRIC, PEER);
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC);

	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	fixture_wait(29900);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_count_requests(), 0);
	fixture_wait(200);
	assert_int_equal(n->state, NEIGH_PROBE);
	assert_int_equal(fixture_n_sent, 1);
	assert_memory_equal(rte_pktmbuf_mtod(fixture_sent[0], void *), &mac, 6); // unicast
	assert_true(adjacency_table[adj]->resolved);                             // forwards meanwhile
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_changes, 1);
	fixture_wait(33300);
	assert_int_equal(n->state, NEIGH_FAILED);
	assert_false(adjacency_table[adj]->resolved);
	assert_int_equal(fixture_changes, 2);
	assert_int_equal(fixture_count_requests(), 4);
	adjacency_put(adj);
	fixture_wait(6000); // no longer held: removed
	assert_null(fixture_find(FABRIC, PEER));
}

static void age_is_set(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);

	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	fixture_wait(5000);
	neighbor_age_seconds = 6;
	fixture_wait(900);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_REACHABLE);
	fixture_wait(200);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_PROBE);
	adjacency_put(adj);
}

static void gleaned(void **state)
{
	struct rte_mbuf *m = fixture_packet(PEER, 1);

	meta(m)->arg = FABRIC;
	fixture_punt(PUNT_GLEAN, m);
	assert_non_null(fixture_find(FABRIC, PEER));
	assert_int_equal(fixture_count_requests(), 1);
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	assert_int_equal(fixture_n_sent, 1);
	fixture_forget();
	assert_int_equal(fixture_changes, 0); // no next hop leads there
	fixture_wait(30100);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_STALE);
	assert_int_equal(fixture_count_requests(), 0);
	m = fixture_packet(PEER, 2);
	meta(m)->arg = FABRIC;
	fixture_punt(PUNT_GLEAN, m); // used: forwarded, and probed
	assert_int_equal(fixture_n_sent, 2);
	assert_int_equal(fixture_count_requests(), 1);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_PROBE);
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	fixture_wait(60200);
	assert_null(fixture_find(FABRIC, PEER));
}

static void glean_refuses(void **state)
{
	struct rte_mbuf *m = fixture_packet("224.0.0.5", 1);

	meta(m)->arg = FABRIC;
	fixture_punt(PUNT_GLEAN, m);
	assert_int_equal(fixture_drops("neighbor_not_unicast"), 1);
	m = fixture_packet(PEER, 1);
	meta(m)->arg = 99;
	fixture_punt(PUNT_GLEAN, m);
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	m = fixture_packet(PEER, 1);
	rte_pktmbuf_trim(m, 2);
	fixture_punt(PUNT_GLEAN, m);
	m = fixture_packet(PEER, 1);
	*rte_pktmbuf_mtod(m, uint8_t *) = 0x60; // IPv6, but only 21 bytes of it
	fixture_punt(PUNT_GLEAN, m);
	assert_int_equal(fixture_drops("neighbor_bad_packet"), 2);
	assert_int_equal(neighbor_count(), 0);
}

static void no_headroom(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);
	struct rte_mbuf *m = fixture_packet(PEER, 1);

	m->data_off = 31;
	neighbor_wait(adj, m);
	fixture_forget();
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	assert_int_equal(fixture_drops("neighbor_headroom"), 1);
	assert_int_equal(fixture_n_sent, 0);
	adjacency_put(adj);
}

static void queue_bounds(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);
	unsigned i;

	for (i = 0; i < NEIGHBOR_WAITING + 5; i++)
		neighbor_wait(adj, fixture_packet(PEER, (uint8_t)i));
	assert_int_equal(fixture_drops("neighbor_queue_full"), 5);
	fixture_count_requests();
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	assert_int_equal(fixture_n_sent, NEIGHBOR_WAITING);
	assert_int_equal(*rte_pktmbuf_mtod_offset(fixture_sent[0], uint8_t *, 14 + 20), 5); // the oldest were dropped
	adjacency_put(adj);
}

// A host that scans its subnet exhausts neither the buffers nor the table.
static void scan(void **state)
{
	struct ip_addr a = fixture_addr("192.0.0.0");
	unsigned i;

	for (i = 0; i < 3000; i++) {
		a.bytes[2] = (uint8_t)(i >> 8);
		a.bytes[3] = (uint8_t)(i + 1);
		neighbor_wait_on_port(FABRIC, &a, fixture_packet(PEER, 1));
		fixture_forget();
	}
	assert_int_equal(neighbor_count(), NEIGHBOR_PORT_UNHELD);
	assert_int_equal(node_test_in_use(), NEIGHBOR_PORT_WAITING);
	assert_true(fixture_drops("neighbor_table_full") > 1900);
	assert_true(fixture_drops("neighbor_queue_full") > 700);
	adjacency_put(fixture_hold(FABRIC, "198.51.100.1"));        // next hops still find room
	neighbor_wait_on_port(TENANT, &a, fixture_packet(PEER, 1)); // and so do other ports
	assert_int_equal(neighbor_count(), NEIGHBOR_PORT_UNHELD + 2);
	for (i = 0; i < 150; i++) {
		fixture_wait(100);
		fixture_forget();
	}
	assert_int_equal(neighbor_count(), 0);
	assert_int_equal(node_test_in_use(), 0);
}

static struct ip_addr stranger(unsigned family, unsigned i)
{
	struct ip_addr a = fixture_addr(family == IPV4 ? "192.0.0.0" : "2001:db8::");
	unsigned last = family == IPV4 ? 3 : 15;

	a.bytes[last] = (uint8_t)i;
	a.bytes[last - 1] = (uint8_t)(0x10 + (i >> 8));
	return a;
}

static void strangers_ask(unsigned family, unsigned begin, unsigned n)
{
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC);
	struct ip_addr a;

	for (; n > 0; n--, begin++) {
		a = stranger(family, begin);
		neighbor_learn(FABRIC, &a, &mac, true, false);
	}
}

static bool is_known(unsigned family, unsigned i)
{
	const struct ip_addr a = stranger(family, i);

	return neighbor_find(FABRIC, &a) != NULL;
}

// Returns the number of requests that this sent.
static unsigned send_to(const char *addr)
{
	const struct ip_addr a = fixture_addr(addr);

	neighbor_wait_on_port(FABRIC, &a, fixture_packet(PEER, 1));
	return fixture_count_requests();
}

// 6,000 strangers ask for the router's address. They push nobody out, neither one another nor the other family, and
// make room for hosts that somebody sends to, first the one that asked first.
static void strangers(void **state)
{
	send_to(PEER);
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true); // an answer that was asked for
	fixture_forget();
	strangers_ask(IPV4, 0, 6000);
	assert_int_equal(neighbor_count(), NEIGHBOR_PORT_UNHELD);
	assert_true(is_known(IPV4, 0) && is_known(IPV4, NEIGHBOR_PORT_UNHELD - 2));
	assert_false(is_known(IPV4, NEIGHBOR_PORT_UNHELD - 1));
	strangers_ask(IPV6, 0, 6000);
	assert_int_equal(neighbor_count(), 2 * NEIGHBOR_PORT_UNHELD);
	assert_int_equal(send_to("192.0.2.20"), 1);
	assert_int_equal(send_to("192.0.2.21"), 1);
	send_to("2001:db8::20");
	assert_false(is_known(IPV4, 0) || is_known(IPV4, 1) || is_known(IPV6, 0));
	assert_true(is_known(IPV4, 2) && is_known(IPV6, 1));
	assert_int_equal(neighbor_count(), 2 * NEIGHBOR_PORT_UNHELD);
	assert_int_equal(fixture_drops("neighbor_table_full"), 0);
	fixture_learn(FABRIC, "192.0.2.20", PEER_MAC, false, true);
	assert_int_equal(fixture_n_sent, 1); // the packet that waited
	fixture_forget();
	strangers_ask(IPV4, 6000, 2000);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_find(FABRIC, "192.0.2.20")->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_find(FABRIC, "192.0.2.21")->state, NEIGH_INCOMPLETE);
	assert_int_equal(fixture_find(FABRIC, "2001:db8::20")->state, NEIGH_INCOMPLETE);
}

// Answers that nobody asked for make no room for themselves. A packet to such a host does, and asks it first.
static void strangers_answer(void **state)
{
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC);
	struct ip_addr a;
	unsigned i;

	strangers_ask(IPV4, 0, NEIGHBOR_PORT_UNHELD);
	for (i = 0; i < NEIGHBOR_PORT_UNHELD; i++) {
		a = stranger(IPV4, i);
		neighbor_learn(FABRIC, &a, &mac, false, true);
		assert_int_equal(neighbor_find(FABRIC, &a)->state, NEIGH_REACHABLE);
	}
	a = stranger(IPV4, 0);
	neighbor_wait_on_port(FABRIC, &a, fixture_packet(PEER, 1));
	assert_int_equal(neighbor_find(FABRIC, &a)->state, NEIGH_PROBE);
	assert_int_equal(fixture_n_sent, 2); // the packet, and the question
	fixture_forget();
	assert_int_equal(send_to("192.0.2.20"), 1);
	assert_true(is_known(IPV4, 0));
	assert_false(is_known(IPV4, 1));
}

// The entry of a next hop makes no room until it is released.
static void held_by_a_next_hop(void **state)
{
	const struct ip_addr first = stranger(IPV4, 0);
	uint32_t adj;

	strangers_ask(IPV4, 0, NEIGHBOR_PORT_UNHELD);
	assert_int_equal(adjacency_hold(FABRIC, &first, NULL, &adj, NULL), 0);
	strangers_ask(IPV4, NEIGHBOR_PORT_UNHELD, 1); // takes its place
	send_to("192.0.2.20");
	assert_true(is_known(IPV4, 0) && is_known(IPV4, NEIGHBOR_PORT_UNHELD));
	assert_false(is_known(IPV4, 1));
	neighbor_timer_now(neighbor_at(adj)); // stale and held: asked
	fixture_wait(5000);
	assert_int_equal(neighbor_at(adj)->state, NEIGH_FAILED);
	adjacency_put(adj);
	assert_int_equal(neighbor_at(adj)->use, NEIGH_IDLE);
}

// An index that tunnels may still use is not free: while too many are, nobody is displaced.
static void displaced_while_rebuilding(void **state)
{
	unsigned i;

	fixture_wait(100);
	fixture_rebuilding = true;
	strangers_ask(IPV4, 0, NEIGHBOR_PORT_UNHELD);
	for (i = 0; i < NEIGHBOR_LEAVING / 2; i++) {
		assert_int_equal(send_to("192.0.2.20"), 1);
		neighbor_remove(fixture_find(FABRIC, "192.0.2.20"));
		strangers_ask(IPV4, NEIGHBOR_PORT_UNHELD + i, 1);
	}
	assert_int_equal(fixture_drops("neighbor_table_full"), 0);
	assert_int_equal(send_to("192.0.2.20"), 0);
	assert_int_equal(fixture_drops("neighbor_table_full"), 1);
	fixture_rebuilding = false;
	fixture_wait(100);
	assert_int_equal(send_to("192.0.2.20"), 1);
}

// Many neighbours at once: no poll sends more than the workers' rings can hold.
static void paced(void **state)
{
	uint32_t adj[1000];
	struct ip_addr a = fixture_addr("192.0.2.0");
	unsigned i, total = 0;

	for (i = 0; i < RTE_DIM(adj); i++) {
		a.bytes[1] = (uint8_t)(i >> 8);
		a.bytes[3] = (uint8_t)i;
		a.bytes[2] = 7;
		assert_int_equal(adjacency_hold(FABRIC, &a, NULL, &adj[i], NULL), 0);
	}
	assert_int_equal(fixture_count_requests(), 0);
	for (i = 0; i < 4; i++) {
		fixture_wait(100);
		assert_in_range(fixture_n_sent, 1, NEIGHBOR_POLL_SOLICITS);
		total += fixture_count_requests();
	}
	assert_int_equal(total, RTE_DIM(adj)); // each once
	for (i = 0; i < RTE_DIM(adj); i++)
		adjacency_put(adj[i]);
}

static void link_returns(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);

	fixture_link(port_table[FABRIC], false);
	fixture_wait(4000);
	assert_int_equal(fixture_n_sent, 0);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_FAILED);
	fixture_link(port_table[FABRIC], true);
	fixture_wait(100);
	assert_int_equal(fixture_count_requests(), 1);
	adjacency_put(adj);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(fails_without_answer, fixture_reset),
		cmocka_unit_test_setup(ages_held, fixture_reset),
		cmocka_unit_test_setup(age_is_set, fixture_reset),
		cmocka_unit_test_setup(gleaned, fixture_reset),
		cmocka_unit_test_setup(glean_refuses, fixture_reset),
		cmocka_unit_test_setup(no_headroom, fixture_reset),
		cmocka_unit_test_setup(queue_bounds, fixture_reset),
		cmocka_unit_test_setup(scan, fixture_reset),
		cmocka_unit_test_setup(strangers, fixture_reset),
		cmocka_unit_test_setup(strangers_answer, fixture_reset),
		cmocka_unit_test_setup(held_by_a_next_hop, fixture_reset),
		cmocka_unit_test_setup(displaced_while_rebuilding, fixture_reset),
		cmocka_unit_test_setup(paced, fixture_reset),
		cmocka_unit_test_setup(link_returns, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
