// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "base/event.h"
#include "l3/path_mtu.h"
#include "testing/router_fixture.h"
#include "worker/punt.h"

#define HEADERS4 (20 + 8 + 4) // IPv4, UDP, label
#define HEADERS6 (40 + 8 + 4)

struct said { // zeroes: what a hop says about a packet of the tunnel
	bool v6;
	const char *source, *destination;
	uint8_t proto;
	uint16_t port, short_by, length; // length: total length of the quoted packet
	uint32_t mtu;
};

static uint64_t clock_now = 1000;

static uint64_t still(void)
{
	return clock_now;
}

static int setup(void **state)
{
	if (router_setup(state) < 0)
		return -1;
	path_mtu_clock = still;
	router_tunnel(FREE_ID, "mplsoudp", "203.0.113.9", 100);
	router_tunnel(FREE_ID + 1, "mplsoudp", "2001:db8:f::9", 100);
	return 0;
}

static void be(uint8_t *p, uint32_t value, unsigned n)
{
	while (n-- > 0) {
		p[n] = (uint8_t)value;
		value >>= 8;
	}
}

static void write_quote(uint8_t *q, const struct said *s)
{
	struct ip_addr src = router_addr(s->source ? s->source
					 : s->v6   ? "2001:db8::1"
						   : "192.0.2.1"),
		       dst = router_addr(s->destination ? s->destination
					 : s->v6        ? "2001:db8:f::9"
							: "203.0.113.9");
	unsigned at = s->v6 ? 8 : 12, n = s->v6 ? 16 : 4;

	q[0] = s->v6 ? 0x60 : 0x45;
	q[s->v6 ? 6 : 9] = s->proto ? s->proto : IPPROTO_UDP;
	be(q + 2, s->v6 ? 0 : s->length, 2);
	memcpy(q + at, src.bytes, n);
	memcpy(q + at + n, dst.bytes, n);
	be(q + (s->v6 ? 40 : 20) + 2, s->port ? s->port : 6635, 2);
}

static struct rte_mbuf *message(const struct said *s)
{
	const struct packet p = {.src = s->v6 ? "2001:db8::fe" : "192.0.2.254",
				 .dst = s->v6 ? "2001:db8::1" : "192.0.2.1",
				 .proto = s->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
				 .payload = 8 + (s->v6 ? 40 : 20) + 8u - s->short_by};
	struct rte_mbuf *m = router_packet(VRF_FABRIC, &p);
	unsigned l4 = s->v6 ? 40 : 20, len = p.payload;
	uint8_t bytes[64] = {0}, *icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, l4);

	bytes[0] = s->v6 ? 2 : 3;
	bytes[1] = s->v6 ? 0 : 4;
	be(bytes + (s->v6 ? 4 : 6), s->mtu, s->v6 ? 4 : 2);
	write_quote(bytes + 8, s);
	memcpy(icmp, bytes, len);
	be(icmp + 2, (uint16_t)~router_sum(icmp, len, s->v6 ? router_sum(icmp - 32, 32, len + IPPROTO_ICMPV6) : 0), 2);
	m->port = FABRIC0;
	return m;
}

static void say(const struct said *s)
{
	struct rte_mbuf *m = message(s);

	clock_now += rte_get_tsc_hz();
	assert_string_equal(node_test_one("ip_local", m), "punt");
	node_test_run("punt", &m, 1);
	punt_poll();
	router_poll();
}

static void refused(const struct said *s)
{
	struct rte_mbuf *m = message(s);

	assert_string_equal(node_test_one("ip_local", m), "drop");
	assert_string_equal(node_test_reason(m), "path_mtu_forged");
	rte_pktmbuf_free(m);
}

static unsigned mtu(uint32_t nexthop)
{
	router_poll();
	return nexthop_table[nexthop]->mtu;
}

static void wait_seconds(unsigned n)
{
	clock_now += n * rte_get_tsc_hz();
	router_poll();
}

