// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "l3/mss.h"
#include "l3/underlay.h"
#include "testing/router_fixture.h"

#define ADDRS "0a000002 0a000003"
#define SYN "03e807d0 00000001 00000000 6002ffff 0000 0000 " // a header of 24 bytes
#define SYN28 "03e807d0 00000001 00000000 7002ffff 0000 0000 "

// The TCP checksum of a packet that consists of its addresses and TCP.
static uint16_t sum_of(struct rte_mbuf *m)
{
	return router_sum(rte_pktmbuf_mtod(m, void *), m->data_len, IPPROTO_TCP + m->data_len - 8u);
}

static struct rte_mbuf *tcp(const char *hex)
{
	char text[512];
	struct rte_mbuf *m;
	uint16_t sum;

	snprintf(text, sizeof(text), "%s %s", ADDRS, hex);
	m = router_hex(text);
	sum = (uint16_t)~sum_of(m);
	if (m->data_len >= 8 + 18) {
		rte_pktmbuf_mtod(m, uint8_t *)[8 + 16] = (uint8_t)(sum >> 8);
		rte_pktmbuf_mtod(m, uint8_t *)[8 + 17] = (uint8_t)sum;
	}
	return m;
}

static void assert_clamped(const char *hex, uint16_t limit, unsigned at, uint16_t want)
{
	struct rte_mbuf *m = tcp(hex);
	const uint8_t *value = rte_pktmbuf_mtod_offset(m, const uint8_t *, 8 + at);

	mss_clamp(m, 8, limit);
	assert_int_equal(value[0] << 8 | value[1], want);
	assert_int_equal(sum_of(m), 0xffff);
	rte_pktmbuf_free(m);
}

static void assert_untouched(const char *hex, uint16_t limit)
{
	struct rte_mbuf *m = tcp(hex);
	uint8_t before[256];

	memcpy(before, rte_pktmbuf_mtod(m, void *), m->data_len);
	mss_clamp(m, 8, limit);
	assert_memory_equal(before, rte_pktmbuf_mtod(m, void *), m->data_len);
	rte_pktmbuf_free(m);
}

static void clamped(void **state)
{
	assert_clamped(SYN "020405b4", 1400, 22, 1400);
	assert_clamped(SYN "020405b4", 1460, 22, 1460);
	assert_clamped(SYN "020405b4", 9000, 22, 1460);
	assert_clamped(SYN "0204ffff", 536, 22, 536);
	assert_clamped(SYN28 "01010204 05b40000", 1400, 24, 1400);
	assert_clamped(SYN28 "01020405 b4000000", 1400, 23, 1400); // at an odd offset
	assert_clamped(SYN28 "04020204 05b40000", 1400, 24, 1400);
	assert_clamped("03e807d0 00000001 00000000 6012ffff 0000 0000 020405b4", 1400, 22, 1400); // SYN and ACK
}

static void every_value(void **state)
{
	char even[128], odd[128];
	unsigned mss;

	for (mss = 1; mss < 65536; mss += 37) {
		snprintf(even, sizeof(even), "%s0204%04x", SYN, mss);
		assert_clamped(even, 1234, 22, (uint16_t)RTE_MIN(mss, 1234u));
		snprintf(odd, sizeof(odd), "%s010204%04x000000", SYN28, mss);
		assert_clamped(odd, 1234, 23, (uint16_t)RTE_MIN(mss, 1234u));
	}
}

