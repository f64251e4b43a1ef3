// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "l3/icmp.h"
#include "l3/underlay.h"
#include "testing/router_fixture.h"

static const struct packet v4 = {.src = "10.0.0.2", .dst = "10.0.0.1", .ttl = 7, .proto = IPPROTO_ICMP, .id = 9},
			   v6 = {.src = "fd00::2", .dst = "fd00::1", .ttl = 7, .proto = IPPROTO_ICMPV6};

static uint8_t *icmp_of(struct rte_mbuf *m, bool is6)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, meta(m)->l3 + (is6 ? 40 : 20));
}

static void set_checksum(struct rte_mbuf *m, bool is6)
{
	uint8_t *icmp = icmp_of(m, is6);
	unsigned len = m->data_len - meta(m)->l3 - (is6 ? 40u : 20u);
	uint16_t sum;

	icmp[2] = icmp[3] = 0;
	sum = (uint16_t)~router_sum(icmp, len, is6 ? router_sum(icmp - 32, 32, len + IPPROTO_ICMPV6) : 0);
	icmp[2] = (uint8_t)(sum >> 8);
	icmp[3] = (uint8_t)sum;
}

// An ICMP message as it comes from a guest.
static struct rte_mbuf *icmp(const struct packet *p, uint8_t type, unsigned payload)
{
	bool is6 = strchr(p->src, ':') != NULL;
	struct packet q = *p;
	struct rte_mbuf *m;

	q.payload = payload;
	m = router_frame(RED0, GATEWAY, "02:00:00:00:00:03", &q);
	meta(m)->l3 = 14;
	meta(m)->vrf = RED;
	icmp_of(m, is6)[0] = type;
	icmp_of(m, is6)[1] = 0;
	if (payload >= 4)
		set_checksum(m, is6);
	return m;
}

