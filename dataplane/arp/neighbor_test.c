// SPDX-License-Identifier: Apache-2.0
// The table, its timers and what waits, with a clock of the test's own.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ip.h>

#include "arp/arp_fixture.h"
#include "arp/arp_packet.h"
#include "arp/neighbor_private.h"
#include "base/rcu.h"
#include "graph/node_test.h"
#include "l3/nexthop.h"
#include "worker/punt.h"

#define PEER "192.0.2.9"
#define PEER_MAC "02:00:00:00:09:09"

static uint32_t hold(uint16_t port, const char *addr)
{
	const struct ip_addr a = fixture_addr(addr);
	uint32_t adj;

	assert_int_equal(adjacency_hold(port, &a, NULL, &adj, NULL), 0);
	return adj;
}

static struct neighbor *find(const char *addr)
{
	const struct ip_addr a = fixture_addr(addr);

	return neighbor_find(FABRIC, &a);
}

static void learn(const char *addr, const char *mac, bool create, bool confirmed)
{
	const struct ip_addr a = fixture_addr(addr);
	const struct rte_ether_addr m = fixture_mac(mac);

	neighbor_learn(FABRIC, &a, &m, create, confirmed);
}

// An IPv4 packet without its link-layer header; tag is its first byte of payload.
static struct rte_mbuf *packet(const char *dst, uint8_t tag)
{
	const struct ip_addr d = fixture_addr(dst);
	struct {
		struct rte_ipv4_hdr ip;
		uint8_t tag;
	} p = {.ip = {.version_ihl = 0x45, .dst_addr = ip4_be(&d)}, .tag = tag};

	return fixture_frame(TENANT, &p, 21, 0);
}

static unsigned count_requests(void)
{
	unsigned i, n = 0;

	for (i = 0; i < fixture_n_sent; i++)
		n += rte_pktmbuf_mtod(fixture_sent[i], struct rte_ether_hdr *)->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP);
	fixture_forget();
	return n;
}

static void resolves(void **state)
{
	const uint8_t l2[14] = {2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 0, 1};
	uint32_t adj = hold(FABRIC, PEER);
	struct neighbor *n = find(PEER);
	struct rte_mbuf *m;

	assert_false(adjacency_table[adj]->resolved);
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	neighbor_wait(adj, packet(PEER, 1));
	neighbor_wait(adj, packet(PEER, 2));
	assert_int_equal(n->n_waiting, 2);
	assert_int_equal(count_requests(), 1); // the first packet asks at once
	learn(PEER, PEER_MAC, false, true);
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
	neighbor_wait(adj, packet(PEER, 3)); // was under way to us meanwhile
	assert_int_equal(fixture_n_sent, 1);
	adjacency_put(adj);
}

static void vlan_and_mac_change(void **state)
{
	struct port *p = port_table[FABRIC];
	uint32_t adj = hold(FABRIC, PEER);
	const uint8_t tagged[16] = {2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 100};

	learn(PEER, PEER_MAC, false, true);
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
	learn(PEER, "02:00:00:00:08:08", false, false); // the host has moved
	assert_int_equal(adjacency_table[adj]->l2[32 - 14 + 5], 8);
	assert_int_equal(find(PEER)->state, NEIGH_STALE);
	assert_int_equal(fixture_changes, 1);
	adjacency_put(adj);
}

static void gives_up(void **state)
{
	uint32_t adj = hold(FABRIC, PEER);
	struct neighbor *n = find(PEER);

	neighbor_wait(adj, packet(PEER, 1));
	fixture_wait(2900);
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	fixture_wait(300);
	assert_int_equal(n->state, NEIGH_FAILED);
	assert_int_equal(count_requests(), 3);
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	assert_int_equal(n->n_waiting, 0);
	neighbor_wait(adj, packet(PEER, 2)); // a moment later: not asked again yet
	assert_int_equal(fixture_drops("neighbor_unresolved"), 2);
	assert_int_equal(count_requests(), 0);
	fixture_wait(1000);
	neighbor_wait(adj, packet(PEER, 3));
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	assert_int_equal(count_requests(), 1);
	fixture_wait(3200);
	assert_int_equal(n->state, NEIGH_FAILED);
	count_requests();
	fixture_wait(20000); // held: asked now and then, so that it comes back by itself
	assert_in_range(count_requests(), 3, 4);
	learn(PEER, PEER_MAC, false, true);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_changes, 1);
	adjacency_put(adj);
}

