// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/host_fixture.h"
#include "host/steer.h"

#define PORT "02:00:00:00:f0:01"
#define HOST "02:00:00:00:0f:01"

static const struct packet v4 = {.src = "192.0.2.9", .dst = "192.0.2.1"},
			   v6 = {.src = "2001:db8::9", .dst = "2001:db8::1"};
static struct steer_table table;
static struct steer_count counts[2];

static int setup(void **state)
{
	if (host_setup(state) < 0)
		return -1;
	table = (struct steer_table){.n = 2, .count = {&counts[0], &counts[1]}};
	table.addr[0] = router_addr("192.0.2.1");
	table.addr[1] = router_addr("2001:db8::1");
	steer_tables[FABRIC0] = &table;
	return 0;
}

static void assert_edge(struct rte_mbuf *m, const char *edge)
{
	meta(m)->arg = 3; // the queue, which spread reads
	assert_string_equal(node_test_one("host_steer", m), edge);
	assert_int_equal(meta(m)->arg, 3);
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *changed(const struct packet *p, uint8_t proto, uint16_t dport, uint16_t frag)
{
	struct packet q = *p;

	q.proto = proto;
	q.dport = dport;
	q.frag = frag;
	return router_frame(FABRIC0, PORT, HOST, &q);
}

static void steered(void **state)
{
	memset(counts, 0, sizeof(counts));
	assert_edge(changed(&v4, IPPROTO_TCP, 22, 0), "fabric_input");
	assert_edge(changed(&v4, IPPROTO_UDP, 53, 0), "fabric_input");
	assert_edge(changed(&v4, IPPROTO_UDP, 6635, 7), "fabric_input"); // a later fragment has no ports
	assert_edge(changed(&v6, IPPROTO_TCP, 22, 0), "fabric_input");
	assert_edge(changed(&v6, IPPROTO_UDP, 53, 0), "fabric_input");
	assert_int_equal(counts[0].packets, 3);
	assert_int_equal(counts[1].packets, 2);
}

static void tunnels_are_not(void **state)
{
	assert_edge(changed(&v4, IPPROTO_UDP, 6635, 0), "spread");
	assert_edge(changed(&v4, IPPROTO_UDP, 4789, 0x2000), "spread");
	assert_edge(changed(&v6, IPPROTO_UDP, 4789, 0), "spread");
	assert_edge(changed(&v4, IPPROTO_GRE, 0, 0), "spread");
	assert_edge(changed(&v6, IPPROTO_GRE, 0, 0), "spread");
}

static void other_addresses_are_not(void **state)
{
	struct packet p = v4;

	p.dst = "192.0.2.2";
	assert_edge(router_frame(FABRIC0, PORT, HOST, &p), "spread");
	p = v6;
	p.dst = "2001:db8::2";
	assert_edge(router_frame(FABRIC0, PORT, HOST, &p), "spread");
	assert_edge(router_frame(FABRIC1, PORT, HOST, &v4), "spread"); // nothing is steered there
}

static void what_all_of_the_link_hears(void **state)
{
	struct rte_mbuf *m = router_frame(FABRIC0, PORT, HOST, &v6);
	struct packet p = v4;

	p.dst = "192.0.2.255";
	assert_edge(router_frame(FABRIC0, "ff:ff:ff:ff:ff:ff", HOST, &p), "fabric_input");
	rte_pktmbuf_free(m);
	m = router_frame(FABRIC0, PORT, HOST, &v4);
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	assert_edge(m, "fabric_input");
	p = v6;
	p.dst = "2001:db8::2";
	p.proto = IPPROTO_ICMPV6;
	m = router_frame(FABRIC0, PORT, HOST, &p);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 54) = 136; // neighbour advertisement
	assert_edge(m, "fabric_input");
	m = router_frame(FABRIC0, PORT, HOST, &v4);
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = RTE_BE16(0x88b5);
	assert_edge(m, "spread");
}

static void tagged(void **state)
{
	struct rte_mbuf *m =
		router_hex("02000000f001 020000000f01 8100 0064 0800 "
			   "45000024 00000000 4011 0000 c0000209 c0000201 0001 0035 0010 0000 0000000000000000");

	m->port = FABRIC0;
	assert_edge(m, "fabric_input"); // which checks the tag
}

// A truncated frame goes on to a node that checks and counts it.
static void truncated(void **state)
{
	struct rte_mbuf *m;
	unsigned n;

	for (n = 1; n < 60; n++) {
		m = changed(&v4, IPPROTO_UDP, 53, 0);
		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		assert_edge(m, n >= 18 && n < 42 ? "spread" : "fabric_input");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steered),
		cmocka_unit_test(tunnels_are_not),
		cmocka_unit_test(other_addresses_are_not),
		cmocka_unit_test(tagged),
		cmocka_unit_test(what_all_of_the_link_hears),
		cmocka_unit_test(truncated),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
