// SPDX-License-Identifier: Apache-2.0
// bridge_flood: one frame in, a copy for each end out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/node_test.h"
#include "l2/bridge_fixture.h"

#define A "02:00:00:00:00:0a"
#define NONE UINT16_MAX

static struct bridge *lan; // ports 1 to 3, tunnels 101 and 102

static int setup(void **state)
{
	uint16_t i;

	fixture_reset(state);
	lan = fixture_bridge("lan", 2);
	for (i = 1; i <= 3; i++)
		fixture_join(i, lan->id, NONE);
	return 0;
}

static void free_outs(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		rte_pktmbuf_free(node_test_outs[i].m);
}

static unsigned flood(struct rte_mbuf *m)
{
	meta(m)->l3 = 0; // as bridge_input leaves it
	return node_test_run("bridge_flood", &m, 1);
}

static unsigned outs_to_port(unsigned n, uint16_t port)
{
	unsigned i, found = 0;

	for (i = 0; i < n; i++)
		found += strcmp(node_test_outs[i].edge, "port_tx") == 0 && meta(node_test_outs[i].m)->out_port == port;
	return found;
}

static unsigned outs_to_tunnel(unsigned n, uint32_t id)
{
	unsigned i, found = 0;

	for (i = 0; i < n; i++)
		found += strcmp(node_test_outs[i].edge, "encap_vxlan4") == 0 &&
			 meta(node_test_outs[i].m)->nexthop == nexthop_table[id];
	return found;
}

static void from_port(void **state)
{
	struct rte_mbuf *m = fixture_frame(lan->id, 2, HERE, ALL, A, IP);
	uint8_t bytes[60];
	unsigned i, n;

	memcpy(bytes, rte_pktmbuf_mtod(m, void *), sizeof(bytes));
	n = flood(m);
	assert_int_equal(n, 4);
	assert_int_equal(outs_to_port(n, 1), 1);
	assert_int_equal(outs_to_port(n, 2), 0);
	assert_int_equal(outs_to_port(n, 3), 1);
	assert_int_equal(outs_to_tunnel(n, 101), 1);
	assert_int_equal(outs_to_tunnel(n, 102), 1);
	for (i = 0; i < n; i++) { // each its own buffer, with room for headers
		struct rte_mbuf *copy = node_test_outs[i].m;

		assert_memory_equal(rte_pktmbuf_mtod(copy, void *), bytes, sizeof(bytes));
		assert_int_equal(copy->pkt_len, sizeof(bytes));
		assert_int_equal(rte_mbuf_refcnt_read(copy), 1);
		assert_true(RTE_MBUF_DIRECT(copy));
		assert_true(rte_pktmbuf_headroom(copy) >= RTE_PKTMBUF_HEADROOM);
		assert_int_equal(copy->port, 2);
		assert_int_equal(meta(copy)->bridge, lan->id);
		assert_int_equal(meta(copy)->l3, 0);
		assert_int_not_equal(meta(copy)->hash, 0);
		memset(rte_pktmbuf_mtod(copy, void *), 0, sizeof(bytes)); // must not change the others
	}
	free_outs(n);
}

static void from_tunnel(void **state)
{
	unsigned n = flood(fixture_frame(lan->id, FABRIC, "192.0.2.1", ALL, A, IP));

	assert_int_equal(n, 3);
	assert_int_equal(outs_to_port(n, 1) + outs_to_port(n, 2) + outs_to_port(n, 3), 3);
	free_outs(n);
}

static void other_domains_hear_nothing(void **state)
{
	struct bridge *other = fixture_bridge("other", 0);
	unsigned n;

	fixture_join(3, other->id, NONE);
	fixture_join(4, other->id, NONE);
	n = flood(fixture_frame(lan->id, 1, HERE, ALL, A, IP));
	assert_int_equal(n, 3);
	assert_int_equal(outs_to_port(n, 2), 1);
	free_outs(n);
	n = flood(fixture_frame(other->id, 4, HERE, ALL, A, IP));
	assert_int_equal(n, 1);
	assert_int_equal(outs_to_port(n, 3), 1);
	free_outs(n);
}

static void follows_changes(void **state)
{
	struct bridge_config c = lan->cfg;
	unsigned n;

	fixture_leave(3);
	port_table[2]->up = false;
	c.n_flood = 1;
	c.flood[0] = 103;
	assert_int_equal(bridge_set(lan, &c, NULL), 0);
	n = flood(fixture_frame(lan->id, 1, HERE, ALL, A, IP));
	assert_int_equal(n, 1);
	assert_int_equal(outs_to_tunnel(n, 103), 1);
	free_outs(n);
}

static void nobody(void **state)
{
	struct bridge *empty = fixture_bridge("empty", 0);

	fixture_join(4, empty->id, NONE);
	assert_int_equal(flood(fixture_frame(empty->id, 4, HERE, ALL, A, IP)), 1);
	assert_string_equal(node_test_outs[0].edge, "drop");
	assert_string_equal(node_test_reason(node_test_outs[0].m), "bridge_no_target");
	free_outs(1);
	assert_int_equal(flood(fixture_frame(77, 4, HERE, ALL, A, IP)), 1); // the domain has gone
	assert_string_equal(node_test_outs[0].edge, "drop");
	free_outs(1);
}

