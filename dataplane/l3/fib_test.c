// SPDX-License-Identifier: Apache-2.0
// Compares the FIB with a plain list of routes, for both families; full memory; lookups of workers while routes change.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <rte_byteorder.h>
#include <rte_eal.h>

#include "dpdk/eal_init.h"
#include "base/rcu.h"
#include "base/sanitizers.h"
#include "l3/fib.h"
#include "l3/fib_private.h"

#define MAX 2500
#define MEMORY (64ull << 20)

__extension__ typedef unsigned __int128 bits;

// The reference: an unsorted list of routes. An address is a number whose highest bit is the address's first bit.
static struct route {
	bits key;
	unsigned len;
	uint32_t nexthop;
} list[MAX];
static unsigned n;

static uint64_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 32) * below >> 32);
}

static bits mask(unsigned len)
{
	return len == 0 ? 0 : ~(bits)0 << (128 - len);
}

static struct ip_addr addr_of(enum family family, bits key)
{
	struct ip_addr a = {.family = (uint8_t)family};
	unsigned i;

	for (i = 0; i < ip_bytes(a.family); i++)
		a.bytes[i] = (uint8_t)(key >> (120 - 8 * i));
	return a;
}

static struct ip_prefix prefix_of(enum family family, const struct route *r)
{
	return (struct ip_prefix){.addr = addr_of(family, r->key), .len = (uint8_t)r->len};
}

// spread: number of values of a byte. With few, prefixes nest and nodes are added and removed; with many, the FIB is
// broad.
static bits random_key(enum family family, unsigned spread)
{
	bits key = 0;
	unsigned i;

	for (i = 0; i < ip_bytes(family); i++)
		key |= (bits)(rnd(spread) * (256 / spread) + (rnd(4) == 0 ? rnd(256 / spread) : 0)) << (120 - 8 * i);
	return key;
}

static struct route random_route(enum family family, unsigned spread)
{
	struct route r = {.len = rnd(ip_bits(family) + 1), .nexthop = 1 + rnd(rnd(2) ? 3 : FIB_MAX_NEXTHOP)};

	if (family == IPV6 && rnd(2))
		r.len = rnd(33);
	r.key = random_key(family, spread) & mask(r.len);
	return r;
}

static struct route *reference_match(bits key, unsigned below)
{
	struct route *best = NULL;
	unsigned i;

	for (i = 0; i < n; i++)
		if (((key ^ list[i].key) & mask(list[i].len)) == 0 && list[i].len < below &&
		    (!best || list[i].len > best->len))
			best = &list[i];
	return best;
}

static struct route *reference_get(const struct route *r)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (list[i].len == r->len && list[i].key == r->key)
			return &list[i];
	return NULL;
}

static void set(struct fib *fib, enum family family, const struct route *r)
{
	struct route *known = reference_get(r);
	struct ip_prefix p = prefix_of(family, r);

	assert_int_equal(fib_set(fib, &p, r->nexthop), 0);
	if (known != NULL)
		known->nexthop = r->nexthop;
	else
		list[n++] = *r;
	assert_int_equal(fib_routes(fib), n);
}

static void unset(struct fib *fib, enum family family, const struct route *r)
{
	struct route *known = reference_get(r), *cover = reference_match(r->key, r->len);
	struct ip_prefix c, p = prefix_of(family, r);

	if (cover != NULL)
		c = prefix_of(family, cover);
	assert_int_equal(fib_unset(fib, &p, cover ? &c : NULL, cover ? cover->nexthop : FIB_NONE), known ? 0 : -ENOENT);
	if (known != NULL)
		*known = list[--n];
	assert_int_equal(fib_routes(fib), n);
}

static void lookup_bulk(enum family family, const struct fib *const *fibs, const struct ip_addr *addrs,
			uint32_t *nexthops, unsigned count)
{
	const uint8_t *keys6[256];
	uint32_t keys4[256];
	unsigned i;

	for (i = 0; i < count; i++) {
		keys4[i] = ip4_be(&addrs[i]);
		keys6[i] = addrs[i].bytes;
	}
	if (family == IPV4)
		fib4_lookup_bulk(fibs, keys4, nexthops, count);
	else
		fib6_lookup_bulk(fibs, keys6, nexthops, count);
}