static void ages_held(void **state)
{
	uint32_t adj = hold(FABRIC, PEER);
	struct neighbor *n = find(PEER);
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC);

	learn(PEER, PEER_MAC, false, true);
	fixture_wait(29900);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(count_requests(), 0);
	fixture_wait(200);
	assert_int_equal(n->state, NEIGH_PROBE);
	assert_int_equal(fixture_n_sent, 1);
	assert_memory_equal(rte_pktmbuf_mtod(fixture_sent[0], void *), &mac, 6); // unicast
	assert_true(adjacency_table[adj]->resolved);                             // forwards meanwhile
	learn(PEER, PEER_MAC, false, true);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_int_equal(fixture_changes, 1);
	fixture_wait(33300);
	assert_int_equal(n->state, NEIGH_FAILED);
	assert_false(adjacency_table[adj]->resolved);
	assert_int_equal(fixture_changes, 2);
	assert_int_equal(count_requests(), 4);
	adjacency_put(adj);
	fixture_wait(6000); // nobody's: forgotten
	assert_null(find(PEER));
}

static void gleaned(void **state)
{
	struct rte_mbuf *m = packet(PEER, 1);

	meta(m)->arg = FABRIC;
	fixture_punt(PUNT_GLEAN, m);
	assert_non_null(find(PEER));
	assert_int_equal(count_requests(), 1);
	learn(PEER, PEER_MAC, false, true);
	assert_int_equal(fixture_n_sent, 1);
	fixture_forget();
	assert_int_equal(fixture_changes, 0); // no next hop leads there
	fixture_wait(30100);
	assert_int_equal(find(PEER)->state, NEIGH_STALE);
	assert_int_equal(count_requests(), 0);
	m = packet(PEER, 2);
	meta(m)->arg = FABRIC;
	fixture_punt(PUNT_GLEAN, m); // used: forwarded, and asked whether it is still there
	assert_int_equal(fixture_n_sent, 2);
	assert_int_equal(count_requests(), 1);
	assert_int_equal(find(PEER)->state, NEIGH_PROBE);
	learn(PEER, PEER_MAC, false, true);
	fixture_wait(60200);
	assert_null(find(PEER));
}

static void glean_refuses(void **state)
{
	struct rte_mbuf *m = packet("224.0.0.5", 1);

	meta(m)->arg = FABRIC;
	fixture_punt(PUNT_GLEAN, m);
	assert_int_equal(fixture_drops("neighbor_not_unicast"), 1);
	m = packet(PEER, 1);
	meta(m)->arg = 99;
	fixture_punt(PUNT_GLEAN, m);
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	m = packet(PEER, 1);
	rte_pktmbuf_trim(m, 2);
	fixture_punt(PUNT_GLEAN, m);
	m = packet(PEER, 1);
	*rte_pktmbuf_mtod(m, uint8_t *) = 0x60; // IPv6, but only 21 bytes of it
	fixture_punt(PUNT_GLEAN, m);
	assert_int_equal(fixture_drops("neighbor_bad_packet"), 2);
	assert_int_equal(neighbor_count(), 0);
}

static void queue_bounds(void **state)
{
	uint32_t adj = hold(FABRIC, PEER);
	unsigned i;

	for (i = 0; i < NEIGHBOR_WAITING + 5; i++)
		neighbor_wait(adj, packet(PEER, (uint8_t)i));
	assert_int_equal(fixture_drops("neighbor_queue_full"), 5);
	count_requests();
	learn(PEER, PEER_MAC, false, true);
	assert_int_equal(fixture_n_sent, NEIGHBOR_WAITING);
	assert_int_equal(*rte_pktmbuf_mtod_offset(fixture_sent[0], uint8_t *, 14 + 20), 5); // the oldest went
	adjacency_put(adj);
}

// A host that scans its subnet takes neither all buffers nor the whole table.
static void scan(void **state)
{
	struct ip_addr a = fixture_addr("192.0.0.0");
	unsigned i;

	for (i = 0; i < 3000; i++) {
		a.bytes[2] = (uint8_t)(i >> 8);
		a.bytes[3] = (uint8_t)(i + 1);
		neighbor_wait_on_port(FABRIC, &a, packet(PEER, 1));
		fixture_forget();
	}
	assert_int_equal(neighbor_count(), NEIGHBOR_PORT_UNHELD);
	assert_int_equal(node_test_in_use(), NEIGHBOR_PORT_WAITING);
	assert_true(fixture_drops("neighbor_table_full") > 1900);
	assert_true(fixture_drops("neighbor_queue_full") > 700);
	adjacency_put(hold(FABRIC, "198.51.100.1")); // next hops still find room
	neighbor_wait_on_port(TENANT, &a, packet(PEER, 1)); // and so do other ports
	assert_int_equal(neighbor_count(), NEIGHBOR_PORT_UNHELD + 2);
	for (i = 0; i < 150; i++) {
		fixture_wait(100);
		fixture_forget();
	}
	assert_int_equal(neighbor_count(), 0);
	assert_int_equal(node_test_in_use(), 0);
}

