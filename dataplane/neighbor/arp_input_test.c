// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/drop.h"
#include "graph/node_test.h"
#include "neighbor/arp_fixture.h"
#include "neighbor/arp_packet.h"
#include "neighbor/neighbor.h"
#include "worker/punt.h"

#define GUEST "02:00:00:00:01:02"
#define GATEWAY "00:00:5e:00:01:01"
#define OWN "192.0.2.1" // of the fabric port
#define OWN_MAC "02:00:00:00:00:01"
#define ALL "ff:ff:ff:ff:ff:ff"
#define REQUEST 1
#define REPLY 2

static struct rte_arp_hdr *arp_of(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct rte_arp_hdr *, meta(m)->l3);
}

static void assert_dropped(struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(node_test_one("arp_input", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void assert_edge(struct rte_mbuf *m, const char *edge, enum punt kind)
{
	assert_string_equal(node_test_one("arp_input", m), edge);
	assert_int_equal(meta(m)->out_port, kind);
	rte_pktmbuf_free(m);
}

static void assert_answered(struct rte_mbuf *m, const char *asked, const char *asker)
{
	const struct ip_addr a = fixture_addr(asked), b = fixture_addr(asker);
	const struct rte_ether_addr own = port_fwds[m->port]->mac, guest = fixture_mac(GUEST);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_arp_hdr *arp = arp_of(m);

	assert_string_equal(node_test_one("arp_input", m), "port_tx");
	assert_int_equal(meta(m)->out_port, m->port);
	assert_memory_equal(&eth->dst_addr, &guest, 6);
	assert_memory_equal(&eth->src_addr, &own, 6);
	assert_int_equal(arp->arp_opcode, RTE_BE16(REPLY));
	assert_memory_equal(&arp->arp_data.arp_sha, &own, 6);
	assert_memory_equal(&arp->arp_data.arp_tha, &guest, 6);
	assert_int_equal(arp->arp_data.arp_sip, ip4_be(&a));
	assert_int_equal(arp->arp_data.arp_tip, ip4_be(&b));
	rte_pktmbuf_free(m);
}

static void gateway(void **state)
{
	assert_answered(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.1"), "10.0.0.1", "10.0.0.2");
	// unicast
	assert_answered(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", GATEWAY, "10.0.0.1"), "10.0.0.1", "10.0.0.2");
	// RFC 5227 probe
	assert_answered(fixture_arp(TENANT, REQUEST, GUEST, "0.0.0.0", ALL, "10.0.0.1"), "10.0.0.1", "0.0.0.0");
}

static void others(void **state)
{
	struct rte_mbuf *m;

	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.9"), "arp_not_ours");
	port_table[TENANT]->cfg.bridge = 5;
	fixture_publish(port_table[TENANT]);
	m = fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.9");
	assert_string_equal(node_test_one("arp_input", m), "bridge_input");
	rte_pktmbuf_free(m);
	m = fixture_arp(TENANT, REPLY, GUEST, "10.0.0.2", ALL, "10.0.0.2"); // gratuitous: for the bridge
	assert_string_equal(node_test_one("arp_input", m), "bridge_input");
	rte_pktmbuf_free(m);
	assert_answered(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.1"), "10.0.0.1", "10.0.0.2");
}

static void proxy(void **state)
{
	struct port *p = port_table[TENANT];

	fixture_route("10.0.0.0/16", FABRIC);
	// proxy_arp is off
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.3.9"), "arp_not_ours");
	neighbor_config_edit(&p->cfg)->proxy_arp = true;
	fixture_publish(p);
	assert_answered(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.3.9"), "10.0.3.9", "10.0.0.2");
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "0.0.0.0", ALL, "10.0.3.9"), "arp_not_ours");  // its own
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.1.0.9"), "arp_not_ours"); // no route
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "0.0.0.0", ALL, "169.254.1.1"), "arp_not_ours");
	fixture_route("10.0.0.0/16", TENANT); // leads back to the sender
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.3.9"), "arp_not_ours");
	p->cfg.vrf = UINT16_MAX;
	fixture_publish(p);
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.3.9"), "arp_not_ours");
}

static void spoofed(void **state)
{
	// gratuitous ARP
	assert_dropped(fixture_arp(TENANT, REPLY, GUEST, "10.0.0.1", ALL, "10.0.0.1"), "arp_spoofed_gateway");
	assert_dropped(fixture_arp(TENANT, REPLY, GUEST, "10.0.0.1", GATEWAY, "10.0.0.1"), "arp_spoofed_gateway");
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.1", ALL, "10.0.0.1"), "arp_spoofed_gateway");
	assert_dropped(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.1", ALL, "10.0.0.9"), "arp_spoofed_gateway");
}

static void punted(void **state)
{
	assert_edge(fixture_arp(TENANT, REPLY, GUEST, "10.0.0.2", GATEWAY, "10.0.0.1"), "punt", PUNT_ARP);
	assert_edge(fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.2"), "punt", PUNT_ARP); // gratuitous
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, OWN), "punt", PUNT_ARP_ASKED);
	assert_edge(fixture_arp(FABRIC, REPLY, GUEST, "192.0.2.2", OWN_MAC, OWN), "punt", PUNT_ARP_REPLY);
	assert_edge(fixture_arp(FABRIC, REPLY, GUEST, "192.0.2.2", ALL, "192.0.2.2"), "punt", PUNT_ARP);
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, "192.0.2.9"), "punt", PUNT_ARP);
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, OWN, ALL, OWN), "punt", PUNT_ARP); // a conflict
	assert_edge(fixture_arp(FABRIC, REPLY, GUEST, OWN, OWN_MAC, OWN), "punt", PUNT_ARP);
}

