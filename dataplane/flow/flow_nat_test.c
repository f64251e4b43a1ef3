// SPDX-License-Identifier: Apache-2.0
// Source ports of translation: a flow gets one as long as one is free towards its destination, whatever the protocol,
// the load of the pool and the order of the guest's ports or identifiers.
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/flow.h"
#include "flow/quota.h"
#include "policy/nat.h"
#include "testing/router_fixture.h"

#define RULE 1
#define CAPACITY 131072
#define LARGEST 64512u // ports of a rule without a range

static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
static struct error err;
static uint64_t seed;

static uint32_t any(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct pool {
	bool v6;
	uint8_t proto;
	uint16_t first;
	uint32_t n;
};

static void pool_add(const struct pool *p)
{
	struct nat_config c = {.id = RULE, .vrf = RED, .external = RED, .kind = NAT_SOURCE};

	assert_int_equal(ip_parse_prefix(p->v6 ? "fd00::/64" : "10.0.0.0/24", "test", &c.inside, &err), 0);
	c.outside = c.last = router_addr(p->v6 ? "2001:db8:9::9" : "198.51.100.9");
	c.first_port = p->first;
	c.last_port = (uint16_t)(p->first + p->n - 1);
	if (nat_add(&c, &err) < 0)
		fail_msg("%s", err.message);
	flow_changes_take_effect();
}

// The guest's packet number `id`, to a port or identifier of its own.
static struct rte_mbuf *pool_packet(const struct pool *p, uint16_t id)
{
	struct packet packet = {.src = p->v6 ? "fd00::2" : "10.0.0.2",
				.dst = p->v6 ? "fd00::3" : "10.0.0.3",
				.proto = p->proto == IPPROTO_ICMP && p->v6 ? IPPROTO_ICMPV6 : p->proto};
	struct rte_mbuf *m = router_packet(RED, &packet);
	uint8_t *l4 = rte_pktmbuf_mtod_offset(m, uint8_t *, p->v6 ? 40 : 20);
	const uint8_t bytes[] = {(uint8_t)(id >> 8), (uint8_t)id, 0, 80};

	if (p->proto == IPPROTO_ICMP) {
		memcpy(l4, p->v6 ? "\x80" : "\x08", 1);
		l4[1] = 0;
		memcpy(l4 + 4, bytes, 2);
	} else {
		memcpy(l4, bytes, 4);
	}
	if (p->proto == IPPROTO_TCP)
		l4[13] = 2; // SYN
	m->port = RED0;
	return m;
}

// NULL: the packet left; else the drop reason.
static const char *pool_send(const struct pool *p, uint16_t id)
{
	struct rte_mbuf *m = pool_packet(p, id);
	bool dropped = strcmp(node_test_one(p->v6 ? "flow6_create" : "flow4_create", m), "drop") == 0;
	const char *why = dropped ? node_test_reason(m) : NULL;

	rte_pktmbuf_free(m);
	return why;
}

static void age(void)
{
	static uint64_t tsc;

	tsc = RTE_MAX(tsc, (uint64_t)rte_rdtsc()) + flow_tsc_hz;
	flow_poll();
	flow_age(0, tsc);
}

// Ends a share of the live flows. Returns how many.
static uint32_t pool_end(unsigned percent)
{
	uint32_t i, n = 0;

	for (i = 1; i < flow_used_range(); i++) {
		if (flows[i].state != FLOW_LIVE || any(100) >= percent)
			continue;
		flow_end(&flows[i]);
		n++;
	}
	return n;
}

static void pool_forget(void)
{
	unsigned i;

	pool_end(100);
	for (i = 0; i < 1000 && flow_count() > 0; i++)
		age();
	assert_int_equal(flow_count(), 0);
	if (nat_get(RULE))
		assert_int_equal(nat_del(RULE, &err), 0);
}

static void check_ports(const struct pool *p, uint32_t live)
{
	static uint8_t seen[UINT16_MAX + 1];
	uint32_t i, n = 0;

	memset(seen, 0, sizeof(seen));
	for (i = 1; i < flow_used_range(); i++) {
		uint16_t port = rte_be_to_cpu_16(flows[i].dir[1].key.dst_port);

		if (flows[i].state != FLOW_LIVE)
			continue;
		n++;
		assert_in_range(port, p->first, p->first + p->n - 1);
		assert_int_equal(seen[port]++, 0);
	}
	assert_int_equal(n, live);
}

// Identifiers in a row, from anywhere; or any ones.
struct ids {
	bool spread;
	uint32_t next;
	uint8_t used[UINT16_MAX + 1];
};

static uint16_t ids_next(struct ids *ids)
{
	do
		ids->next = ids->spread ? any(UINT16_MAX + 1) : (ids->next + 1) & UINT16_MAX;
	while (ids->used[ids->next]);
	ids->used[ids->next] = 1;
	return (uint16_t)ids->next;
}

// Sends n packets of new flows, of which as many leave as ports are free.
static uint32_t pool_fill(const struct pool *p, struct ids *ids, uint32_t n, uint32_t live)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const char *why = pool_send(p, ids_next(ids));

		if (live == p->n)
			assert_string_equal(why ? why : "it left", "flow_nat_exhausted");
		else if (why)
			fail_msg("%u of %u ports are in use: %s", live, p->n, why);
		live += live < p->n;
	}
	return live;
}