// A copy that cannot be made for one end is counted; the other ends get theirs.
static void ends_that_miss(void **state)
{
	uint64_t down = fixture_drops(1, "bridge_flood_tunnel_down"), big = fixture_drops(1, "bridge_flood_too_big");
	unsigned n;

	fixture_tunnel(101, NH_TUNNEL, "192.0.2.1", 0, "vxlan");
	fixture_tunnel(102, NH_TUNNEL, "192.0.2.2", 1000, "vxlan");
	n = flood(fixture_frame_len(fixture_frame(lan->id, 1, HERE, ALL, A, IP), 1015));
	assert_int_equal(n, 2);
	assert_int_equal(outs_to_port(n, 2) + outs_to_port(n, 3), 2);
	free_outs(n);
	assert_int_equal(fixture_drops(1, "bridge_flood_tunnel_down"), down + 1);
	assert_int_equal(fixture_drops(1, "bridge_flood_too_big"), big + 1);
	n = flood(fixture_frame_len(fixture_frame(lan->id, 1, HERE, ALL, A, IP), 1014));
	assert_int_equal(n, 3);
	free_outs(n);
}

static void port_too_small(void **state)
{
	uint64_t big = fixture_drops(1, "bridge_flood_too_big");
	unsigned n;

	port_fwds[2]->mtu = 1000;
	n = flood(fixture_frame_len(fixture_frame(lan->id, 1, HERE, ALL, A, IP), 1019));
	assert_int_equal(outs_to_port(n, 2), 0);
	assert_int_equal(outs_to_port(n, 3), 1);
	free_outs(n);
	assert_int_equal(fixture_drops(1, "bridge_flood_too_big"), big + 1);
	n = flood(fixture_frame_len(fixture_frame(lan->id, 1, HERE, ALL, A, IP), 1018)); // a tag is no part of the MTU
	assert_int_equal(outs_to_port(n, 2), 1);
	free_outs(n);
	port_fwds[2]->mtu = 1500;
}

static void out_of_buffers(void **state)
{
	uint64_t before = fixture_drops(1, "bridge_no_buffer");
	struct rte_mbuf *m = fixture_frame(lan->id, 1, HERE, ALL, A, IP);
	static struct rte_mbuf *all[16384];
	unsigned n, taken = 0;

	while (taken < RTE_DIM(all) && (all[taken] = rte_pktmbuf_alloc(node_test_pool)) != NULL)
		taken++;
	n = flood(m);
	assert_int_equal(n, 1); // the frame itself
	assert_ptr_equal(node_test_outs[0].m, m);
	assert_string_equal(node_test_outs[0].edge, "port_tx");
	assert_int_equal(fixture_drops(1, "bridge_no_buffer"), before + 3);
	free_outs(n);
	rte_pktmbuf_free_bulk(all, taken);
}

// A batch whose copies fill the node's own buffer several times.
static void batch(void **state)
{
	struct rte_mbuf *pkts[200];
	unsigned i, n;

	for (i = 0; i < 200; i++) {
		pkts[i] = fixture_frame(lan->id, (uint16_t)(1 + i % 3), HERE, ALL, A, IP);
		meta(pkts[i])->l3 = 0;
	}
	n = node_test_run("bridge_flood", pkts, 200);
	assert_int_equal(n, 800);
	for (i = 1; i <= 3; i++)
		assert_int_equal(outs_to_port(n, (uint16_t)i), 200 - (i == 3 ? 66 : 67));
	assert_int_equal(outs_to_tunnel(n, 101), 200);
	assert_int_equal(outs_to_tunnel(n, 102), 200);
	free_outs(n);
}

#define T(fn) cmocka_unit_test_setup(fn, setup)

// A storm uses up the budget of its own port only: frames of other ports still go to every end.
static void a_storm_is_bounded_per_port(void **state)
{
	unsigned i, n, passed = 0;

	flood_copies_per_second = 1; // no budget recovers during the test; the burst is 2,048 copies
	for (i = 0; i < 1000; i++) {
		n = flood(fixture_frame(lan->id, 1, HERE, ALL, A, IP));
		passed += n == 4;
		if (n != 4)
			assert_string_equal(node_test_outs[0].edge, "drop");
		free_outs(n);
	}
	assert_int_equal(passed, 2048 / 5); // 5 ends: 3 ports, 2 tunnels
	n = flood(fixture_frame(lan->id, 2, HERE, ALL, A, IP));
	assert_int_equal(n, 4);
	free_outs(n);
	// the tunnels of the bridge have a budget of their own
	n = flood(fixture_frame(lan->id, FABRIC, "192.0.2.1", ALL, A, IP));
	assert_int_equal(n, 3);
	free_outs(n);
	flood_copies_per_second = LIMIT_SETTINGS_FLOOD_COPIES_PER_SECOND_MAX; // the low rate leaves no debt
	for (i = 0, n = 0; i < 10 && n != 4; i++) {
		n = flood(fixture_frame(lan->id, 1, HERE, ALL, A, IP));
		free_outs(n);
		rte_delay_us(1000);
	}
	assert_int_equal(n, 4);
	flood_copies_per_second = LIMIT_SETTINGS_FLOOD_COPIES_PER_SECOND_DEFAULT;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(from_port),
		T(from_tunnel),
		T(other_domains_hear_nothing),
		T(follows_changes),
		T(nobody),
		T(ends_that_miss),
		T(port_too_small),
		T(out_of_buffers),
		T(batch),
		T(a_storm_is_bounded_per_port),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