// Random addresses, the first and last address of a route, and the two next to them.
static void check(const struct fib *fib, enum family family, unsigned spread, const struct route *r)
{
	bits unit = (bits)1 << (128 - ip_bits(family));
	bits last = r->key | (~mask(r->len) & mask(ip_bits(family)));
	bits keys[12] = {r->key, last, r->key - unit, last + unit};
	struct ip_addr addrs[12];
	const struct fib *fibs[12];
	uint32_t nexthops[12];
	unsigned i, count = 1 + rnd(12);
	struct fib_recent recent;

	for (i = 0; i < count; i++) {
		if (i >= 4)
			keys[i] = random_key(family, spread);
		addrs[i] = addr_of(family, keys[i]);
		fibs[i] = fib;
	}
	lookup_bulk(family, fibs, addrs, nexthops, count);
	fib_recent_begin(&recent, fib);
	for (i = 0; i < count; i++) {
		const struct route *want = reference_match(keys[i] & mask(ip_bits(family)), 129);

		assert_int_equal(nexthops[i], want ? want->nexthop : FIB_NONE);
		assert_int_equal(fib_lookup(fib, &addrs[i]), nexthops[i]);
		if (fib_lookup_recent(&recent, addrs[i].bytes, family == IPV6))
			assert_int_equal(recent.nexthop, nexthops[i]);
		else
			assert_null(recent.near); // large
	}
}

static void drain(void)
{
	rcu_synchronize();
	rcu_poll();
	fib_fini();
	assert_int_equal(fib_memory(), 0);
	assert_int_equal(fib_init(MEMORY), 0);
}

static uint64_t settled_memory(void)
{
	fib_arena_flush();
	rcu_synchronize();
	rcu_poll();
	return fib_memory();
}

// Routes that were removed leave no trace: the FIB takes as much memory as a new one with the same routes.
static void check_memory(enum family family)
{
	uint64_t before = settled_memory(), after;
	struct fib *fresh = fib_create(family);
	struct ip_prefix p;
	unsigned i;

	for (i = 0; i < n; i++) {
		p = prefix_of(family, &list[i]);
		assert_int_equal(fib_set(fresh, &p, list[i].nexthop), 0);
	}
	after = settled_memory();
	assert_int_equal(after - before, before);
	fib_destroy(fresh);
	assert_int_equal(settled_memory(), before);
}

// Grows to `most` routes, shrinks to none, and again.
static void random_changes(enum family family, unsigned spread, unsigned most, unsigned steps)
{
	struct fib *fib = fib_create(family);
	bool shrink = false;
	struct route r = {0};
	unsigned i;

	n = 0;
	for (i = 0; i < steps; i++) {
		r = random_route(family, spread);
		if (rnd(4) > (shrink ? 0 : 2)) {
			if (n > 0 && rnd(8) > 0)
				r = list[rnd(n)];
			unset(fib, family, &r);
		} else {
			if (n > 0 && rnd(8) == 0) { // replaces
				r.key = list[rnd(n)].key;
				r.len = reference_match(r.key, 129)->len;
				r.key &= mask(r.len);
			}
			set(fib, family, &r);
		}
		shrink = shrink ? n > 0 : n >= most;
		check(fib, family, spread, &r);
		if (i % 64 == 0)
			rcu_poll();
		if (i % 500 == 0 && family == IPV4 && (n > FIB_ROOT16) == (most > FIB_ROOT16)) // IPv6: long skips vary
			check_memory(family);
	}
	while (n > 0) {
		r = list[rnd(n)];
		unset(fib, family, &r);
	}
	check(fib, family, spread, &r);
	fib_destroy(fib);
	drain();
}

static void nested4(void **state)
{
	random_changes(IPV4, 2, 200, TSAN_ROUNDS(60000, 2000));
}

static void nested6(void **state)
{
	random_changes(IPV6, 2, 200, TSAN_ROUNDS(60000, 2000));
}

static void broad4(void **state)
{
	random_changes(IPV4, 32, FIB_ROOT16 - 10, TSAN_ROUNDS(20000, 2000));
}

static void direct4(void **state)
{
	random_changes(IPV4, 16, FIB_ROOT16 + 400, TSAN_ROUNDS(30000, 3000));
}

static void direct6(void **state)
{
	random_changes(IPV6, 16, FIB_ROOT16 + 400, TSAN_ROUNDS(30000, 3000));
}

