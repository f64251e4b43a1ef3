// SPDX-License-Identifier: Apache-2.0
// The table: entries that next hops hold, permanent entries, and ports that change or are removed.
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

static void resolves(void **state)
{
	const uint8_t l2[14] = {2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 0, 1};
	uint32_t adj = fixture_hold(FABRIC, PEER);
	struct neighbor *n = fixture_find(FABRIC, PEER);
	struct rte_mbuf *m;

	assert_false(adjacency_table[adj]->resolved);
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	neighbor_wait(adj, fixture_packet(PEER, 1));
	neighbor_wait(adj, fixture_packet(PEER, 2));
	assert_int_equal(n->n_waiting, 2);
	assert_int_equal(fixture_count_requests(), 1); // the first packet sends a request at once
	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(n->n_waiting, 0);
	assert_int_equal(fixture_changes, 1);
	assert_true(adjacency_table[adj]->resolved);
	assert_int_equal(adjacency_table[adj]->port, FABRIC);
	assert_int_equal(adjacency_table[adj]->index, adj);
	assert_int_equal(adjacency_table[adj]->l2_len, 14);
	assert_memory_equal(adjacency_table[adj]->l2 + 32 - 14, l2, 12);
	assert_int_equal(fixture_n_sent, 2); // in their order
	for (uint8_t tag = 1; tag <= 2; tag++) {
		m = fixture_take();
		assert_int_equal(meta(m)->out_port, FABRIC);
		assert_int_equal(m->pkt_len, 14 + 21);
		assert_memory_equal(rte_pktmbuf_mtod(m, void *), l2, 12);
		assert_memory_equal(rte_pktmbuf_mtod_offset(m, void *, 12), "\x08\x00\x45", 3);
		assert_int_equal(*rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + 20), tag);
		rte_pktmbuf_free(m);
	}
	neighbor_wait(adj, fixture_packet(PEER, 3)); // was punted before the neighbour was resolved
	assert_int_equal(fixture_n_sent, 1);
	adjacency_put(adj);
}

static void vlan_and_mac_change(void **state)
{
	struct port *p = port_table[FABRIC];
	uint32_t adj = fixture_hold(FABRIC, PEER);
	const uint8_t tagged[16] = {2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 100};

	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	p->cfg.vlan = 100;
	fixture_publish(p);
	assert_int_equal(adjacency_table[adj]->l2_len, 18);
	assert_memory_equal(adjacency_table[adj]->l2 + 32 - 18, tagged, 16);
	assert_true(adjacency_table[adj]->resolved);
	p->cfg.vlan = 0;
	p->mac = fixture_mac("02:00:00:00:00:77");
	fixture_publish(p);
	assert_int_equal(adjacency_table[adj]->l2_len, 14);
	assert_int_equal(adjacency_table[adj]->l2[32 - 3], 0x77);
	fixture_learn(FABRIC, PEER, "02:00:00:00:08:08", false, false); // the host has moved
	assert_int_equal(adjacency_table[adj]->l2[32 - 14 + 5], 8);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_STALE);
	assert_int_equal(fixture_changes, 1);
	adjacency_put(adj);
}

// The address of a neighbour becomes the port's own.
static void becomes_own(void **state)
{
	struct port *p = port_table[FABRIC];

	fixture_learn(FABRIC, PEER, PEER_MAC, true, true);
	fixture_learn(FABRIC, "192.0.2.10", PEER_MAC, true, true);
	p->cfg.addrs[0].addr = fixture_addr(PEER);
	fixture_publish(p);
	assert_null(fixture_find(FABRIC, PEER));
	assert_non_null(fixture_find(FABRIC, "192.0.2.10"));
}

static void by_mac(void **state)
{
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC), other = fixture_mac("02:00:00:00:0a:0a");
	const struct ip_addr a = fixture_addr("10.0.0.2");
	uint32_t adj, same, different;

	assert_int_equal(adjacency_hold(TENANT, &a, &mac, &adj, NULL), 0);
	assert_true(adjacency_table[adj]->resolved);
	assert_memory_equal(adjacency_table[adj]->l2 + 32 - 14, &mac, 6);
	assert_int_equal(adjacency_hold(TENANT, NULL, &mac, &same, NULL), 0);
	assert_int_equal(same, adj);
	assert_int_equal(adjacency_hold(TENANT, NULL, &other, &different, NULL), 0);
	assert_int_not_equal(different, adj);
	fixture_wait(100000);
	assert_true(adjacency_table[adj]->resolved);
	assert_int_equal(fixture_n_sent, 0);
	adjacency_put(adj);
	assert_int_equal(neighbor_count(), 2);
	adjacency_put(same);
	adjacency_put(different);
	rcu_poll();
	assert_non_null(adjacency_table[adj]); // a tunnel may still lead here
	assert_false(adjacency_table[adj]->resolved);
	assert_int_equal(neighbor_count(), 0);
}

