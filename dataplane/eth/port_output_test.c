// SPDX-License-Identifier: Apache-2.0
// port_output and, behind it, neighbor_hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "l3/underlay.h"
#include "testing/router_fixture.h"
#include "worker/punt.h"

#define INNER "4500002e 0000 0000 4011 66bb 0a000002 0a000003 03e807d0 001a0000 08090a0b0c0d0e0f101112131415161718 19"

static const struct packet v4 = {.src = "10.0.0.2", .dst = "10.0.0.3"}, v6 = {.src = "fd00::2", .dst = "fd00::3"};

static void pass_ms(unsigned ms)
{
	clock_stopped += ms * (rte_get_tsc_hz() / 1000);
}

static struct rte_mbuf *to(uint32_t nexthop, struct rte_mbuf *m)
{
	meta(m)->nexthop = nexthop_table[nexthop];
	return m;
}

static void add(uint16_t port, const char *addr, const char *mac)
{
	struct nexthop_config c = {.id = FREE_ID, .kind = NH_PORT, .port.id = port};

	if (addr)
		c.port.addr = router_addr(addr);
	if (mac)
		c.port.mac = router_mac(mac);
	router_nexthop(&c);
}

static void guest(void **state)
{
	struct rte_mbuf *m;

	add(RED1, NULL, "02:00:00:00:00:04");
	m = to(FREE_ID, router_packet(RED, &v4));
	assert_string_equal(node_test_one("port_output", m), "port_tx");
	assert_int_equal(meta(m)->out_port, RED1);
	assert_bytes(m, "020000000004 00005e000101 0800" INNER);
	rte_pktmbuf_free(m);
	m = to(FREE_ID, router_packet(RED, &v6));
	assert_string_equal(node_test_one("port_output", m), "port_tx");
	assert_int_equal(m->pkt_len, 14 + 66);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *) + 12, "\x86\xdd", 2);
	rte_pktmbuf_free(m);
}

static void link_layer_replaced(void **state)
{
	struct rte_mbuf *m = router_frame(RED0, GATEWAY, "02:00:00:00:00:03", &v4);

	add(RED1, NULL, "02:00:00:00:00:04");
	meta(m)->l3 = 14;
	assert_string_equal(node_test_one("port_output", to(FREE_ID, m)), "port_tx");
	assert_bytes(m, "020000000004 00005e000101 0800" INNER);
	assert_int_equal(meta(m)->l3, 0);
	rte_pktmbuf_free(m);
}

static void tagged(void **state)
{
	struct rte_mbuf *m = to(VIA1, router_packet(VRF_FABRIC, &v4));

	assert_string_equal(node_test_one("port_output", m), "port_tx");
	assert_int_equal(meta(m)->out_port, FABRIC1);
	assert_bytes(m, "020000000f02 02000000f002 8100 0064 0800" INNER);
	rte_pktmbuf_free(m);
}

static void unknown_neighbor(void **state)
{
	struct rte_mbuf *m;

	add(RED1, "10.0.0.77", NULL);
	m = router_frame(RED0, GATEWAY, "02:00:00:00:00:03", &v4);
	meta(m)->l3 = 14;
	assert_string_equal(node_test_one("port_output", to(FREE_ID, m)), "neighbor_hold");
	assert_int_equal(meta(m)->arg, nexthop_table[FREE_ID]->adj);
	assert_string_equal(node_test_one("neighbor_hold", m), "punt");
	assert_int_equal(meta(m)->out_port, PUNT_HOLD);
	assert_int_equal(meta(m)->arg, nexthop_table[FREE_ID]->adj);
	assert_bytes(m, INNER); // without its link-layer header
	rte_pktmbuf_free(m);
}

// The subnet of a link: each destination is a neighbour of its own.
static void glean(void **state)
{
	struct rte_mbuf *m = router_packet(VRF_FABRIC, &(struct packet){.src = "192.0.2.1", .dst = "192.0.2.200"});

	meta(m)->flags = META_ANSWER;
	assert_string_equal(node_test_one("ip4_forward", m), "neighbor_hold");
	assert_int_equal(meta(m)->nexthop->kind, NH_GLEAN);
	assert_string_equal(node_test_one("neighbor_hold", m), "punt");
	assert_int_equal(meta(m)->out_port, PUNT_GLEAN);
	assert_int_equal(meta(m)->arg, FABRIC0);
	rte_pktmbuf_free(m);
}

