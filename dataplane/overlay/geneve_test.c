// SPDX-License-Identifier: Apache-2.0
// Packets from the fabric pass fabric_input first, so that the decap node gets its metadata. The expected headers were
// made with scapy.
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eth/spread_hash.h"
#include "overlay/overlay.h"
#include "testing/router_fixture.h"

// VNIs.
#define TO_RED 100 // 000064
#define TO_LAN 300 // 00012c
#define TO_PORT 400

#define IP4 "4500001c 0001 0000 40fd 657f 0a630001 0a000002 0102030405060708" // 10.99.0.1 to 10.0.0.2, protocol 253
#define IP6 "60000000 0008 fd 40 fd990000000000000000000000000001 fd000000000000000000000000000002 0102030405060708"
#define FRAME "020000000022 020000000011 88b5 0102030405060708"
#define ROUTED4 "02000000aa01 02000000bb02 0800 " IP4
#define ROUTED6 "02000000aa01 02000000bb02 86dd " IP6

static int setup(void **state)
{
	if (router_setup(state) < 0)
		return -1;
	router_nexthop(&(struct nexthop_config){
		.id = FREE_ID + 1, .kind = NH_PORT, .port = {.id = RED0, .mac = router_mac("02:00:00:00:00:03")}});
	vni_set(TO_RED, TARGET(TARGET_VRF, RED), NULL);
	vni_set(TO_LAN, TARGET(TARGET_BRIDGE, LAN), NULL);
	return vni_set(TO_PORT, TARGET(TARGET_NEXTHOP, FREE_ID + 1), NULL);
}

static void set_udp6_checksum(uint8_t *ip)
{
	unsigned len = (unsigned)ip[4] << 8 | ip[5];
	uint16_t sum = (uint16_t)~router_sum(ip + 40, len, router_sum(ip + 8, 32, IPPROTO_UDP + len));

	ip[46] = (uint8_t)(sum >> 8);
	ip[47] = (uint8_t)sum;
}

// The frame as it comes from the wire; text: what follows UDP.
static struct rte_mbuf *received(bool v6, const char *text)
{
	struct rte_mbuf *body, *m;
	char udp[2048];
	unsigned len;

	snprintf(udp, sizeof(udp), "c350 17c1 0000 0000 %s", text);
	body = router_hex(udp);
	len = body->data_len;
	*rte_pktmbuf_mtod_offset(body, rte_be16_t *, 4) = rte_cpu_to_be_16((uint16_t)len);
	m = router_frame(FABRIC0, "02:00:00:00:f0:01", "02:00:00:00:0f:01",
			 &(struct packet){.src = v6 ? "2001:db8:f::9" : "203.0.113.9",
					  .dst = v6 ? "2001:db8::1" : "192.0.2.1",
					  .proto = IPPROTO_UDP,
					  .payload = len});
	memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len - len), rte_pktmbuf_mtod(body, void *), len);
	rte_pktmbuf_free(body);
	if (v6)
		set_udp6_checksum(rte_pktmbuf_mtod_offset(m, uint8_t *, 14));
	return m;
}

static const char *decap(struct rte_mbuf *m)
{
	const char *edge;

	assert_string_equal(node_test_one("fabric_input", m), "decap_geneve");
	edge = node_test_one("decap_geneve", m);
	return edge && strcmp(edge, "decap_unknown") == 0 ? node_test_one(edge, m) : edge;
}

static void assert_inner(const char *text, const char *edge, const char *inner)
{
	struct rte_mbuf *m;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		m = received(v6, text);
		assert_string_equal(decap(m), edge);
		assert_int_equal(meta(m)->l3, 0);
		assert_true(meta(m)->flags & META_FROM_TUNNEL);
		assert_bytes(m, inner);
		rte_pktmbuf_free(m);
	}
}

static void assert_dropped(const char *text, const char *reason)
{
	struct rte_mbuf *m;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		m = received(v6, text);
		assert_string_equal(decap(m), "drop");
		assert_string_equal(node_test_reason(m), reason);
		rte_pktmbuf_free(m);
	}
}