static void assert_dropped(struct rte_mbuf *m, const char *reason)
{
	assert_string_equal(node_test_one("ip_local", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void assert_told(struct rte_mbuf *m, enum icmp_what what, uint16_t mtu)
{
	assert_string_equal(node_test_one("ip_local", m), "icmp_error");
	assert_string_equal(node_test_reason(m), "local_no_service");
	assert_int_equal(meta(m)->arg, (uint32_t)what << 16 | mtu);
	rte_pktmbuf_free(m);
}

static void echo(void **state)
{
	struct rte_mbuf *m = icmp(&v4, 8, 12);

	assert_string_equal(node_test_one("ip_local", m), "ip4_forward");
	assert_bytes(m, "45000020 0009 0000 4001 66d2 0a000001 0a000002 0000 .... 04050607 08090a0b");
	assert_true(router_l4_ok(m, 0));
	assert_int_equal(meta(m)->flags, META_ANSWER);
	assert_int_equal(meta(m)->vrf, RED);
	rte_pktmbuf_free(m);
	m = icmp(&v6, 128, 12);
	assert_string_equal(node_test_one("ip_local", m), "ip6_forward");
	assert_bytes(m, "60000000 000c 3a 40 fd000000000000000000000000000001 fd000000000000000000000000000002 8100 "
			".... 04050607 "
			"08090a0b");
	assert_true(router_l4_ok(m, 0));
	rte_pktmbuf_free(m);
}

// The checksum follows the change of the type, for any sum.
static void echo_checksums(void **state)
{
	struct rte_mbuf *m;
	unsigned i, is6;

	for (i = 0; i < 65536; i += 11) {
		for (is6 = 0; is6 < 2; is6++) {
			m = icmp(is6 ? &v6 : &v4, is6 ? 128 : 8, 8);
			icmp_of(m, is6)[4] = (uint8_t)(i >> 8);
			icmp_of(m, is6)[5] = (uint8_t)i;
			set_checksum(m, is6);
			node_test_one("ip_local", m);
			assert_true(router_l4_ok(m, 0));
			rte_pktmbuf_free(m);
		}
	}
}

static void echo_odd_and_long(void **state)
{
	static const unsigned sizes[] = {8, 9, 57, 1472, 1473};
	struct rte_mbuf *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		m = icmp(&v4, 8, sizes[i]);
		assert_string_equal(node_test_one("ip_local", m), "ip4_forward");
		assert_true(router_l4_ok(m, 0));
		rte_pktmbuf_free(m);
	}
}

static void echo_off(void **state)
{
	struct port_config old = router_config(RED0), c = old;

	routed_config_edit(&c)->no_gateway_echo = true;
	router_set(RED0, &c);
	assert_dropped(icmp(&v4, 8, 12), "local_echo_off");
	assert_dropped(icmp(&v6, 128, 12), "local_echo_off");
	router_set(RED0, &old);
}

static struct rte_mbuf *unreachable(const struct packet *p, uint8_t type, uint8_t code, uint16_t vrf)
{
	struct rte_mbuf *m = icmp(p, type, 12);
	bool is6 = strchr(p->src, ':') != NULL;

	icmp_of(m, is6)[1] = code;
	set_checksum(m, is6);
	meta(m)->vrf = vrf;
	return m;
}

// A host of the underlay that does not speak a tunnel's encapsulation says so. Guests can say anything.
static void port_unreachable(void **state)
{
	assert_dropped(unreachable(&v4, 3, 3, VRF_FABRIC), "local_port_unreachable");
	assert_dropped(unreachable(&v6, 1, 4, VRF_FABRIC), "local_port_unreachable");
	assert_dropped(unreachable(&v4, 3, 1, VRF_FABRIC), "local_icmp_ignored");
	assert_dropped(unreachable(&v6, 1, 3, VRF_FABRIC), "local_icmp_ignored");
	assert_dropped(unreachable(&v4, 11, 3, VRF_FABRIC), "local_icmp_ignored");
	assert_dropped(unreachable(&v6, 3, 4, VRF_FABRIC), "local_icmp_ignored");
	assert_dropped(unreachable(&v4, 3, 3, RED), "local_icmp_ignored");
	assert_dropped(unreachable(&v6, 1, 4, RED), "local_icmp_ignored");
}

static void not_served(void **state)
{
	struct packet p = v4;

	assert_dropped(icmp(&v4, 0, 12), "local_icmp_ignored");
	assert_dropped(icmp(&v4, 3, 12), "local_icmp_ignored");
	assert_dropped(icmp(&v6, 129, 12), "local_icmp_ignored");
	assert_dropped(icmp(&v6, 1, 12), "local_icmp_ignored");
	p.proto = IPPROTO_UDP;
	assert_told(router_packet(RED, &p), ICMP_WHAT_PORT, 0);
	p.proto = IPPROTO_TCP;
	assert_told(router_packet(RED, &p), ICMP_WHAT_PORT, 0);
	p.proto = IPPROTO_GRE;
	assert_told(router_packet(RED, &p), ICMP_WHAT_PROTOCOL, 0);
	p = v6;
	p.proto = IPPROTO_UDP;
	assert_told(router_packet(RED, &p), ICMP_WHAT_PORT, 0);
	p.proto = 253;
	assert_told(router_packet(RED, &p), ICMP_WHAT_PROTOCOL, 6); // points at the next header field
}

static void malformed(void **state)
{
	struct rte_mbuf *m;
	struct packet p = v4;
	unsigned n;

	for (n = 1; n < 8; n++) {
		assert_dropped(icmp(&v4, 8, n), "local_truncated");
		assert_dropped(icmp(&v6, 128, n), "local_truncated");
	}
	m = icmp(&v4, 8, 12);
	icmp_of(m, false)[2] ^= 1;
	assert_dropped(m, "local_icmp_checksum");
	m = icmp(&v6, 128, 12);
	icmp_of(m, true)[9] ^= 1;
	assert_dropped(m, "local_icmp_checksum");
	p.frag = 0x2000;
	assert_dropped(icmp(&p, 8, 16), "local_fragment");
	p.frag = 3;
	assert_dropped(icmp(&p, 8, 16), "local_fragment");
	p = v6;
	p.proto = IPPROTO_FRAGMENT;
	assert_dropped(router_packet(RED, &p), "local_fragment");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(echo),      cmocka_unit_test(echo_checksums),   cmocka_unit_test(echo_odd_and_long),
		cmocka_unit_test(echo_off),  cmocka_unit_test(port_unreachable), cmocka_unit_test(not_served),
		cmocka_unit_test(malformed),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