static void learned_and_forgotten(void **state)
{
	const struct ip_addr remote = router_addr("203.0.113.9");
	const struct event_record *e;

	assert_int_equal(mtu(FREE_ID), 1500 - HEADERS4);
	say(&(struct said){.mtu = 1400});
	assert_int_equal(mtu(FREE_ID), 1400 - HEADERS4);
	assert_int_equal(mtu(FREE_ID + 1), 1500 - HEADERS6);
	assert_int_equal(path_mtu_of(&remote)->mtu, 1400);
	e = event_after(event_last() - 1);
	assert_string_equal(e->kind->name, "path_mtu_learned");
	assert_string_equal(e->subject, "203.0.113.9");
	assert_non_null(strstr(e->text, "192.0.2.254 passes on packets of up to 1400 bytes"));
	say(&(struct said){.mtu = 1450}); // larger: about a packet of before
	assert_int_equal(mtu(FREE_ID), 1400 - HEADERS4);
	say(&(struct said){.mtu = 1300});
	say(&(struct said){.v6 = true, .mtu = 1280});
	assert_int_equal(mtu(FREE_ID), 1300 - HEADERS4);
	assert_int_equal(mtu(FREE_ID + 1), 1280 - HEADERS6);
	wait_seconds(PATH_MTU_SECONDS - 10);
	assert_int_equal(mtu(FREE_ID), 1300 - HEADERS4);
	wait_seconds(20);
	assert_int_equal(mtu(FREE_ID), 1500 - HEADERS4);
	assert_int_equal(mtu(FREE_ID + 1), 1500 - HEADERS6);
	assert_null(path_mtu_of(&remote));
}

// RFC 1191, section 5: a hop that does not say its MTU.
static void hop_without_mtu(void **state)
{
	say(&(struct said){.length = 1500});
	assert_int_equal(mtu(FREE_ID), 1492 - HEADERS4);
	say(&(struct said){.length = 1492});
	assert_int_equal(mtu(FREE_ID), 1006 - HEADERS4);
	refused(&(struct said){.length = 1006}); // the next one is below 576
	refused(&(struct said){.length = 20});
	refused(&(struct said){.v6 = true, .mtu = 0}); // RFC 8201 knows none
	wait_seconds(PATH_MTU_SECONDS + 10);
}

static void messages_out_of_bounds(void **state)
{
	refused(&(struct said){.mtu = PATH_MTU_MIN4 - 1});
	refused(&(struct said){.mtu = 0});
	refused(&(struct said){.v6 = true, .mtu = PATH_MTU_MIN6 - 1});
	refused(&(struct said){.v6 = true, .mtu = UINT32_MAX});
	refused(&(struct said){.mtu = 1400, .source = "192.0.2.7"}); // not the router's packet
	refused(&(struct said){.v6 = true, .mtu = 1400, .source = "2001:db8::7"});
	refused(&(struct said){.mtu = 1400, .short_by = 1});
	refused(&(struct said){.v6 = true, .mtu = 1400, .short_by = 1});
}

static void no_such_tunnel(void **state)
{
	static const struct said wrong[] = {
		{.mtu = 1400, .destination = "203.0.113.10"},
		{.mtu = 1400, .proto = IPPROTO_GRE},
		{.mtu = 1400, .proto = IPPROTO_TCP},
		{.mtu = 1400, .port = 4789},
		{.v6 = true, .mtu = 1400, .destination = "2001:db8:f::10"},
	};
	uint64_t before = router_drops(FABRIC0, "path_mtu_no_tunnel");
	unsigned i;

	for (i = 0; i < RTE_DIM(wrong); i++)
		say(&wrong[i]);
	assert_int_equal(router_drops(FABRIC0, "path_mtu_no_tunnel"), before + RTE_DIM(wrong));
	assert_int_equal(mtu(FREE_ID), 1500 - HEADERS4);
	assert_int_equal(mtu(FREE_ID + 1), 1500 - HEADERS6);
}

// Only the underlay's messages count, and only some of them.
static void guests_and_floods(void **state)
{
	struct rte_mbuf *m = message(&(struct said){.mtu = 1400});
	unsigned i, punted = 0;

	meta(m)->vrf = RED;
	assert_string_equal(node_test_one("ip_local", m), "drop");
	assert_string_equal(node_test_reason(m), "local_icmp_ignored");
	rte_pktmbuf_free(m);
	for (i = 0; i < 200; i++) {
		m = message(&(struct said){.mtu = 1400});
		if (strcmp(node_test_one("ip_local", m), "punt") == 0)
			punted++;
		else
			assert_string_equal(node_test_reason(m), "path_mtu_rate");
		rte_pktmbuf_free(m);
	}
	assert_in_range(punted, 1, 2 * PATH_MTU_RATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(learned_and_forgotten), cmocka_unit_test(hop_without_mtu),
					   cmocka_unit_test(messages_out_of_bounds), cmocka_unit_test(no_such_tunnel),
					   cmocka_unit_test(guests_and_floods)};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
