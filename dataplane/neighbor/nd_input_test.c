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
#include "neighbor/nd_packet.h"
#include "neighbor/neighbor.h"
#include "worker/punt.h"

#define GUEST "02:00:00:00:01:02"
#define GATEWAY "00:00:5e:00:01:01"
#define GUEST_IP "fd00::2"
#define GATEWAY_IP "fd00::1"
#define GATEWAY_LL "fe80::200:5eff:fe00:101"
#define GROUP "ff02::1:ff00:1"  // solicited-node of the gateway and of FABRIC_IP
#define FABRIC_IP "2001:db8::1" // of the fabric port
#define PEER "2001:db8::2"

static struct rte_mbuf *solicit(const char *src, const char *dst, const char *target, const char *mac)
{
	return fixture_nd(TENANT, ND_SOLICIT, 0, GUEST, src, dst, target, mac);
}

static void assert_dropped(struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(node_test_one("nd_input", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void assert_edge(struct rte_mbuf *m, const char *edge)
{
	assert_string_equal(node_test_one("nd_input", m), edge);
	rte_pktmbuf_free(m);
}

static void assert_punted(struct rte_mbuf *m, enum punt kind)
{
	assert_string_equal(node_test_one("nd_input", m), "punt");
	assert_int_equal(meta(m)->out_port, kind);
	rte_pktmbuf_free(m);
}

// Parses the answer with the rules of a receiver: length, hop limit, checksum, option.
static void assert_answered(struct rte_mbuf *m, const char *src, const char *dst, const char *target,
			    const char *eth_dst, uint32_t flags)
{
	const struct rte_ether_addr own = port_fwds[m->port]->mac, to = fixture_mac(eth_dst);
	const struct ip_addr s = fixture_addr(src), d = fixture_addr(dst), t = fixture_addr(target);
	struct nd_packet p;

	assert_string_equal(node_test_one("nd_input", m), "port_tx");
	assert_int_equal(meta(m)->out_port, m->port);
	assert_true(nd_parse(m, &p));
	assert_int_equal(m->pkt_len, 14 + 40 + 32);
	assert_int_equal(m->data_len, m->pkt_len);
	assert_int_equal(p.nd->type, ND_ADVERT);
	assert_int_equal(p.nd->flags, flags);
	assert_memory_equal(p.nd->target, t.bytes, 16);
	assert_memory_equal(p.ip->src_addr, s.bytes, 16);
	assert_memory_equal(p.ip->dst_addr, d.bytes, 16);
	assert_memory_equal(&p.eth->src_addr, &own, 6);
	assert_memory_equal(&p.eth->dst_addr, &to, 6);
	assert_non_null(p.mac);
	assert_memory_equal(p.mac, &own, 6);
	rte_pktmbuf_free(m);
}

#define OWN (ND_ROUTER | ND_SOLICITED | ND_OVERRIDE)

static void gateway(void **state)
{
	assert_answered(solicit(GUEST_IP, GROUP, GATEWAY_IP, GUEST), GATEWAY_IP, GUEST_IP, GATEWAY_IP, GUEST, OWN);
	assert_answered(solicit(GUEST_IP, GATEWAY_IP, GATEWAY_IP, NULL), GATEWAY_IP, GUEST_IP, GATEWAY_IP, GUEST,
			OWN); // grows by the option
	assert_answered(solicit("fe80::2", GROUP, GATEWAY_IP, GUEST), GATEWAY_IP, "fe80::2", GATEWAY_IP, GUEST, OWN);
	assert_answered(solicit("fe80::2", "ff02::1:ff00:101", GATEWAY_LL, GUEST), GATEWAY_LL, "fe80::2", GATEWAY_LL,
			GUEST, OWN);
	// Duplicate address detection: the gateway defends its address.
	assert_answered(solicit("::", GROUP, GATEWAY_IP, NULL), GATEWAY_IP, "ff02::1", GATEWAY_IP, "33:33:00:00:00:01",
			ND_ROUTER | ND_OVERRIDE);
}

static void padded(void **state)
{
	struct rte_mbuf *m = solicit(GUEST_IP, GROUP, GATEWAY_IP, GUEST);

	memset(rte_pktmbuf_append(m, 100), 0xaa, 100);
	assert_answered(m, GATEWAY_IP, GUEST_IP, GATEWAY_IP, GUEST, OWN);
}

static void no_room(void **state)
{
	struct rte_mbuf *m = solicit(GUEST_IP, GROUP, GATEWAY_IP, NULL);

	m->buf_len = (uint16_t)(m->data_off + m->data_len + 7); // the option needs 8
	assert_string_equal(node_test_one("nd_input", m), "drop");
	assert_string_equal(node_test_reason(m), "nd_no_tailroom");
	m->buf_len = RTE_MBUF_DEFAULT_BUF_SIZE;
	rte_pktmbuf_free(m);
}

static void proxy(void **state)
{
	struct port *p = port_table[TENANT];

	fixture_route("fd00::/48", FABRIC);
	assert_dropped(solicit(GUEST_IP, "ff02::1:ff00:9", "fd00:0:0:3::9", GUEST), "nd_not_ours"); // proxy is off
	neighbor_config_edit(&p->cfg)->proxy_arp = true;
	fixture_publish(p);
	assert_answered(solicit(GUEST_IP, "ff02::1:ff00:9", "fd00:0:0:3::9", GUEST), GATEWAY_LL, GUEST_IP,
			"fd00:0:0:3::9", GUEST, ND_ROUTER | ND_SOLICITED);
	assert_dropped(solicit("::", "ff02::1:ff00:9", "fd00:0:0:3::9", NULL), "nd_duplicate_check"); // may be its own
	assert_dropped(solicit(GUEST_IP, "ff02::1:ff00:9", "fe80::9", GUEST), "nd_not_ours");
	fixture_route("fd00::/48", TENANT); // leads back to the sender, which checks its own address for duplicates
	assert_dropped(solicit("::", "ff02::1:ff00:2", GUEST_IP, NULL), "nd_duplicate_check");
}

static void bridge(void **state)
{
	port_table[TENANT]->cfg.bridge = 5;
	fixture_publish(port_table[TENANT]);
	assert_edge(solicit(GUEST_IP, "ff02::1:ff00:9", "fd00::9", GUEST), "bridge_input");
	assert_edge(fixture_nd(TENANT, ND_ADVERT, ND_OVERRIDE, GUEST, GUEST_IP, "ff02::1", GUEST_IP, GUEST),
		    "bridge_input");
	assert_punted(fixture_nd(TENANT, ND_ADVERT, ND_SOLICITED, GUEST, GUEST_IP, GATEWAY_IP, GUEST_IP, GUEST),
		      PUNT_ND);
	assert_answered(solicit(GUEST_IP, GROUP, GATEWAY_IP, GUEST), GATEWAY_IP, GUEST_IP, GATEWAY_IP, GUEST, OWN);
}

static void spoofed(void **state)
{
	assert_dropped(fixture_nd(TENANT, ND_ADVERT, ND_OVERRIDE, GUEST, GUEST_IP, "ff02::1", GATEWAY_IP, GUEST),
		       "nd_spoofed_gateway");
	assert_dropped(fixture_nd(TENANT, ND_ADVERT, ND_OVERRIDE, GUEST, GUEST_IP, "ff02::1", GATEWAY_LL, GUEST),
		       "nd_spoofed_gateway");
	assert_dropped(solicit(GATEWAY_IP, "ff02::1:ff00:9", "fd00::9", GUEST), "nd_spoofed_gateway");
	assert_dropped(solicit(GATEWAY_IP, GROUP, GATEWAY_IP, GUEST), "nd_spoofed_gateway");
}

static void punted(void **state)
{
	assert_punted(fixture_nd(TENANT, ND_ADVERT, ND_SOLICITED, GUEST, GUEST_IP, GATEWAY_IP, GUEST_IP, GUEST),
		      PUNT_ND);
	assert_punted(fixture_nd(FABRIC, ND_ADVERT, ND_SOLICITED, GUEST, PEER, FABRIC_IP, PEER, GUEST), PUNT_ND_REPLY);
	assert_punted(fixture_nd(FABRIC, ND_ADVERT, ND_OVERRIDE, GUEST, PEER, "ff02::1", PEER, GUEST), PUNT_ND);
	assert_punted(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, PEER, GROUP, FABRIC_IP, GUEST), PUNT_ND_ASKED);
	assert_punted(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, PEER, GROUP, "2001:db8::9", GUEST), PUNT_ND);
	// Conflicts.
	assert_punted(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, FABRIC_IP, GROUP, FABRIC_IP, GUEST), PUNT_ND);
	assert_punted(fixture_nd(FABRIC, ND_ADVERT, ND_SOLICITED, GUEST, PEER, FABRIC_IP, FABRIC_IP, GUEST), PUNT_ND);
}