static void random_pool(void)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 64, 65, 256, 257, 1000, 5000};
	static struct ids ids;
	struct pool p = {.v6 = any(2), .proto = protocols[any(RTE_DIM(protocols))]};
	uint32_t live = 0;
	unsigned round;

	memset(&ids, 0, sizeof(ids));
	p.n = 1 + any(sizes[any(RTE_DIM(sizes))]);
	p.first = (uint16_t)(1 + any(UINT16_MAX - p.n));
	pool_add(&p);
	for (round = 0; round < 4; round++) {
		ids.spread = any(2);
		ids.next = any(UINT16_MAX);
		live = pool_fill(&p, &ids, p.n * (1 + any(120)) / 100 + 2, live);
		check_ports(&p, live);
		live -= pool_end(any(4) ? any(10) : 100);
		age();
	}
	pool_forget();
}

// CORELANE_NAT_SEED=N runs number N alone.
static void random_pools(void **state)
{
	const char *only = getenv("CORELANE_NAT_SEED");
	unsigned i, first = only ? (unsigned)atoi(only) : 1, end = only ? first : 200;

	for (i = first; i <= end; i++) {
		seed = i;
		print_message("# seed %u\n", i);
		random_pool();
	}
}

// All but one port of the largest pool are in use: the packet finds it. With all of them in use, a packet is refused,
// and passes as soon as a flow has ended, in the same second.
static void the_largest_pool(void **state)
{
	static struct ids ids;
	uint32_t victim;
	unsigned i, k;

	for (i = 0; i < RTE_DIM(protocols); i++) {
		struct pool p = {.proto = protocols[i], .first = 1024, .n = LARGEST, .v6 = i % 2};

		memset(&ids, 0, sizeof(ids));
		ids.spread = i % 2;
		seed = i + 1;
		pool_add(&p);
		assert_int_equal(pool_fill(&p, &ids, LARGEST, 0), LARGEST);
		for (k = 0; k < 100; k++) {
			uint16_t id = ids_next(&ids);

			assert_string_equal(pool_send(&p, id), "flow_nat_exhausted");
			do
				victim = 1 + any(flow_used_range() - 1);
			while (flows[victim].state != FLOW_LIVE);
			flow_end(&flows[victim]);
			assert_null(pool_send(&p, id));
			age();
		}
		check_ports(&p, LARGEST);
		pool_forget();
	}
}

static void be(uint8_t *p, uint32_t value, unsigned n)
{
	while (n-- > 0) {
		p[n] = (uint8_t)value;
		value >>= 8;
	}
}

static const struct flow *only(void)
{
	uint32_t i = 1;

	while (flows[i].state != FLOW_LIVE)
		i++;
	return &flows[i];
}