// Every route of a node's 8 bits, with all lengths, so that shorter routes are hidden and visible again.
static void whole_node(void **state)
{
	struct fib *fib = fib_create(IPV4);
	struct route r;
	unsigned len, i;

	n = 0;
	for (len = 16; len <= 24; len++)
		for (i = 0; i < 1u << (len - 16); i++) {
			r = (struct route){
				.key = (bits)(0x0a010000 | i << (32 - len)) << 96, .len = len, .nexthop = 1 + n};
			set(fib, IPV4, &r);
			set(fib, IPV4, &r);
			check(fib, IPV4, 2, &r);
		}
	while (n > 0) {
		r = list[rnd(n)];
		unset(fib, IPV4, &r);
		check(fib, IPV4, 2, &r);
		unset(fib, IPV4, &r); // is no longer there
	}
	fib_destroy(fib);
	drain();
}

// Each packet in its own FIB, every size of batch.
static void many_fibs(void **state)
{
	static struct fib *all[2][16384];
	const struct fib *fibs[256];
	struct ip_addr addrs[256];
	uint32_t nexthops[256];
	enum family family;
	unsigned i, size, f;

	for (f = 0; f < 2; f++)
		for (i = 0; i < 16384; i++)
			assert_non_null(all[f][i] = fib_create(f ? IPV6 : IPV4));
	assert_true(fib_memory() <= 2 * 16384 * 64 + 64);
	for (f = 0; f < 2; f++) {
		family = f ? IPV6 : IPV4;
		for (i = 0; i < 16384; i += 2) {
			struct ip_prefix p = {.addr.family = (uint8_t)family,
					      .len = (uint8_t)(i % (ip_bits((uint8_t)family) + 1))};

			assert_int_equal(fib_set(all[f][i], &p, i + 1), 0);
		}
		for (size = 0; size <= 256; size++) {
			for (i = 0; i < 256; i++) {
				fibs[i] = all[f][(size * 61 + i) % 16384];
				addrs[i] = addr_of(family, 0);
				nexthops[i] = 0xdead;
			}
			lookup_bulk(family, fibs, addrs, nexthops, size);
			for (i = 0; i < 256; i++) {
				unsigned fib = (size * 61 + i) % 16384;

				assert_int_equal(nexthops[i], i >= size ? 0xdead : fib % 2 ? FIB_NONE : fib + 1);
			}
		}
	}
	for (f = 0; f < 2; f++)
		for (i = 0; i < 16384; i++)
			fib_destroy(all[f][i]);
	drain();
}

static void refusals(void **state)
{
	struct fib *fib = fib_create(IPV4);
	struct ip_prefix p4 = {.addr.family = IPV4, .len = 8}, p6 = {.addr.family = IPV6, .len = 8};
	struct ip_prefix longer = {.addr.family = IPV4, .len = 33};

	assert_int_equal(fib_set(fib, &p4, FIB_NONE), -EINVAL);
	assert_int_equal(fib_set(fib, &p4, FIB_MAX_NEXTHOP + 1), -EINVAL);
	assert_int_equal(fib_set(fib, &p6, 1), -EINVAL);
	assert_int_equal(fib_set(fib, &longer, 1), -EINVAL);
	assert_int_equal(fib_unset(fib, &p6, NULL, FIB_NONE), -EINVAL);
	assert_int_equal(fib_unset(fib, &p4, NULL, FIB_NONE), -ENOENT);
	assert_int_equal(fib_set(fib, &p4, FIB_MAX_NEXTHOP), 0);
	assert_int_equal(fib_lookup(fib, &p4.addr), FIB_MAX_NEXTHOP);
	assert_int_equal(fib_routes(fib), 1);
	fib_destroy(fib);
	assert_int_equal(fib_init(MEMORY), -EALREADY);
	drain();
	fib_fini();
	assert_int_equal(fib_init(4096), -EINVAL);
	assert_int_equal(fib_init(MEMORY), 0);
}