// Strangers ask faster than the control plane answers: the worker does, and nothing is learnt.
static void enough(void **state)
{
	fixture_enough = true;
	assert_answered(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, PEER, GROUP, FABRIC_IP, GUEST), FABRIC_IP, PEER,
			FABRIC_IP, GUEST, OWN);
	assert_answered(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, "::", GROUP, FABRIC_IP, NULL), FABRIC_IP, "ff02::1",
			FABRIC_IP, "33:33:00:00:00:01", ND_ROUTER | ND_OVERRIDE);
	assert_punted(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, FABRIC_IP, GROUP, FABRIC_IP, GUEST), PUNT_ND);
	assert_punted(fixture_nd(FABRIC, ND_ADVERT, ND_SOLICITED, GUEST, PEER, FABRIC_IP, PEER, GUEST), PUNT_ND_REPLY);
}

static void routers(void **state)
{
	assert_dropped(fixture_nd(TENANT, ND_ROUTER_SOLICIT, 0, GUEST, "fe80::2", "ff02::2", "::", NULL),
		       "nd_malformed"); // the target is parsed as an option of length 0
	assert_dropped(fixture_nd(TENANT, ND_ROUTER_SOLICIT, 0, GUEST, "fe80::2", "ff02::2", "101:0:0:0:101::", NULL),
		       "nd_router_solicit_ignored");
	assert_dropped(fixture_nd(TENANT, ND_ROUTER_ADVERT, 0, GUEST, "fe80::2", "ff02::1", "::101:0:0:0", NULL),
		       "nd_router_advert_ignored");
	assert_dropped(fixture_nd(FABRIC, ND_ROUTER_ADVERT, 0, GUEST, "fe80::2", "ff02::1", "::101:0:0:0", NULL),
		       "nd_router_advert_ignored");
	assert_dropped(fixture_nd(TENANT, ND_REDIRECT, 0, GUEST, "fe80::2", GUEST_IP, GUEST_IP, GUEST),
		       "nd_malformed"); // too short
}