static void frames(void **state)
{
	assert_inner("0000 6558 00012c00" FRAME, "bridge_input", FRAME);
	assert_inner("0000 6558 00006400" ROUTED4, "ip4_forward", IP4);
	assert_inner("0000 6558 00006400" ROUTED6, "ip6_forward", IP6);
	assert_inner("0000 6558 00006400 00005e000101 02000000bb02 0800" IP4, "ip4_forward", IP4); // the gateway's MAC
	assert_inner("0000 6558 00019000" ROUTED4, "ip4_forward", IP4);
	assert_dropped("0000 6558 00006400 02000000aa02 02000000bb02 0800" IP4, "geneve_wrong_router_mac");
	assert_dropped("0000 6558 00006400 02000000aa01 02000000bb02 88b5" IP4, "tunnel_not_ip");
	assert_dropped("0000 6558 0003e700" FRAME, "geneve_unknown_vni");
}

// Without an Ethernet header.
static void packets(void **state)
{
	assert_inner("0000 0800 00006400" IP4, "ip4_forward", IP4);
	assert_inner("0000 86dd 00019000" IP6, "ip6_forward", IP6);
	assert_dropped("0000 0800 00012c00" IP4, "geneve_unknown_protocol");
	assert_dropped("0000 8847 00006400" IP4, "geneve_unknown_protocol");
	assert_dropped("0000 0800 0003e700" IP4, "geneve_unknown_vni");
	assert_dropped("0000 0800 00006400" FRAME, "tunnel_not_ip");
}

#define OPTION "0102 01 01 11223344 " // class, type, one word
#define EMPTY "0103 7f 00 "           // no data, the greatest type that is not critical
#define CRITICAL_OPTION "0102 81 01 11223344 "

static void options(void **state)
{
	char longest[1024] = "3f00 6558 00012c00";
	unsigned i;

	assert_inner("0200 6558 00012c00" OPTION FRAME, "bridge_input", FRAME);
	assert_inner("0400 6558 00006400" EMPTY OPTION EMPTY ROUTED4, "ip4_forward", IP4);
	assert_inner("0200 0800 00006400" OPTION IP4, "ip4_forward", IP4);
	for (i = 0; i < 63; i++) // 252 bytes
		strcat(longest, EMPTY);
	assert_inner(strcat(longest, FRAME), "bridge_input", FRAME);

	assert_dropped("0200 6558 00012c00" CRITICAL_OPTION FRAME, "geneve_critical_option");
	assert_dropped("0440 6558 00012c00" OPTION CRITICAL_OPTION FRAME, "geneve_critical_option");
	// the header says that there is one
	assert_dropped("0040 6558 00012c00" FRAME, "geneve_critical_option");
	// a word longer than the options in all
	assert_dropped("0200 6558 00012c00 0102 01 02 11223344 " FRAME, "geneve_bad_options");
	assert_dropped("0100 6558 00012c00 0102 01 1f " FRAME, "geneve_bad_options");
	assert_dropped("3f00 6558 00012c00" EMPTY FRAME, "tunnel_truncated");
}

static void refused(void **state)
{
	assert_dropped("4000 6558 00012c00" FRAME, "geneve_bad_version");
	assert_dropped("c000 6558 00012c00" FRAME, "geneve_bad_version");
	assert_dropped("0080 6558 00012c00" FRAME, "geneve_control");
	assert_dropped("00c0 6558 00012c00" FRAME, "geneve_control");
	assert_inner("003f 6558 00012cff" FRAME, "bridge_input", FRAME); // reserved bits are not looked at
	assert_dropped("0000 6558 00012c", "tunnel_truncated");
	assert_dropped("0000 6558 00012c00 020000000022 020000000011 88", "tunnel_truncated");
	assert_dropped("0000 6558 00006400 02000000aa01 02000000bb02 0800 45", "tunnel_not_ip");
	assert_dropped("0000 0800 00006400", "tunnel_not_ip");
}

static void checksum(void **state)
{
	struct rte_mbuf *m = received(true, "0000 6558 00012c00" FRAME);

	*rte_pktmbuf_mtod_offset(m, uint16_t *, 14 + 40 + 6) = RTE_BE16(0x1234);
	assert_string_equal(decap(m), "drop");
	assert_string_equal(node_test_reason(m), "tunnel_udp_checksum");
	rte_pktmbuf_free(m);
}