static void permanent(void **state)
{
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC), group = fixture_mac("01:00:5e:00:00:01");
	const struct ip_addr a = fixture_addr(PEER), own = fixture_addr("192.0.2.1"),
			     multicast = fixture_addr("ff02::1");
	uint32_t adj = fixture_hold(FABRIC, PEER);
	struct error err;

	neighbor_wait(adj, fixture_packet(PEER, 1));
	fixture_forget();
	assert_int_equal(neighbor_set(FABRIC, &a, &mac, &err), 0);
	assert_int_equal(fixture_n_sent, 1); // the packet that waited
	assert_int_equal(fixture_changes, 1);
	fixture_learn(FABRIC, PEER, "02:00:00:00:0a:0a", false, true); // cannot be overwritten
	assert_memory_equal(&fixture_find(FABRIC, PEER)->mac, &mac, 6);
	fixture_wait(100000);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_PERMANENT);
	assert_int_equal(neighbor_del(FABRIC, &a, &err), 0);
	assert_int_equal(fixture_find(FABRIC, PEER)->state, NEIGH_INCOMPLETE); // held: resolved again
	assert_false(adjacency_table[adj]->resolved);
	assert_int_equal(fixture_changes, 2);
	adjacency_put(adj);
	assert_int_equal(neighbor_del(FABRIC, &a, &err), 0);
	assert_int_equal(neighbor_del(FABRIC, &a, &err), -ENOENT);
	assert_string_equal(err.field, "address");
	assert_int_equal(neighbor_set(FABRIC, &own, &mac, &err), -EINVAL);
	assert_string_equal(err.field, "neighbor.address");
	assert_int_equal(neighbor_set(FABRIC, &multicast, &mac, &err), -EINVAL);
	assert_int_equal(neighbor_set(FABRIC, &a, &group, &err), -EINVAL);
	assert_string_equal(err.field, "neighbor.mac");
	assert_int_equal(neighbor_set(99, &a, &mac, &err), -ENOENT);
	assert_string_equal(err.field, "neighbor.port");
	assert_int_equal(neighbor_count(), 0);
}

static void port_removed(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER), waiting = fixture_hold(FABRIC, "192.0.2.10");

	fixture_learn(FABRIC, PEER, PEER_MAC, false, true);
	fixture_learn(FABRIC, "192.0.2.11", PEER_MAC, true, false);
	neighbor_wait(waiting, fixture_packet(PEER, 1));
	assert_int_equal(neighbor_count(), 3);
	fixture_remove(FABRIC);
	assert_int_equal(neighbor_count(), 2);
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	assert_int_equal(fixture_changes, 2);
	assert_false(adjacency_table[adj]->resolved); // for workers that still use the next hop
	assert_null(fixture_find(FABRIC, PEER));
	neighbor_wait(adj, fixture_packet(PEER, 1));
	assert_int_equal(fixture_drops("neighbor_unresolved"), 2);
	fixture_wait(10000);
	adjacency_put(adj);
	adjacency_put(waiting);
	assert_int_equal(neighbor_count(), 0);
}

// Holds and releases n neighbours. Returns whether one of them got index adj.
static bool is_reused(uint32_t adj, unsigned n)
{
	static uint32_t held[ADJ_MAX];
	struct ip_addr a = fixture_addr("198.18.0.0");
	bool given = false;
	unsigned i;

	for (i = 0; i < n; i++) {
		a.bytes[2] = (uint8_t)(i >> 8);
		a.bytes[3] = (uint8_t)(i + 1);
		assert_int_equal(adjacency_hold(FABRIC, &a, NULL, &held[i], NULL), 0);
		given |= held[i] == adj;
	}
	for (i = 0; i < n; i++) {
		adjacency_put(held[i]);
		neighbor_remove(neighbor_at(held[i]));
	}
	return given;
}

// A packet that was punted for an adjacency must not reach the host that gets its index next.
static void index_reused_late(void **state)
{
	uint32_t adj = fixture_hold(FABRIC, PEER);

	fixture_punts += 100; // one of them is for this adjacency
	fixture_rebuilding = true;
	adjacency_put(adj);
	assert_int_equal(neighbor_del(FABRIC, &fixture_find(FABRIC, PEER)->addr, NULL), 0);
	fixture_wait(300);
	assert_false(adjacency_table[adj]->resolved);
	fixture_taken = fixture_punts;
	assert_false(is_reused(adj, neighbor_end)); // more than were ever in use: a tunnel may still lead there
	fixture_rebuilding = false;
	fixture_punts += 100;
	fixture_wait(300);
	fixture_taken += 99;
	fixture_wait(300); // time alone is not enough: the master may be late
	assert_false(is_reused(adj, neighbor_end));
	neighbor_wait(adj, fixture_packet(PEER, 1));
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	fixture_punts += 50; // later packets do not matter
	fixture_taken += 1;
	assert_true(is_reused(adj, neighbor_end - 1));
}

static void full(void **state)
{
	const struct ip_addr peer = fixture_addr(PEER);
	struct ip_addr a = fixture_addr("2001:db8::");
	static uint32_t adj[ADJ_MAX];
	uint32_t extra;
	struct error err;
	unsigned i, n;

	fixture_wait(300);
	for (n = 0; n < ADJ_MAX; n++) {
		a.bytes[14] = (uint8_t)((n + 256) >> 8);
		a.bytes[15] = (uint8_t)n;
		a.bytes[13] = (uint8_t)((n + 256) >> 16);
		if (adjacency_hold(FABRIC, &a, NULL, &adj[n], &err) < 0)
			break;
	}
	assert_int_equal(n, NEIGHBOR_MAX);
	assert_int_equal(err.code, ENOSPC);
	assert_int_equal(adjacency_hold(FABRIC, &peer, NULL, &extra, &err), -ENOSPC);
	fixture_learn(FABRIC, PEER, PEER_MAC, true, false); // no room: nothing happens
	assert_null(fixture_find(FABRIC, PEER));
	for (i = 0; i < n; i++)
		adjacency_put(adj[i]);
	fixture_remove(FABRIC);
	assert_int_equal(neighbor_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(resolves, fixture_reset),
		cmocka_unit_test_setup(vlan_and_mac_change, fixture_reset),
		cmocka_unit_test_setup(becomes_own, fixture_reset),
		cmocka_unit_test_setup(by_mac, fixture_reset),
		cmocka_unit_test_setup(permanent, fixture_reset),
		cmocka_unit_test_setup(port_removed, fixture_reset),
		cmocka_unit_test_setup(index_reused_late, fixture_reset),
		cmocka_unit_test_setup(full, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
