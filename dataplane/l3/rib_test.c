// SPDX-License-Identifier: Apache-2.0
// Compares the RIB with a sorted array, for both families.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rte_common.h>

#include "l3/rib.h"

#define MAX 600
#define STEPS 60000

struct entry {
	struct ip_prefix p;
	uint32_t nexthop;
};

static struct entry list[MAX]; // sorted by address, then length
static unsigned n;
static uint32_t seed;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * below) >> 32);
}

// Few distinct bytes, so that prefixes nest and meet.
static struct ip_prefix random_prefix(enum family family)
{
	struct ip_addr a = {.family = (uint8_t)family};
	unsigned i;

	for (i = 0; i < ip_bytes(a.family); i++)
		a.bytes[i] = rnd(3) == 0 ? (uint8_t)(rnd(4) << 6) : 0;
	return ip_prefix_of(&a, (uint8_t)rnd(ip_bits(a.family) + 1));
}

static int order(const struct ip_prefix *a, const struct ip_prefix *b)
{
	int c = memcmp(a->addr.bytes, b->addr.bytes, sizeof(a->addr.bytes));

	return c ? c : (int)a->len - (int)b->len;
}

static unsigned position(const struct ip_prefix *p)
{
	unsigned i;

	for (i = 0; i < n && order(&list[i].p, p) < 0; i++)
		;
	return i;
}

static void reference_add(const struct ip_prefix *p, uint32_t nexthop)
{
	unsigned i = position(p);

	if (i == n || order(&list[i].p, p) != 0) {
		memmove(&list[i + 1], &list[i], (n - i) * sizeof(*list));
		list[i].p = *p;
		n++;
	}
	list[i].nexthop = nexthop;
}

static bool reference_del(const struct ip_prefix *p)
{
	unsigned i = position(p);

	if (i == n || order(&list[i].p, p) != 0)
		return false;
	memmove(&list[i], &list[i + 1], (n - i - 1) * sizeof(*list));
	n--;
	return true;
}

// The longest entry of at most max bits that contains a.
static const struct entry *reference_match(const struct ip_addr *a, int max)
{
	const struct entry *best = NULL;
	unsigned i;

	for (i = 0; i < n; i++)
		if (list[i].p.len <= max && ip_prefix_covers(&list[i].p, a) && (!best || list[i].p.len > best->p.len))
			best = &list[i];
	return best;
}

static void assert_entry(const struct rib_route *r, const struct ip_prefix *p, const struct entry *want)
{
	if (want == NULL) {
		assert_null(r);
		return;
	}
	assert_non_null(r);
	assert_int_equal(r->nexthop, want->nexthop);
	assert_memory_equal(p, &want->p, sizeof(*p));
}

static void check_queries(const struct rib *rib, enum family family)
{
	struct ip_prefix out = {0}, p = random_prefix(family);
	struct ip_prefix host = random_prefix(family);
	unsigned i = position(&p);
	bool exact = i < n && order(&list[i].p, &p) == 0;

	assert_true((rib_get(rib, &p) != NULL) == exact);
	if (exact)
		assert_int_equal(rib_get(rib, &p)->nexthop, list[i].nexthop);
	assert_entry(rib_next(rib, &p, &out), &out, i + exact < n ? &list[i + exact] : NULL);
	assert_entry(rib_cover(rib, &p, &out), &out, reference_match(&p.addr, p.len - 1));
	assert_entry(rib_match(rib, &host.addr, &out), &out, reference_match(&host.addr, 128));
}

static void check_order(const struct rib *rib)
{
	struct ip_prefix p = {0};
	struct rib_route *r;
	unsigned i = 0;

	for (r = rib_next(rib, NULL, &p); r != NULL; r = rib_next(rib, &p, &p)) {
		assert_true(i < n);
		assert_entry(r, &p, &list[i++]);
	}
	assert_int_equal(i, n);
}

static void random_family(enum family family)
{
	struct rib *rib = rib_create(family);
	struct rib_route *r;
	struct ip_prefix p;
	bool created;
	unsigned i;

	n = 0;
	for (i = 0; i < STEPS; i++) {
		bool shrink = i / 5000 % 2;

		p = random_prefix(family);
		if (n < MAX - 1 && rnd(4) > (shrink ? 2 : 0)) {
			unsigned before = n;

			reference_add(&p, i);
			r = rib_add(rib, &p, &created);
			assert_non_null(r);
			assert_int_equal(created, n != before);
			assert_true(!created || (r->nexthop == 0 && r->origin == 0));
			r->nexthop = i;
		} else {
			if (n > 0 && rnd(2) == 0)
				p = list[rnd(n)].p;
			assert_int_equal(rib_del(rib, &p), reference_del(&p) ? 0 : -ENOENT);
		}
		assert_int_equal(rib_count(rib), n);
		check_queries(rib, family);
		if (i % 1000 == 0)
			check_order(rib);
	}
	rib_destroy(rib);
	assert_int_equal(rib_memory(), 0);
}

static void ipv4(void **state)
{
	seed = 4;
	random_family(IPV4);
}

static void ipv6(void **state)
{
	seed = 6;
	random_family(IPV6);
}

// A walk continues from a route that has been deleted meanwhile.
static void walk_while_deleting(void **state)
{
	struct rib *rib = rib_create(IPV4);
	struct ip_prefix p = {.addr.family = IPV4, .len = 32};
	unsigned i, seen = 0;
	bool created;

	for (i = 0; i < 1000; i++) {
		p.addr.bytes[2] = (uint8_t)(i >> 8);
		p.addr.bytes[3] = (uint8_t)i;
		assert_non_null(rib_add(rib, &p, &created));
	}
	for (i = 0; rib_next(rib, i ? &p : NULL, &p) != NULL; i++) {
		assert_int_equal(p.addr.bytes[2] << 8 | p.addr.bytes[3], seen++);
		assert_int_equal(rib_del(rib, &p), 0);
	}
	assert_int_equal(seen, 1000);
	assert_int_equal(rib_count(rib), 0);
	rib_destroy(rib);
}

// At most two nodes of 32 bytes for each IPv4 route, of 48 for IPv6.
static void memory_bound(void **state)
{
	static const uint64_t bytes[] = {64, 96};
	static const enum family families[] = {IPV4, IPV6};
	struct ip_prefix p;
	unsigned i, f;
	bool created;

	for (f = 0; f < 2; f++) {
		uint64_t empty = rib_memory();
		struct rib *rib = rib_create(families[f]);

		seed = 1;
		for (i = 0; i < 20000; i++) {
			p = (struct ip_prefix){.addr.family = (uint8_t)families[f], .len = 32};
			p.addr.bytes[0] = (uint8_t)rnd(256), p.addr.bytes[1] = (uint8_t)rnd(256),
			p.addr.bytes[2] = (uint8_t)rnd(256);
			assert_non_null(rib_add(rib, &p, &created));
		}
		assert_true(rib_memory() > rib_count(rib) * (bytes[f] / 2));
		assert_true(rib_memory() <= rib_count(rib) * bytes[f] + 64);
		rib_destroy(rib);
		assert_int_equal(rib_memory(), empty);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(walk_while_deleting),
		cmocka_unit_test(memory_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