// Changes one byte of a valid solicitation and recomputes the checksum.
static void assert_bad_byte(unsigned at, uint8_t value)
{
	struct rte_mbuf *m = solicit(GUEST_IP, GROUP, GATEWAY_IP, GUEST);

	rte_pktmbuf_mtod(m, uint8_t *)[at] = value;
	fixture_checksum(m);
	assert_dropped(m, "nd_malformed");
}

static void malformed(void **state)
{
	struct rte_mbuf *m;
	unsigned n;

	assert_bad_byte(14, 0x45);     // version
	assert_bad_byte(14 + 4, 0xff); // payload length
	assert_bad_byte(14 + 7, 254);  // hop limit: was forwarded
	assert_bad_byte(14 + 8, 0xff); // multicast source
	assert_bad_byte(54 + 1, 1);    // code
	assert_bad_byte(54 + 8, 0xff); // multicast target
	assert_bad_byte(54 + 25, 0);   // option of length 0
	assert_bad_byte(54 + 25, 2);   // option longer than the packet
	// RFC 4861, 7.1.1: unspecified source with option
	assert_dropped(solicit("::", GROUP, GATEWAY_IP, GUEST), "nd_malformed");
	assert_dropped(solicit("::", GATEWAY_IP, GATEWAY_IP, NULL), "nd_malformed");
	assert_dropped(solicit(GUEST_IP, GROUP, "::", GUEST), "nd_malformed");
	assert_dropped(fixture_nd(TENANT, ND_ADVERT, ND_SOLICITED, GUEST, GUEST_IP, "ff02::1", GUEST_IP, GUEST),
		       "nd_malformed"); // 7.1.2
	m = solicit(GUEST_IP, GROUP, GATEWAY_IP, GUEST);
	rte_pktmbuf_mtod(m, uint8_t *)[60] ^= 1; // checksum
	assert_dropped(m, "nd_malformed");
	for (n = 14; n < 14 + 40 + 32; n++) {
		m = solicit(GUEST_IP, GROUP, GATEWAY_IP, GUEST);
		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		assert_dropped(m, "nd_malformed");
	}
}

static void shared_with_the_kernel(void **state)
{
	port_fwds[FABRIC]->host = 9;
	assert_edge(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, "2001:db8::2", "ff02::1:ff00:9", "2001:db8::9", GUEST),
		    "host_share");
	assert_edge(fixture_nd(FABRIC, ND_ADVERT, ND_SOLICITED, GUEST, PEER, FABRIC_IP, PEER, GUEST), "host_share");
	assert_edge(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, PEER, GROUP, FABRIC_IP, GUEST), "punt");
	assert_edge(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, PEER, "fe80::ff:fe00:1", "fe80::ff:fe00:1", GUEST),
		    "punt");
	assert_edge(fixture_nd(FABRIC, ND_ROUTER_ADVERT, 0, GUEST, "fe80::2", "ff02::1", "::101:0:0:0", NULL),
		    "host_output");
	assert_edge(fixture_nd(FABRIC, ND_ROUTER_SOLICIT, 0, GUEST, "fe80::2", "ff02::2", "101:0:0:0:101::", NULL),
		    "host_output");
	port_fwds[FABRIC]->host = 0;
	assert_punted(fixture_nd(FABRIC, ND_SOLICIT, 0, GUEST, PEER, "ff02::1:ff00:9", "2001:db8::9", GUEST), PUNT_ND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(shared_with_the_kernel, fixture_reset),
		cmocka_unit_test_setup(gateway, fixture_reset),
		cmocka_unit_test_setup(padded, fixture_reset),
		cmocka_unit_test_setup(no_room, fixture_reset),
		cmocka_unit_test_setup(proxy, fixture_reset),
		cmocka_unit_test_setup(bridge, fixture_reset),
		cmocka_unit_test_setup(spoofed, fixture_reset),
		cmocka_unit_test_setup(punted, fixture_reset),
		cmocka_unit_test_setup(enough, fixture_reset),
		cmocka_unit_test_setup(routers, fixture_reset),
		cmocka_unit_test_setup(malformed, fixture_reset),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