static void left_alone(void **state)
{
	assert_untouched("03e807d0 00000001 00000000 6010ffff 0000 0000 020405b4", 1400); // no SYN
	assert_untouched(SYN "01010101", 1400);
	// after the end of the options
	assert_untouched(SYN "00020405", 1400);
	assert_untouched(SYN "020305b4", 1400); // wrong length of the MSS option
	assert_untouched(SYN "080005b4", 1400); // an option without length
	assert_untouched(SYN "08ff05b4", 1400); // an option that ends behind the header
	// the value lies behind the header
	assert_untouched(SYN28 "01010101 01020405", 1400);
	assert_untouched("03e807d0 00000001 00000000 5002ffff 0000 0000 020405b4", 1400); // the option lies in the data
	assert_untouched("03e807d0 00000001 00000000 4002ffff 0000 0000 020405b4", 1400); // a header of 16 bytes
	assert_untouched("03e807d0 00000001 00000000 f002ffff 0000 0000 020405b4", 1400); // beyond the packet
	assert_untouched("03e807d0 00000001 00000000 6002ffff 0000", 1400);
	assert_untouched("", 1400);
}

static void limits(void **state)
{
	assert_int_equal(mss_limit(1200, 1500, false), 1200);
	assert_int_equal(mss_limit(MSS_AUTO, 1468, false), 1428);
	assert_int_equal(mss_limit(MSS_AUTO, 1448, true), 1388);
	assert_int_equal(mss_limit(MSS_AUTO, UINT16_MAX, false), UINT16_MAX); // the path is not known
	assert_int_equal(mss_limit(MSS_AUTO, 40, false), UINT16_MAX);
}

static struct rte_mbuf *syn(const char *src, const char *dst, uint16_t frag)
{
	static const uint8_t header[] = {0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 1, 0, 0, 0,    0,
					 0x60, 2,    0xff, 0xff, 0, 0, 0, 0, 2, 4, 0x05, 0xb4};
	struct rte_mbuf *m = router_packet(
		RED, &(struct packet){
			     .src = src, .dst = dst, .proto = IPPROTO_TCP, .payload = sizeof(header), .frag = frag});

	memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len - sizeof(header)), header, sizeof(header));
	m->port = RED0;
	meta(m)->flags = port_fwds[RED0]->mss ? META_CLAMP : 0; // as port_rx leaves it
	return m;
}

static unsigned mss_after(const char *node, struct rte_mbuf *m)
{
	const uint8_t *end = rte_pktmbuf_mtod_offset(m, const uint8_t *, m->data_len);
	unsigned mss;

	assert_non_null(node_test_one(node, m));
	mss = (unsigned)(end[-2] << 8 | end[-1]);
	rte_pktmbuf_free(m);
	return mss;
}

static void set_mss(uint16_t port, uint32_t mss)
{
	struct port_config c = router_config(port);

	routed_config_edit(&c)->mss_clamp = mss;
	router_set(port, &c);
}

// As after the route lookup: the smaller value of the two ports.
static void by_port(void **state)
{
	assert_int_equal(mss_after("ip4_forward", syn("10.0.0.2", "10.0.0.3", 0)), 1460);
	set_mss(RED0, 1300);
	assert_int_equal(mss_after("ip4_forward", syn("10.0.0.2", "10.0.0.3", 0)), 1300);
	assert_int_equal(mss_after("ip6_forward", syn("fd00::2", "fd00::3", 0)), 1300);
	assert_int_equal(mss_after("ip4_forward", syn("10.0.0.2", "10.0.0.3", 8)), 1460); // it contains no TCP header
	set_mss(RED1, 1200);
	assert_int_equal(mss_after("ip4_forward", syn("10.0.0.2", "10.0.0.3", 0)), 1200);
	set_mss(RED1, 0);
	set_mss(RED0, MSS_AUTO);
	router_tunnel(FREE_ID, "vxlan", "2001:db8:f::9", 100);
	router_route("red", "172.16.0.0/12", FREE_ID);
	assert_int_equal(mss_after("ip4_forward", syn("10.0.0.2", "172.16.0.1", 0)), 1500 - 70 - 40);
	router_unroute("red", "172.16.0.0/12");
	set_mss(RED0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(clamped), cmocka_unit_test(every_value),
					   cmocka_unit_test(left_alone), cmocka_unit_test(limits),
					   cmocka_unit_test(by_port)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