// A hop's ICMP error "too big" about the only flow's packet of this length, as it left.
static struct rte_mbuf *too_big(const struct pool *p, uint16_t length, uint32_t mtu)
{
	struct packet packet = {.src = p->v6 ? "2001:db8:1::fe" : "198.51.100.254",
				.dst = p->v6 ? "2001:db8:9::9" : "198.51.100.9",
				.proto = p->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
				.payload = 8 + (p->v6 ? 40 : 20) + 8};
	struct rte_mbuf *m = router_packet(RED, &packet);
	unsigned hlen = p->v6 ? 40 : 20, n = p->v6 ? 16 : 4, at = p->v6 ? 8 : 12;
	uint8_t *icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, hlen), *quote = icmp + 8;
	struct flow_key sent = flow_key_reverse(&only()->dir[1].key);

	memset(icmp, 0, packet.payload);
	icmp[0] = p->v6 ? 2 : 3;
	icmp[1] = p->v6 ? 0 : 4;
	be(icmp + (p->v6 ? 4 : 6), mtu, p->v6 ? 4 : 2);
	quote[0] = p->v6 ? 0x60 : 0x45;
	be(quote + (p->v6 ? 4 : 2), p->v6 ? length - 40u : length, 2);
	quote[p->v6 ? 6 : 9] = IPPROTO_UDP;
	memcpy(quote + at, p->v6 ? sent.src6 : (const uint8_t *)&sent.src4, n);
	memcpy(quote + at + n, p->v6 ? sent.dst6 : (const uint8_t *)&sent.dst4, n);
	memcpy(quote + hlen, &sent.src_port, 2);
	memcpy(quote + hlen + 2, &sent.dst_port, 2);
	be(icmp + 2,
	   (uint16_t)~router_sum(icmp, packet.payload,
				 p->v6 ? router_sum(icmp - 32, 32, packet.payload + IPPROTO_ICMPV6) : 0),
	   2);
	m->port = RED1;
	return m;
}

// want: the MTU that the guest is told, 0: none.
static void assert_told(const struct pool *p, uint16_t length, uint32_t mtu, uint32_t want)
{
	struct rte_mbuf *m = too_big(p, length, mtu);
	const uint8_t *at = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->v6 ? 44 : 24);
	const char *edge = node_test_one(p->v6 ? "flow6_create" : "flow4_create", m);

	if (want == 0) {
		assert_string_equal(edge, "drop");
		assert_string_equal(node_test_reason(m), "flow_icmp_error_mtu");
	} else {
		assert_string_equal(edge, "port_output");
		assert_int_equal(rte_be_to_cpu_32(*(const unaligned_uint32_t *)at), want);
		assert_true(router_l4_ok(m, 0));
	}
	rte_pktmbuf_free(m);
}

// What a hop cannot mean does not reach the guest, and what it does not say is said for it.
static void mtu_of_a_hop(void **state)
{
	static const uint16_t impossible4[] = {1, 67, 1500, 1501, 65535};
	static const uint32_t impossible6[] = {0, 1, 1279, 1500, 65535, 65536, UINT32_MAX};
	struct pool p = {.proto = IPPROTO_UDP, .first = 5000, .n = 1};
	unsigned i;

	pool_add(&p);
	assert_null(pool_send(&p, 7));
	for (i = 0; i < RTE_DIM(impossible4); i++)
		assert_told(&p, 1500, impossible4[i], 0);
	assert_told(&p, 1500, 1499, 1499);
	assert_told(&p, 1500, 68, 68);
	assert_told(&p, 1500, 0, 1492);
	assert_told(&p, 1492, 0, 1006);
	assert_told(&p, 69, 0, 68);
	assert_told(&p, 68, 0, 0);
	assert_told(&p, 28, 0, 0);
	pool_forget();
	p.v6 = true;
	pool_add(&p);
	assert_null(pool_send(&p, 7));
	for (i = 0; i < RTE_DIM(impossible6); i++)
		assert_told(&p, 1500, impossible6[i], 0);
	assert_told(&p, 1500, 1280, 1280);
	assert_told(&p, 1500, 1499, 1499);
	pool_forget();
}

static int setup(void **state)
{
	unsigned i;

	if (router_setup(state) < 0 || flow_set_capacity(CAPACITY, &err) < 0 || flow_start(&err) < 0)
		return -1;
	for (i = 0; i < 100000 && flow_grow_step(1024); i++)
		rcu_poll();
	return flow_growing() ? -1 : 0;
}

static int teardown(void **state)
{
	return router_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_pools),
		cmocka_unit_test(the_largest_pool),
		cmocka_unit_test(mtu_of_a_hop),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