static unsigned held(uint16_t from, uint32_t id, const char *dst, unsigned n)
{
	uint16_t vrf = dst ? VRF_FABRIC : RED;
	struct rte_mbuf *pkts[250];
	unsigned i, k, sum = 0;

	for (; n > 0; n -= k) {
		k = RTE_MIN(n, RTE_DIM(pkts));
		for (i = 0; i < k; i++) {
			pkts[i] =
				router_packet(vrf, &(struct packet){.src = "192.0.2.1", .dst = dst ? dst : "10.9.9.9"});
			pkts[i]->port = from;
			meta(pkts[i])->nexthop = nexthop_table[id];
			meta(pkts[i])->arg = nexthop_table[id]->adj;
		}
		assert_int_equal(node_test_run("neighbor_hold", pkts, k), k);
		for (i = 0; i < k; i++) {
			if (strcmp(node_test_outs[i].edge, "punt") == 0)
				sum++;
			else
				assert_string_equal(node_test_reason(node_test_outs[i].m), "neighbor_rate");
			rte_pktmbuf_free(node_test_outs[i].m);
		}
	}
	return sum;
}

// A flood to a dead host is punted at a low rate that never stops, and does not starve other hosts.
static void dead_neighbor(void **state)
{
	add(RED1, "10.0.0.78", NULL);
	assert_int_equal(held(RED0, FREE_ID, NULL, 20000), 64); // a full burst
	pass_ms(51);
	assert_int_equal(held(RED0, FREE_ID, NULL, 20000), 5); // the youngest packets wait
	add(RED1, "10.0.0.79", NULL);
	assert_int_equal(held(RED0, FREE_ID, NULL, 32), 32);
}

// A guest that sends to many dead neighbours at full rate gets its port's share; other ports keep theirs.
static void dead_subnet(void **state)
{
	static uint32_t ids[182];
	unsigned i, red = 0;
	char addr[16];

	for (i = 0; i < RTE_DIM(ids); i++) {
		snprintf(addr, sizeof(addr), "10.0.7.%u", i);
		ids[i] = FREE_ID + 1 + i;
		router_nexthop(&(struct nexthop_config){
			.id = ids[i], .kind = NH_PORT, .port = {.id = RED1, .addr = router_addr(addr)}});
	}
	for (i = 0; i < 180; i++)
		red += held(BLUE0, ids[i], NULL, 60);
	assert_int_equal(red, 1000); // of 10,800
	assert_int_equal(held(IRB0, ids[180], NULL, 40), 40);
	assert_int_equal(held(FABRIC0, ids[181], NULL, 40), 40); // packets from another port to the same guest
}

// A port may have a lower limit than the others.
static void port_limit(void **state)
{
	struct port_config c = router_config(RED1);
	unsigned i, n = 0;

	pass_ms(10000); // all buckets are full
	routed_config_edit(&c)->unresolved_rate = 100;
	router_set(RED1, &c);
	for (i = 0; i < 20; i++)
		n += held(RED1, FREE_ID + 1 + i, NULL, 60);
	assert_int_equal(n, 64); // of 1,200
	routed_config_edit(&c)->unresolved_rate = 0;
	router_set(RED1, &c);
	assert_int_equal(held(RED1, FREE_ID + 31, NULL, 1), 0); // a bucket begins empty at a higher rate
	pass_ms(2);
	assert_int_equal(held(RED1, FREE_ID + 30, NULL, 40), 20);
	pass_ms(200);
	assert_int_equal(held(RED1, FREE_ID + 29, NULL, 40), 40);
}

static uint32_t glean_id(void)
{
	struct rte_mbuf *m = router_packet(VRF_FABRIC, &(struct packet){.src = "192.0.2.1", .dst = "192.0.2.200"});
	uint32_t id;

	meta(m)->flags = META_ANSWER;
	assert_string_equal(node_test_one("ip4_forward", m), "neighbor_hold");
	id = meta(m)->nexthop->id;
	rte_pktmbuf_free(m);
	return id;
}

// On the subnet of a link addresses share budgets: one dead address leaves the others their share.
static void dead_address(void **state)
{
	uint32_t id = glean_id();
	unsigned n = held(FABRIC1, id, "192.0.2.201", 5000);

	assert_int_equal(n, 512);
	assert_int_equal(held(FABRIC1, id, "192.0.2.202", 40), 40);
}

// Time stands still but for what a test lets pass.
static int setup(void **state)
{
	clock_stopped = rte_rdtsc();
	return router_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(guest),       cmocka_unit_test(link_layer_replaced),
					   cmocka_unit_test(tagged),      cmocka_unit_test(unknown_neighbor),
					   cmocka_unit_test(glean),       cmocka_unit_test(dead_neighbor),
					   cmocka_unit_test(dead_subnet), cmocka_unit_test(port_limit),
					   cmocka_unit_test(dead_address)};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
