// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/nat.h"
#include "testing/router_fixture.h"

#define WAN 7 // a VRF of these tests

static struct error err;
static uint16_t told[64];
static unsigned n_told;

static void note(uint16_t vrf)
{
	told[n_told++ % 64] = vrf;
}

static void forget(void)
{
	uint32_t id;

	while ((id = nat_next(0)))
		assert_int_equal(nat_del(id, &err), 0);
	n_told = 0;
}

static struct nat_listener listener;

static int setup(void **state)
{
	if (router_setup(state) < 0 || vrf_add("wan", WAN, &err) == NULL)
		return -1;
	listener.changed = note;
	nat_listen(&listener);
	return 0;
}

static int teardown(void **state)
{
	forget();
	listener.changed = NULL;
	if (vrf_del("wan", &err) < 0)
		return -1;
	return router_teardown(state);
}

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_parse_prefix(text, "test", &p, &err), 0);
	return p;
}

static struct nat_config floating(uint32_t id, uint16_t vrf, const char *inside, uint16_t external, const char *outside)
{
	struct nat_config c = {
		.id = id, .vrf = vrf, .external = external, .kind = NAT_FLOATING, .outside = router_addr(outside)};

	c.inside = ip_prefix_of(&(struct ip_addr){0}, 0);
	c.inside.addr = router_addr(inside);
	c.inside.len = (uint8_t)ip_bits(c.inside.addr.family);
	return c;
}

static struct nat_config source(uint32_t id, uint16_t vrf, const char *inside, uint16_t external, const char *first,
				const char *last)
{
	struct nat_config c = {
		.id = id, .vrf = vrf, .external = external, .kind = NAT_SOURCE, .inside = prefix(inside)};

	c.outside = router_addr(first);
	c.last = router_addr(last);
	return c;
}

static struct nat_config service(uint32_t id, uint16_t external, const char *addr, uint16_t port,
				 const struct nat_backend *b, unsigned n)
{
	return (struct nat_config){.id = id,
				   .vrf = RED,
				   .external = external,
				   .kind = NAT_DESTINATION,
				   .outside = router_addr(addr),
				   .first_port = port,
				   .protocol = IPPROTO_TCP,
				   .backends = b,
				   .n_backends = n};
}

static void add(struct nat_config c)
{
	if (nat_add(&c, &err) < 0)
		fail_msg("%s", err.message);
}

static void refused(struct nat_config c, int code, const char *field)
{
	unsigned n = nat_count(), t = n_told;

	assert_int_equal(nat_add(&c, &err), -code);
	assert_string_equal(err.field, field);
	assert_int_equal(nat_count(), n);
	assert_int_equal(n_told, t);
}

static struct flow_key key(uint16_t zone, uint8_t proto, const char *src, uint16_t sport, const char *dst,
			   uint16_t dport)
{
	struct ip_addr s = router_addr(src), d = router_addr(dst);
	struct flow_key k = {.zone = zone, .proto = proto, .family = s.family};

	k.src_port = rte_cpu_to_be_16(sport);
	k.dst_port = rte_cpu_to_be_16(dport);
	memcpy(s.family == IPV4 ? (uint8_t *)&k.src4 : k.src6, s.bytes, ip_bytes(s.family));
	memcpy(s.family == IPV4 ? (uint8_t *)&k.dst4 : k.dst6, d.bytes, ip_bytes(s.family));
	return k;
}

static struct flow_key ask(const struct flow_key *k, uint32_t hash, struct nat_verdict *v)
{
	struct flow_key out = *k;

	*v = (struct nat_verdict){0};
	nat_destination(&out, v);
	nat_source(k, &out, hash, v);
	return out;
}

static void assert_key(struct flow_key got, struct flow_key want)
{
	assert_memory_equal(&got, &want, sizeof(got));
}

static void assert_asked(struct flow_key k, uint32_t rule, struct flow_key want)
{
	struct nat_verdict v;

	assert_key(ask(&k, 0, &v), want);
	assert_int_equal(v.rule, rule);
}