static uint32_t hash_of(bool v6, const char *text)
{
	struct rte_mbuf *m = received(v6, text);
	uint32_t hash = spread_hash(m, true);

	rte_pktmbuf_free(m);
	return hash;
}

// The hash is the same for every encapsulation of the flow.
static void spread(void **state)
{
	uint32_t want = hash_of(false, "0000 6558 00006400" ROUTED4);

	assert_int_not_equal(want, 0);
	assert_int_equal(hash_of(true, "0000 6558 00006400" ROUTED4), want);
	assert_int_equal(hash_of(false, "0400 6558 00006400" EMPTY OPTION EMPTY ROUTED4), want);
	assert_int_equal(hash_of(false, "0200 0800 00006400" OPTION IP4), want);
	assert_int_not_equal(hash_of(false, "0000 6558 00006400" ROUTED6), want);
	assert_int_equal(hash_of(false, "3f00 6558 00006400" ROUTED4), 0); // it ends before its options
	assert_int_equal(hash_of(false, "0000 6558"), 0);
	assert_int_equal(hash_of(false, "0000 8847 00006400" IP4), 0);
}

#define LINK4 "020000000f01 02000000f001 0800 "
#define LINK6 "020000000f01 02000000f001 86dd "
#define OUTER6 "20010db8000000000000000000000001 20010db8000f00000000000000000009 "

static void assert_sent(const char *node, struct rte_mbuf *m, const char *headers)
{
	meta(m)->nexthop = nexthop_table[FREE_ID];
	meta(m)->hash = 0x12345678; // source port 49152 + 0x1234, flow label 0x23456
	assert_string_equal(node_test_one(node, m), "port_tx");
	rte_pktmbuf_trim(m, 28); // the packet behind its headers
	assert_bytes(m, headers);
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *inner(bool frame)
{
	struct rte_mbuf *m = router_hex(frame ? "020000000022 020000000011 0800" IP4 : IP4);

	meta(m)->bridge = frame ? LAN : UINT16_MAX;
	return m;
}

static void sent(void **state)
{
	struct nexthop_config c = {
		.id = FREE_ID,
		.kind = NH_TUNNEL,
		.tunnel = {.encap = encap_find("geneve"), .vni = TO_RED, .udp6_checksum = UDP6_CHECKSUM_OFF}};

	router_tunnel(FREE_ID, "geneve", "203.0.113.9", TO_RED);
	assert_int_equal(nexthop_get(FREE_ID)->overhead, 20 + 8 + 8 + 14);
	assert_sent("encap_geneve4", inner(false),
		    LINK4 "4500004e0000400040113c94c0000201cb007109 d23417c1003a0000 0000655800006400 "
			  "00005e00010102000000aa010800");
	assert_sent("encap_geneve4", inner(true),
		    LINK4 "4500004e0000400040113c94c0000201cb007109 d23417c1003a0000 0000655800006400 "
			  "0200000000220200000000110800");
	router_tunnel(FREE_ID, "geneve", "2001:db8:f::9", TO_RED);
	assert_sent("encap_geneve6", inner(false),
		    LINK6 "60023456003a1140" OUTER6 "d23417c1003acd89 0000655800006400 00005e00010102000000aa010800");
	c.tunnel.remote = router_addr("2001:db8:f::9");
	router_nexthop(&c);
	assert_sent("encap_geneve6", inner(false),
		    LINK6 "60023456003a1140" OUTER6 "d23417c1003a0000 0000655800006400 00005e00010102000000aa010800");
}

static void checked(void **state)
{
	struct nexthop_config c = {.id = FREE_ID,
				   .kind = NH_TUNNEL,
				   .tunnel = {.encap = encap_find("geneve"), .remote = router_addr("203.0.113.9")}};
	struct error err = {0};

	assert_int_equal(nexthop_add(&c, true, &err), -EINVAL);
	assert_string_equal(err.message, "nexthop.tunnel.vni: is missing; valid: 1 to 16777215");
	c.tunnel.vni = 1 << 24;
	assert_int_equal(nexthop_add(&c, true, &err), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),  cmocka_unit_test(packets),  cmocka_unit_test(options),
		cmocka_unit_test(refused), cmocka_unit_test(checksum), cmocka_unit_test(spread),
		cmocka_unit_test(sent),    cmocka_unit_test(checked),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