// A full FIB refuses routes and keeps its own. It can still be emptied, and then holds as many again.
static void full(void **state)
{
	struct fib *fib;
	struct ip_prefix p = {.addr.family = IPV6, .len = 128};
	unsigned round, i, count[2];
	int ret = 0;

	fib_fini();
	assert_int_equal(fib_init(8 << 20), 0);
	fib = fib_create(IPV6);
	for (round = 0; round < 2; round++) {
		for (i = 0;; i++) {
			p.addr.bytes[1] = (uint8_t)(i >> 16), p.addr.bytes[3] = (uint8_t)(i >> 8),
			p.addr.bytes[5] = (uint8_t)i;
			ret = fib_set(fib, &p, i + 1);
			if (ret < 0)
				break;
			rcu_poll();
		}
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(fib_routes(fib), i);
		assert_int_equal(fib_lookup(fib, &p.addr), FIB_NONE);
		assert_true(fib_memory() <= 8 << 20);
		count[round] = i;
		while (i-- > 0) {
			p.addr.bytes[1] = (uint8_t)(i >> 16), p.addr.bytes[3] = (uint8_t)(i >> 8),
			p.addr.bytes[5] = (uint8_t)i;
			assert_int_equal(fib_lookup(fib, &p.addr), i + 1);
			assert_int_equal(fib_unset(fib, &p, NULL, FIB_NONE), 0);
			rcu_poll();
		}
		assert_int_equal(fib_routes(fib), 0);
	}
	assert_true(count[0] > 5000);
	assert_true(count[1] > count[0] - count[0] / 5); // a table and some blocks may still be in their grace period
	fib_destroy(fib);
	drain();
}

// Workers look up addresses as fast as they can and check each answer.
struct reader {
	pthread_t thread;
	struct fib **fib; // the writer may replace it
	struct fib *empty;
	bool (*legal)(bits key, uint32_t nexthop);
	enum family family;
	uint32_t hosts; // bits below 10.0.0.0/8 that the addresses vary in
	uint64_t lookups;
	uint64_t wrong;
	bool stop;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct ip_addr addrs[256];
	const struct fib *fibs[256];
	uint32_t nexthops[256];
	bits keys[256];
	bool mixed = false;
	uint64_t s = 1;
	unsigned i;

	rcu_reader_online(1);
	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		const struct fib *fib = rcu_read(*r->fib);

		for (i = 0; i < 256; i++) {
			s = s * 6364136223846793005ull + 1442695040888963407ull;
			keys[i] = (bits)10 << 120 | (bits)(s >> 32 & r->hosts) << 96;
			addrs[i] = addr_of(r->family, keys[i]);
			fibs[i] = mixed && i % 4 == 3 ? r->empty : fib;
		}
		lookup_bulk(r->family, fibs, addrs, nexthops, 256);
		for (i = 0; i < 256; i++)
			r->wrong += fibs[i] == fib ? !r->legal(keys[i], nexthops[i]) : nexthops[i] != FIB_NONE;
		mixed = !mixed; // packets of a single FIB take another lookup function
		r->lookups += 256;
		rcu_quiescent(1);
	}
	rcu_reader_offline(1);
	return NULL;
}

static void reader_start(struct reader *r)
{
	r->empty = fib_create(r->family);
	assert_int_equal(pthread_create(&r->thread, NULL, reader_main, r), 0);
}