#define TCP(zone, src, sport, dst, dport) key(zone, IPPROTO_TCP, src, sport, dst, dport)

static void floating_both_ways(void **state)
{
	add(floating(10, RED, "10.0.0.9", RED, "198.51.100.9"));
	add(floating(11, RED, "fd00::9", WAN, "2001:db8:9::9"));
	// Out, and in.
	assert_asked(TCP(RED, "10.0.0.9", 1000, "203.0.113.1", 80), 10,
		     TCP(RED, "198.51.100.9", 1000, "203.0.113.1", 80));
	assert_asked(TCP(RED, "203.0.113.1", 80, "198.51.100.9", 22), 10, TCP(RED, "203.0.113.1", 80, "10.0.0.9", 22));
	// Through another VRF: the zone becomes the zone of that VRF.
	assert_asked(TCP(RED, "fd00::9", 1000, "2001:db8::1", 80), 11,
		     TCP(WAN, "2001:db8:9::9", 1000, "2001:db8::1", 80));
	assert_asked(TCP(WAN, "2001:db8::1", 80, "2001:db8:9::9", 22), 11, TCP(RED, "2001:db8::1", 80, "fd00::9", 22));
	// No other host and no other VRF is translated.
	assert_asked(TCP(RED, "10.0.0.8", 1000, "203.0.113.1", 80), 0, TCP(RED, "10.0.0.8", 1000, "203.0.113.1", 80));
	assert_asked(TCP(BLUE, "10.0.0.9", 1000, "203.0.113.1", 80), 0, TCP(BLUE, "10.0.0.9", 1000, "203.0.113.1", 80));
	assert_asked(TCP(RED, "2001:db8::1", 80, "2001:db8:9::9", 22), 0,
		     TCP(RED, "2001:db8::1", 80, "2001:db8:9::9", 22));
	assert_asked(TCP(FLOW_ZONE_BRIDGE | RED, "10.0.0.9", 1, "203.0.113.1", 8), 0,
		     TCP(FLOW_ZONE_BRIDGE | RED, "10.0.0.9", 1, "203.0.113.1", 8));
	forget();
	assert_asked(TCP(RED, "10.0.0.9", 1000, "203.0.113.1", 80), 0, TCP(RED, "10.0.0.9", 1000, "203.0.113.1", 80));
}

// From one outside address to another, also of another tenant: both addresses change.
static void hairpin(void **state)
{
	struct flow_key k = TCP(RED, "10.0.0.9", 1000, "198.51.100.8", 80);
	struct nat_verdict v;

	add(floating(1, RED, "10.0.0.9", WAN, "198.51.100.9"));
	add(floating(2, BLUE, "10.0.0.8", WAN, "198.51.100.8"));
	assert_key(ask(&k, 0, &v), TCP(BLUE, "198.51.100.9", 1000, "10.0.0.8", 80));
	assert_int_equal(v.rule, 2);
	assert_int_equal(v.also, 1);
	nat_flow_made(&v);
	assert_int_equal(nat_flows(1), 1);
	assert_int_equal(nat_flows(2), 1);
	forget();
	add(floating(1, RED, "10.0.0.9", RED, "198.51.100.9"));
	assert_int_equal(nat_flows(1), 0); // another rule of this id
	add(floating(2, RED, "10.0.0.8", RED, "198.51.100.8"));
	assert_key(ask(&k, 0, &v), TCP(RED, "198.51.100.9", 1000, "10.0.0.8", 80));
	forget();
}