// Strangers ask faster than the control plane answers: the worker does, and nothing is learnt.
static void enough(void **state)
{
	fixture_enough = true;
	assert_answered(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, OWN), OWN, "192.0.2.2");
	assert_answered(fixture_arp(FABRIC, REQUEST, GUEST, "0.0.0.0", ALL, OWN), OWN, "0.0.0.0");
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, OWN, ALL, OWN), "punt", PUNT_ARP);
	assert_edge(fixture_arp(FABRIC, REPLY, GUEST, "192.0.2.2", OWN_MAC, OWN), "punt", PUNT_ARP_REPLY);
}

static void malformed(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} bad[] = {{15, 6}, {16, 0x86}, {18, 8}, {19, 16},  {21, 0},  {21, 3},
		   {21, 9}, {20, 1},    {22, 1}, {28, 224}, {28, 255}};
	struct rte_mbuf *m;
	unsigned i, n;

	for (i = 0; i < RTE_DIM(bad); i++) {
		m = fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.1");
		rte_pktmbuf_mtod(m, uint8_t *)[bad[i].at] = bad[i].value;
		assert_dropped(m, "arp_malformed");
	}
	for (n = 14; n < 42; n++) {
		m = fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.1");
		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		assert_dropped(m, "arp_malformed");
	}
	m = fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.1");
	memset(&arp_of(m)->arp_data.arp_sha, 0, 6);
	assert_dropped(m, "arp_malformed");
	m = fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, "10.0.0.1");
	m->port = 77; // a port that was removed meanwhile
	assert_dropped(m, "arp_malformed");
}

static void batches(void **state)
{
	struct rte_mbuf *pkts[256];
	unsigned i, sent = 0;

	for (i = 0; i < RTE_DIM(pkts); i++)
		pkts[i] = fixture_arp(TENANT, REQUEST, GUEST, "10.0.0.2", ALL, i % 3 ? "10.0.0.1" : "10.0.0.9");
	assert_int_equal(node_test_run("arp_input", pkts, RTE_DIM(pkts)), RTE_DIM(pkts));
	for (i = 0; i < RTE_DIM(pkts); i++) {
		sent += strcmp(node_test_outs[i].edge, "port_tx") == 0;
		rte_pktmbuf_free(node_test_outs[i].m);
	}
	assert_int_equal(sent, 170);
}

static void shared_with_the_kernel(void **state)
{
	port_fwds[FABRIC]->host = 9;
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, "192.0.2.9"), "host_share", PUNT_ARP);
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "0.0.0.0", ALL, "192.0.2.9"), "host_share", PUNT_ARP);
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, "192.0.2.2"), "host_share", PUNT_ARP);
	assert_edge(fixture_arp(FABRIC, REPLY, GUEST, "192.0.2.2", OWN_MAC, OWN), "host_share", PUNT_ARP_REPLY);
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, OWN), "punt", PUNT_ARP_ASKED);
	assert_dropped(fixture_arp(FABRIC, 3, GUEST, "192.0.2.2", ALL, "192.0.2.9"), "arp_malformed");
	port_fwds[FABRIC]->host = 0;
	assert_edge(fixture_arp(FABRIC, REQUEST, GUEST, "192.0.2.2", ALL, "192.0.2.9"), "punt", PUNT_ARP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(shared_with_the_kernel, fixture_reset),
		cmocka_unit_test_setup(gateway, fixture_reset),
		cmocka_unit_test_setup(others, fixture_reset),
		cmocka_unit_test_setup(proxy, fixture_reset),
		cmocka_unit_test_setup(spoofed, fixture_reset),
		cmocka_unit_test_setup(punted, fixture_reset),
		cmocka_unit_test_setup(enough, fixture_reset),
		cmocka_unit_test_setup(malformed, fixture_reset),
		cmocka_unit_test_setup(batches, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