// Many at once: no poll sends more than the workers' rings can take.
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
	assert_int_equal(count_requests(), 0);
	for (i = 0; i < 4; i++) {
		fixture_wait(100);
		assert_in_range(fixture_n_sent, 1, NEIGHBOR_POLL_SOLICITS);
		total += count_requests();
	}
	assert_int_equal(total, RTE_DIM(adj)); // each once
	for (i = 0; i < RTE_DIM(adj); i++)
		adjacency_put(adj[i]);
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
	assert_int_equal(neighbor_count(), 0);
}

static void permanent(void **state)
{
	const struct rte_ether_addr mac = fixture_mac(PEER_MAC), group = fixture_mac("01:00:5e:00:00:01");
	const struct ip_addr a = fixture_addr(PEER), own = fixture_addr("192.0.2.1"), multicast = fixture_addr("ff02::1");
	uint32_t adj = hold(FABRIC, PEER);
	struct error err;

	neighbor_wait(adj, packet(PEER, 1));
	fixture_forget();
	assert_int_equal(neighbor_set(FABRIC, &a, &mac, &err), 0);
	assert_int_equal(fixture_n_sent, 1); // what waited
	assert_int_equal(fixture_changes, 1);
	learn(PEER, "02:00:00:00:0a:0a", false, true); // cannot be overwritten
	assert_memory_equal(&find(PEER)->mac, &mac, 6);
	fixture_wait(100000);
	assert_int_equal(find(PEER)->state, NEIGH_PERMANENT);
	assert_int_equal(neighbor_del(FABRIC, &a, &err), 0);
	assert_int_equal(find(PEER)->state, NEIGH_INCOMPLETE); // held: looked for anew
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

static void port_goes(void **state)
{
	uint32_t adj = hold(FABRIC, PEER), waiting = hold(FABRIC, "192.0.2.10");

	learn(PEER, PEER_MAC, false, true);
	learn("192.0.2.11", PEER_MAC, true, false);
	neighbor_wait(waiting, packet(PEER, 1));
	assert_int_equal(neighbor_count(), 3);
	fixture_remove(FABRIC);
	assert_int_equal(neighbor_count(), 2);
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	assert_int_equal(fixture_changes, 2);
	assert_false(adjacency_table[adj]->resolved); // workers that still have the next hop find this
	assert_null(find(PEER));
	neighbor_wait(adj, packet(PEER, 1));
	assert_int_equal(fixture_drops("neighbor_unresolved"), 2);
	fixture_wait(10000);
	adjacency_put(adj);
	adjacency_put(waiting);
	assert_int_equal(neighbor_count(), 0);
}

static void link_returns(void **state)
{
	uint32_t adj = hold(FABRIC, PEER);

	fixture_link(port_table[FABRIC], false);
	fixture_wait(4000);
	assert_int_equal(fixture_n_sent, 0);
	assert_int_equal(find(PEER)->state, NEIGH_FAILED);
	fixture_link(port_table[FABRIC], true);
	fixture_wait(100);
	assert_int_equal(count_requests(), 1);
	adjacency_put(adj);
}

// A packet that was punted for an adjacency must not reach the host that gets its index next.
static void index_rests(void **state)
{
	uint32_t adj = hold(FABRIC, PEER), next;

	neighbor_del(FABRIC, &find(PEER)->addr, NULL);
	adjacency_put(adj);
	neighbor_del(FABRIC, &find(PEER)->addr, NULL);
	rcu_poll();
	assert_null(adjacency_table[adj]);
	next = hold(FABRIC, "192.0.2.10");
	assert_int_not_equal(next, adj);
	neighbor_wait(adj, packet(PEER, 1));
	assert_int_equal(fixture_drops("neighbor_unresolved"), 1);
	adjacency_put(next);
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
	learn(PEER, PEER_MAC, true, false); // no room: nothing happens
	assert_null(find(PEER));
	for (i = 0; i < n; i++)
		adjacency_put(adj[i]);
	fixture_remove(FABRIC);
	assert_int_equal(neighbor_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(resolves, fixture_reset),     cmocka_unit_test_setup(vlan_and_mac_change, fixture_reset),
		cmocka_unit_test_setup(gives_up, fixture_reset),     cmocka_unit_test_setup(ages_held, fixture_reset),
		cmocka_unit_test_setup(gleaned, fixture_reset),      cmocka_unit_test_setup(glean_refuses, fixture_reset),
		cmocka_unit_test_setup(queue_bounds, fixture_reset), cmocka_unit_test_setup(scan, fixture_reset),
		cmocka_unit_test_setup(paced, fixture_reset),        cmocka_unit_test_setup(by_mac, fixture_reset),
		cmocka_unit_test_setup(permanent, fixture_reset),    cmocka_unit_test_setup(port_goes, fixture_reset),
		cmocka_unit_test_setup(link_returns, fixture_reset), cmocka_unit_test_setup(index_rests, fixture_reset),
		cmocka_unit_test_setup(full, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