static void exceptions(void **state)
{
	struct ip_prefix except[] = {prefix("10.0.0.0/8"), prefix("172.16.0.0/12")};
	struct nat_config c = source(5, RED, "10.0.0.0/16", WAN, "198.51.100.1", "198.51.100.1");
	struct nat_verdict v;
	struct flow_key k;

	c.except = except;
	c.n_except = 2;
	c.protocol = IPPROTO_TCP;
	c.to_first_port = 80;
	c.to_last_port = 90;
	add(c);
	c = source(6, RED, "10.0.0.0/24", WAN, "198.51.100.2", "198.51.100.2");
	c.to = prefix("203.0.113.0/24");
	add(c);
	assert_asked(TCP(RED, "10.0.0.9", 1, "10.9.0.1", 80), 0, TCP(RED, "10.0.0.9", 1, "10.9.0.1", 80));
	assert_asked(TCP(RED, "10.0.0.9", 1, "172.31.0.1", 80), 0, TCP(RED, "10.0.0.9", 1, "172.31.0.1", 80));
	assert_asked(TCP(RED, "10.0.0.9", 1, "203.0.113.1", 85), 5, TCP(WAN, "198.51.100.1", 1024, "203.0.113.1", 85));
	assert_asked(TCP(RED, "10.0.0.9", 1, "203.0.113.1", 91), 6, TCP(WAN, "198.51.100.2", 1024, "203.0.113.1", 91));
	assert_asked(TCP(RED, "10.0.0.9", 1, "203.0.114.1", 79), 0, TCP(RED, "10.0.0.9", 1, "203.0.114.1", 79));
	assert_asked(TCP(RED, "10.0.1.9", 1, "203.0.113.1", 79), 0, TCP(RED, "10.0.1.9", 1, "203.0.113.1", 79));
	k = key(RED, IPPROTO_UDP, "10.0.0.9", 1, "203.0.113.1", 85);
	assert_key(ask(&k, 0, &v), key(WAN, IPPROTO_UDP, "198.51.100.2", 1024, "203.0.113.1", 85));
	forget();
}

static void pool_ports(void **state)
{
	struct nat_config c = source(5, RED, "fd00::/64", RED, "2001:db8:9::ffff:ffff:ffff:fffe", "2001:db8:9:1::1");
	struct flow_key k, out;
	struct nat_verdict v;

	c.first_port = 2000;
	c.last_port = 2009;
	add(c);
	k = TCP(RED, "fd00::77", 1, "2001:db8::1", 443);
	out = ask(&k, 23, &v);
	assert_int_equal(v.ports, 10);
	assert_int_equal(v.first, 2000);
	assert_int_equal(rte_be_to_cpu_16(out.src_port), 2003);
	assert_true(nat_keeps(&k, &out, &(struct nat_verdict){0}));
	k = key(RED, IPPROTO_ICMPV6, "fd00::77", 99, "2001:db8::1", 99); // echo
	out = ask(&k, 4, &v);
	assert_int_equal(out.src_port, rte_cpu_to_be_16(2004));
	assert_int_equal(out.dst_port, rte_cpu_to_be_16(2004));
	k = key(RED, IPPROTO_ICMPV6, "fd00::77", 0x8500, "2001:db8::1", 0); // no echo
	out = ask(&k, 4, &v);
	assert_int_equal(v.ports, 0);
	assert_int_equal(out.src_port, k.src_port);
	k = key(RED, 132, "fd00::77", 5000, "2001:db8::1", 80);
	out = ask(&k, 4, &v);
	assert_int_equal(v.ports, 0);
	assert_int_equal(v.rule, 5);
	assert_int_equal(out.src_port, k.src_port);
	forget();
}

// A host has one outside address for all of its flows, and hosts are spread over the pool.
static void pool_spread(void **state)
{
	unsigned seen[10] = {0}, i, j, at;
	char host[32];
	struct nat_verdict v;

	add(source(5, RED, "10.0.0.0/8", WAN, "198.51.100.250", "198.51.101.3"));
	for (i = 0; i < 10000; i++) {
		uint32_t first = 0;

		snprintf(host, sizeof(host), "10.9.%u.%u", i >> 8, i & 255);
		for (j = 0; j < 3; j++) {
			struct flow_key k = TCP(RED, host, (uint16_t)(1000 + j), "203.0.113.1", (uint16_t)(80 + j)),
					out = ask(&k, i * j, &v);

			assert_true(j == 0 || out.src4 == first);
			first = out.src4;
			at = rte_be_to_cpu_32(out.src4) - (198u << 24 | 51 << 16 | 100 << 8 | 250);
			assert_in_range(at, 0, 9);
			assert_true(nat_keeps(&k, &out, &(struct nat_verdict){0}));
		}
		seen[at]++;
	}
	for (i = 0; i < 10; i++)
		assert_in_range(seen[i], 850, 1150);
	forget();
}