static void reader_stop(struct reader *r)
{
	__atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
	pthread_join(r->thread, NULL);
	fib_destroy(r->empty);
	assert_true(r->lookups > 10000);
	assert_int_equal(r->wrong, 0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Next hops here: 1000 * length + 1, so that the answer identifies the route. 10.0.0.0/8 is always in the FIB.
static bool at_least_8(bits key, uint32_t nexthop)
{
	return nexthop >= 8001 && nexthop % 1000 == 1;
}

static void concurrent_changes(enum family family, double seconds)
{
	struct reader reader = {.legal = at_least_8, .family = family, .hosts = 0x030303};
	struct route r = {.key = (bits)10 << 120, .len = 8, .nexthop = 8001};
	struct fib *fib = fib_create(family);
	double end = now() + seconds;
	unsigned i;

	reader.fib = &fib;
	n = 0;
	set(fib, family, &r);
	reader_start(&reader);
	while (now() < end) {
		for (i = 0; i < 64; i++) {
			if (n > 1 && (n > 300 || rnd(2))) {
				r = list[1 + rnd(n - 1)];
				unset(fib, family, &r);
			} else {
				r = (struct route){.len = 9 + rnd(24)};
				r.nexthop = 1000 * r.len + 1;
				r.key = ((bits)10 << 120 | (bits)(rnd(0x1000000) & 0x030303) << 96) & mask(r.len);
				set(fib, family, &r);
			}
		}
		rcu_poll();
	}
	reader_stop(&reader);
	fib_destroy(fib);
	drain();
}

static void concurrent4(void **state)
{
	concurrent_changes(IPV4, 1);
}

static void concurrent6(void **state)
{
	concurrent_changes(IPV6, 1);
}

static bool any_route(bits key, uint32_t nexthop)
{
	return nexthop != FIB_NONE;
}

// Make before break: there is always a route, of one length or the other, which changes all the time. Neighbouring
// routes keep the nodes, so that a lookup in progress meets the changes.
static void concurrent_handover(enum family family, double seconds)
{
	const unsigned most = ip_bits((uint8_t)family);
	const unsigned lens[] = {most, 0, most - 8, 8, most, most - 12, 12, 0};
	struct reader reader = {.legal = any_route, .family = family};
	struct fib *fib = fib_create(family);
	double end = now() + seconds;
	struct route r, old;
	unsigned i, len;

	n = 0;
	for (len = 1; len <= most; len++) {
		r = (struct route){.key = (bits)10 << 120, .len = len, .nexthop = 1};
		r.key = (r.key ^ (bits)1 << (128 - len)) & mask(len);
		set(fib, family, &r);
	}
	old = (struct route){.key = (bits)10 << 120, .len = most, .nexthop = 2};
	set(fib, family, &old);
	reader.fib = &fib;
	reader_start(&reader);
	for (i = 1; now() < end; i++) {
		r = (struct route){.len = lens[i % 8], .nexthop = 2};
		r.key = (bits)10 << 120 & mask(r.len);
		set(fib, family, &r);
		unset(fib, family, &old);
		old = r;
		rcu_poll();
	}
	reader_stop(&reader);
	fib_destroy(fib);
	drain();
}

static void concurrent_handover4(void **state)
{
	concurrent_handover(IPV4, 1);
}

static void concurrent_handover6(void **state)
{
	concurrent_handover(IPV6, 1);
}

// FIBs that grow to the direct table while workers read them, one after the other.
static void concurrent_growth(void **state)
{
	struct reader reader = {.legal = at_least_8, .family = IPV4, .hosts = 0x030303};
	struct route r8 = {.key = (bits)10 << 120, .len = 8, .nexthop = 8001}, r;
	struct fib *fib = NULL, *fresh, *old;
	double end = now() + 1;
	unsigned i;

	reader.fib = &fib;
	while (now() < end) {
		n = 0;
		fresh = fib_create(IPV4);
		set(fresh, IPV4, &r8);
		for (i = 0; i < 4; i++) { // some nodes that stay
			r = (struct route){.key = (bits)(0x0a000000 | i << 16) << 96, .len = 9 + i * 5};
			r.nexthop = 1000 * r.len + 1;
			r.key &= mask(r.len);
			set(fresh, IPV4, &r);
		}
		old = fib;
		rcu_publish(fib, fresh);
		if (old == NULL)
			reader_start(&reader);
		fib_destroy(old);
		for (i = 0; fib_routes(fib) <= FIB_ROOT16 + 8; i++) {
			struct ip_prefix p = {.addr = ip4_addr(rte_cpu_to_be_32(0xc0000000 + (i << 8))), .len = 24};

			assert_int_equal(fib_set(fib, &p, 1), 0);
		}
		rcu_poll();
	}
	reader_stop(&reader);
	fib_destroy(fib);
	drain();
}

static int start(void **state)
{
	char *argv[] = {"fib_test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", NULL};

	return eal_init(7, argv) < 0 || rcu_init() != 0 || fib_init(MEMORY) != 0;
}

static int stop(void **state)
{
	fib_fini();
	rcu_fini();
	return rte_eal_cleanup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested4),
		cmocka_unit_test(nested6),
		cmocka_unit_test(broad4),
		cmocka_unit_test(direct4),
		cmocka_unit_test(direct6),
		cmocka_unit_test(whole_node),
		cmocka_unit_test(many_fibs),
		cmocka_unit_test(refusals),
		cmocka_unit_test(full),
		cmocka_unit_test(concurrent4),
		cmocka_unit_test(concurrent6),
		cmocka_unit_test(concurrent_handover4),
		cmocka_unit_test(concurrent_handover6),
		cmocka_unit_test(concurrent_growth),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
