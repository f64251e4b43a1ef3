// SPDX-License-Identifier: Apache-2.0
// port_output and, behind it, neighbor_hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "main/router_fixture.h"
#include "worker/punt.h"

#define INNER "4500002e 0000 0000 4011 66bb 0a000002 0a000003 03e807d0 001a0000 08090a0b0c0d0e0f101112131415161718 19"

static const struct packet v4 = {.src = "10.0.0.2", .dst = "10.0.0.3"}, v6 = {.src = "fd00::2", .dst = "fd00::3"};

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
	assert_bytes(m, INNER); // as it will go on
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(guest), cmocka_unit_test(link_layer_replaced), cmocka_unit_test(tagged),
					   cmocka_unit_test(unknown_neighbor), cmocka_unit_test(glean)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