static void services(void **state)
{
	struct nat_backend b[] = {{router_addr("10.0.0.31"), 8080, 1},
				  {router_addr("10.0.0.32"), 8080, 3},
				  {router_addr("10.0.0.33"), 0, 4}};
	unsigned seen[3] = {0}, moved = 0, i, at;
	uint32_t before[8000];
	struct nat_verdict v;

	add(service(5, WAN, "198.51.100.1", 80, b, 3));
	add(service(6, WAN, "198.51.100.1", 81, b, 1));
	assert_asked(TCP(WAN, "203.0.113.1", 7, "198.51.100.1", 81), 6, TCP(RED, "203.0.113.1", 7, "10.0.0.31", 8080));
	assert_asked(TCP(WAN, "203.0.113.1", 7, "198.51.100.1", 82), 0, TCP(WAN, "203.0.113.1", 7, "198.51.100.1", 82));
	for (i = 0; i < 8000; i++) {
		struct flow_key k = TCP(WAN, "203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80),
				out = ask(&k, i, &v);

		at = (rte_be_to_cpu_32(out.dst4) & 255) - 31;
		assert_in_range(at, 0, 2);
		assert_int_equal(rte_be_to_cpu_16(out.dst_port), at == 2 ? 80 : 8080);
		assert_int_equal(out.zone, RED);
		assert_key(ask(&k, 77, &v), out);
		seen[at]++;
		before[i] = out.dst4;
	}
	assert_in_range(seen[0], 900, 1100);
	assert_in_range(seen[1], 2800, 3200);
	assert_in_range(seen[2], 3800, 4200);
	// Without the second backend only its flows move; flows of the others continue, its own end.
	b[1] = b[2];
	{
		struct nat_config c = service(5, WAN, "198.51.100.1", 80, b, 2);

		assert_int_equal(nat_set(&c, &err), 0);
	}
	for (i = 0; i < 8000; i++) {
		struct flow_key k = TCP(WAN, "203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80),
				out = ask(&k, i, &v), old = out;
		bool gone = (rte_be_to_cpu_32(before[i]) & 255) == 32;

		old.dst4 = before[i];
		old.dst_port = rte_cpu_to_be_16((rte_be_to_cpu_32(before[i]) & 255) == 33 ? 80 : 8080);
		assert_int_equal(nat_keeps(&k, &old, &(struct nat_verdict){0}), !gone);
		moved += !gone && out.dst4 != before[i];
	}
	assert_int_equal(moved, 0);
	forget();
}

// A guest that leaves with a pool's address and connects to a service.
static void order(void **state)
{
	struct nat_backend b = {router_addr("10.0.0.31"), 0, 1};

	add(source(10, RED, "0.0.0.0/0", WAN, "198.51.100.1", "198.51.100.1"));
	add(floating(20, RED, "10.0.0.9", WAN, "198.51.100.9"));
	add(service(30, RED, "10.0.0.100", 80, &b, 1));
	// The lowest id counts, not the longest prefix.
	assert_asked(TCP(RED, "10.0.0.9", 1, "203.0.113.1", 80), 10, TCP(WAN, "198.51.100.1", 1024, "203.0.113.1", 80));
	// A service within: the flow does not leave, so its source stays.
	assert_asked(TCP(RED, "10.0.0.9", 1, "10.0.0.100", 80), 30, TCP(RED, "10.0.0.9", 1, "10.0.0.31", 80));
	assert_int_equal(nat_del(10, &err), 0);
	assert_asked(TCP(RED, "10.0.0.9", 1, "203.0.113.1", 80), 20, TCP(WAN, "198.51.100.9", 1, "203.0.113.1", 80));
	forget();
}

static int never(struct error *e)
{
	return error_set(e, ENOMEM, NULL, NULL, NULL, "no memory");
}

static void changes(void **state)
{
	struct nat_config c = floating(10, RED, "10.0.0.9", WAN, "198.51.100.9");
	uint32_t red = vrf_get(RED)->refs, wan = vrf_get(WAN)->refs;
	struct flow_key k = TCP(RED, "10.0.0.9", 1000, "203.0.113.1", 80), out;
	struct nat_verdict v;

	n_told = 0;
	assert_false(nat_used(WAN));
	listener.begin = never;
	assert_int_equal(nat_add(&c, &err), -ENOMEM);
	listener.begin = NULL;
	add(c);
	assert_true(nat_used(RED) && nat_used(WAN) && !nat_used(BLUE));
	assert_int_equal(n_told, 2);
	assert_int_equal(told[0], RED);
	assert_int_equal(told[1], WAN);
	assert_int_equal(vrf_get(RED)->refs, red + 1);
	assert_int_equal(vrf_del("wan", &err), -EBUSY);
	out = ask(&k, 0, &v);
	assert_true(nat_keeps(&k, &out, &v));
	c = floating(10, RED, "10.0.0.9", BLUE, "198.51.100.9");
	n_told = 0;
	assert_int_equal(nat_set(&c, &err), 0);
	assert_int_equal(n_told, 3);
	assert_int_equal(vrf_get(WAN)->refs, wan);
	assert_false(nat_keeps(&k, &out, &(struct nat_verdict){0}));
	assert_asked(k, 10, TCP(BLUE, "198.51.100.9", 1000, "203.0.113.1", 80));
	assert_asked(TCP(WAN, "203.0.113.1", 80, "198.51.100.9", 22), 0,
		     TCP(WAN, "203.0.113.1", 80, "198.51.100.9", 22));
	assert_int_equal(nat_count(), 1);
	c.id = 11;
	assert_int_equal(nat_set(&c, &err), -ENOENT);
	assert_int_equal(nat_del(11, &err), -ENOENT);
	forget();
	assert_false(nat_used(RED) || nat_used(BLUE));
	assert_int_equal(vrf_get(RED)->refs, red);
}

static void refusals(void **state)
{
	struct nat_backend b = {router_addr("10.0.0.31"), 0, 1}, b6 = {router_addr("fd00::31"), 0, 1};
	struct ip_prefix six = prefix("2001:db8::/32");
	struct nat_config c;

	add(floating(10, RED, "10.0.0.9", RED, "198.51.100.9"));
	add(service(11, RED, "198.51.100.20", 80, &b, 1));
	refused(floating(10, RED, "10.0.0.8", RED, "198.51.100.8"), EEXIST, "rule.id");
	refused(floating(12, VRF_FABRIC, "10.0.0.8", RED, "198.51.100.8"), EINVAL, "rule.vrf");
	refused(floating(12, RED, "10.0.0.8", VRF_FABRIC, "198.51.100.8"), EINVAL, "rule.external_vrf");
	refused(floating(12, RED, "10.0.0.8", RED, "198.51.100.9"), EEXIST, "rule.floating.outside");
	refused(floating(12, RED, "10.0.0.8", RED, "198.51.100.20"), EEXIST, "rule.floating.outside");
	refused(floating(12, RED, "10.0.0.8", RED, "2001:db8::8"), EINVAL, "rule.floating.outside");
	refused(floating(12, RED, "10.0.0.8", RED, "10.0.0.8"), EINVAL, "rule.floating.outside");
	refused(floating(12, RED, "10.0.0.8", RED, "10.0.0.2"), EEXIST, "rule.floating.outside"); // a guest
	refused(floating(12, RED, "fd00::8", RED, "fd00::1"), EEXIST, "rule.floating.outside");   // a gateway
	refused(source(12, RED, "10.0.0.0/8", RED, "198.51.100.5", "198.51.100.9"), EEXIST, "rule.source.first");
	refused(source(12, RED, "10.0.0.0/8", RED, "198.51.100.9", "198.51.100.8"), EINVAL, "rule.source.last");
	refused(source(12, RED, "10.0.0.0/8", RED, "198.51.0.0", "198.52.0.0"), ERANGE, "rule.source.last");
	refused(source(12, RED, "fd00::/8", RED, "2001:db8::", "2001:db9::"), ERANGE, "rule.source.last");
	// The pool contains addresses of guests.
	refused(source(12, RED, "10.0.0.0/8", RED, "9.255.255.255", "10.0.0.5"), EEXIST, "rule.source.first");
	c = source(12, RED, "10.0.0.0/8", RED, "198.51.100.1", "198.51.100.1");
	c.first_port = 2000, c.last_port = 1999;
	refused(c, ERANGE, "rule.source.last_port");
	c.last_port = 0;
	c.to_first_port = 80;
	refused(c, ERANGE, "rule.first_port");
	c.to_first_port = 0;
	c.except = &six;
	c.n_except = 1;
	refused(c, EINVAL, "rule.except");
	refused(service(12, RED, "198.51.100.20", 80, &b, 1), EEXIST, "rule.destination.address");
	refused(service(12, RED, "198.51.100.9", 80, &b, 1), EEXIST, "rule.destination.address");
	refused(service(12, RED, "198.51.100.1", 80, &b6, 1), EINVAL, "rule.destination.backends.address");
	c = service(12, RED, "198.51.100.1", 80, &b, 1);
	c.protocol = 0;
	refused(c, ERANGE, "rule.destination.port");
	c.protocol = 132;
	b.port = 81;
	refused(c, ERANGE, "rule.destination.backends.port");
	add(source(12, RED, "10.0.0.0/8", WAN, "198.51.100.0", "198.51.100.255")); // not in use in the other VRF
	add(source(13, RED, "10.9.0.0/16", WAN, "198.51.100.7", "198.51.100.7"));  // pools may share
	forget();
}

// --- Ten thousand rules against the sentence "of all that match, the lowest id counts". ---

#define MANY 10000
static struct nat_config all[MANY + 1];
static struct nat_backend backends[MANY + 1];
static uint64_t seed = 1;

static uint32_t pick(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static struct ip_addr host(bool v6, unsigned net, uint32_t i)
{
	struct ip_addr a = router_addr(v6 ? "2001:db8::" : "10.0.0.0");
	uint8_t *end = a.bytes + (v6 ? 16 : 4);

	end[-3] = (uint8_t)(net + (i >> 16));
	end[-2] = (uint8_t)(i >> 8);
	end[-1] = (uint8_t)i;
	return a;
}

static void random_rule(uint32_t id)
{
	bool v6 = pick(2);
	struct ip_addr inside = host(v6, 100, pick(5000));
	struct nat_config c = {.id = id, .vrf = pick(2) ? RED : BLUE, .kind = pick(3)};

	c.external = pick(3) ? c.vrf : WAN;
	c.outside = host(v6, 200,
			 c.kind == NAT_FLOATING ? id
			 : c.kind == NAT_SOURCE ? 20000 + pick(1000)
						: 30000 + pick(1000));
	c.inside = ip_prefix_of(&inside, (uint8_t)(ip_bits(inside.family) - (c.kind == NAT_SOURCE ? pick(8) : 0)));
	c.protocol = pick(3) ? IPPROTO_TCP : 0;
	if (c.kind == NAT_DESTINATION) {
		c.inside = (struct ip_prefix){0};
		c.protocol = IPPROTO_TCP;
		c.first_port = (uint16_t)(id % 50000 + 1);
		backends[id] = (struct nat_backend){inside, 0, 1};
		c.backends = &backends[id];
		c.n_backends = 1;
	} else if (c.protocol && pick(2)) {
		c.to_first_port = (uint16_t)(1 + pick(50));
		c.to_last_port = (uint16_t)(c.to_first_port + pick(50));
	}
	if (c.kind != NAT_DESTINATION && pick(4) == 0)
		c.to = ip_prefix_of(&(struct ip_addr){0}, 0), c.to.addr = host(v6, 0, 0),
		c.to.len = (uint8_t)(v6 ? 120 : 24);
	add(c);
	all[id] = *nat_get(id);
}

static struct ip_addr addr_of(const struct flow_key *k, bool dst)
{
	if (k->family == 4)
		return ip4_addr(dst ? k->dst4 : k->src4);
	return ip6_addr(dst ? k->dst6 : k->src6);
}

static const struct nat_config *linear(const struct flow_key *k, bool outside)
{
	struct ip_addr src = addr_of(k, false), dst = addr_of(k, true);
	uint16_t port = rte_be_to_cpu_16(k->dst_port);
	uint32_t id;

	for (id = 1; id <= MANY; id++) {
		const struct nat_config *c = &all[id];

		if (c->id == 0 || (c->protocol && c->protocol != k->proto))
			continue;
		if (c->to_last_port && (port < c->to_first_port || port > c->to_last_port))
			continue;
		if (outside) {
			if (c->kind != NAT_SOURCE && c->external == k->zone && ip_addr_eq(&c->outside, &dst) &&
			    (c->kind == NAT_FLOATING || c->first_port == port))
				return c;
		} else if (c->kind != NAT_DESTINATION && c->vrf == k->zone && ip_prefix_covers(&c->inside, &src) &&
			   (c->to.addr.family == 0 || ip_prefix_covers(&c->to, &dst))) {
			return c;
		}
	}
	return NULL;
}

static void compare(const struct flow_key *k)
{
	const struct nat_config *out = linear(k, false), *in = linear(k, true);
	struct flow_key led = *k, got;
	struct nat_verdict v;

	if (in == NULL && out && out->external != k->zone) {
		led.zone = out->external;
		in = linear(&led, true);
		led.zone = in ? in->vrf : led.zone;
	} else if (in) {
		led.zone = in->vrf;
		if (out && out->external != k->zone)
			out = NULL;
	}
	got = ask(k, pick(1000), &v);
	assert_int_equal(v.rule, in ? in->id : out ? out->id : 0);
	assert_int_equal(v.also, in && out && in != out ? out->id : 0);
	assert_int_equal(got.zone, led.zone);
	assert_true(nat_keeps(k, &got, &(struct nat_verdict){0}));
}

static void many(void **state)
{
	unsigned i;

	memset(all, 0, sizeof(all));
	for (i = 1; i <= MANY; i++)
		random_rule(i);
	assert_int_equal(nat_count(), MANY);
	for (i = 0; i < 20000; i++) {
		const struct nat_config *c = &all[1 + pick(MANY)];
		bool v6 = c->outside.family == IPV6;
		struct ip_addr src = host(v6, 100, pick(5000)), dst = pick(3) ? host(v6, 0, pick(512)) : c->outside;
		struct flow_key k = {.zone = (uint16_t[]){RED, BLUE, WAN}[pick(3)],
				     .proto = pick(4) ? IPPROTO_TCP : IPPROTO_UDP,
				     .family = src.family};

		k.dst_port = rte_cpu_to_be_16((uint16_t)(pick(2) ? c->first_port : 1 + pick(100)));
		memcpy(v6 ? k.src6 : (uint8_t *)&k.src4, src.bytes, ip_bytes(src.family));
		memcpy(v6 ? k.dst6 : (uint8_t *)&k.dst4, dst.bytes, ip_bytes(src.family));
		compare(&k);
		if (i % 10 == 0) { // and change
			uint32_t id = 1 + pick(MANY);

			assert_int_equal(nat_del(id, &err), 0);
			random_rule(id);
		}
	}
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floating_both_ways),
		cmocka_unit_test(hairpin),
		cmocka_unit_test(exceptions),
		cmocka_unit_test(pool_ports),
		cmocka_unit_test(pool_spread),
		cmocka_unit_test(services),
		cmocka_unit_test(order),
		cmocka_unit_test(changes),
		cmocka_unit_test(refusals),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
