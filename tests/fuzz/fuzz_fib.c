// SPDX-License-Identifier: Apache-2.0
// Compares the FIB and RIB with a hash table of routes. The input is a list of operations: kind, number of routes,
// length and address of the prefix, next hop. After each one, addresses around the prefix are looked up.
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "base/rcu.h"
#include "l3/fib.h"
#include "l3/fib_private.h"
#include "l3/rib.h"

#define RUN 180    // routes of an operation on many
#define MAX_RUNS 1 // operations on many, at most
#define STEPS 100
#define MAX (RUN * MAX_RUNS + STEPS)
#define BUCKETS 1024
#define ORACLE __attribute__((no_sanitize("coverage"))) // its paths say nothing about the FIB

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The routes, hashed by prefix. An entry that was removed stays in its bucket, without a next hop.
struct entry {
	struct ip_prefix p;
	uint32_t nexthop;
	unsigned next; // in its bucket: index + 1
};

static struct entry list[MAX];
static unsigned buckets[BUCKETS]; // index + 1
static unsigned lengths[129];     // how many routes have this length
static unsigned n, routes, runs;

static void must(bool holds)
{
	if (!holds)
		abort();
}

ORACLE static unsigned *bucket(const struct ip_prefix *p)
{
	uint32_t hash = p->len;
	unsigned i;

	for (i = 0; i < ip_bytes(p->addr.family); i++)
		hash = (hash ^ p->addr.bytes[i]) * 16777619u;
	return &buckets[(hash ^ hash >> 16) % BUCKETS];
}

ORACLE static struct entry *find(const struct ip_prefix *p)
{
	unsigned i;

	for (i = *bucket(p); i > 0; i = list[i - 1].next)
		if (list[i - 1].p.len == p->len && ip_addr_eq(&list[i - 1].p.addr, &p->addr))
			return &list[i - 1];
	return NULL;
}

ORACLE static struct entry *find_or_add(const struct ip_prefix *p)
{
	struct entry *e = find(p);
	unsigned *head = bucket(p);

	if (e == NULL) {
		e = &list[n++];
		*e = (struct entry){.p = *p, .nexthop = FIB_NONE, .next = *head};
		*head = n;
	}
	return e;
}

ORACLE static uint32_t match(const struct ip_addr *a)
{
	struct ip_prefix p = {.addr = *a, .len = (uint8_t)ip_bits(a->family)};
	const struct entry *e;

	for (;; p.len--) {
		e = lengths[p.len] > 0 ? find(&p) : NULL;
		if (e && e->nexthop != FIB_NONE)
			return e->nexthop;
		if (p.len == 0)
			return FIB_NONE;
		p.addr.bytes[(p.len - 1) / 8] &= (uint8_t) ~(0x80 >> (p.len - 1) % 8);
	}
}

static void set(struct fib *fib, struct rib *rib, const struct ip_prefix *p, uint32_t nexthop)
{
	struct entry *e = find_or_add(p);
	struct rib_route *r;
	bool created;

	must(fib_set(fib, p, nexthop) == 0);
	r = rib_add(rib, p, &created);
	must(r != NULL && created == (e->nexthop == FIB_NONE));
	r->nexthop = nexthop;
	e->nexthop = nexthop;
	routes += created;
	lengths[p->len] += created;
}

static void unset(struct fib *fib, struct rib *rib, const struct ip_prefix *p)
{
	struct entry *e = find(p);
	bool known = e && e->nexthop != FIB_NONE;
	struct ip_prefix cover;
	struct rib_route *r;

	must((rib_del(rib, p) == 0) == known);
	r = rib_cover(rib, p, &cover);
	must((fib_unset(fib, p, r ? &cover : NULL, r ? r->nexthop : FIB_NONE) == 0) == known);
	if (!known)
		return;
	e->nexthop = FIB_NONE;
	routes--;
	lengths[p->len]--;
}

static void check(const struct fib *fib, const struct rib *rib, const struct ip_prefix *p)
{
	const struct fib *fibs[4] = {fib, fib, fib, fib};
	struct ip_addr a[4] = {p->addr, p->addr, p->addr, p->addr};
	const uint8_t *keys6[4];
	uint32_t keys4[4], nexthops[4];
	struct rib_route *r;
	unsigned i, last = ip_bytes(p->addr.family) - 1;

	a[1].bytes[last] ^= 1;
	a[2].bytes[p->len / 8 < last ? p->len / 8 : last] ^= 0x80 >> p->len % 8;
	a[3].bytes[p->len ? (p->len - 1) / 8 : 0] ^= 0x80 >> (p->len + 7) % 8;
	for (i = 0; i < 4; i++) {
		keys4[i] = ip4_be(&a[i]);
		keys6[i] = a[i].bytes;
	}
	if (p->addr.family == IPV4)
		fib4_lookup_bulk(fibs, keys4, nexthops, 4);
	else
		fib6_lookup_bulk(fibs, keys6, nexthops, 4);
	for (i = 0; i < 4; i++) {
		must(nexthops[i] == match(&a[i]));
		must(fib_lookup(fib, &a[i]) == nexthops[i]);
		r = rib_match(rib, &a[i], NULL);
		must((r ? r->nexthop : FIB_NONE) == nexthops[i]);
	}
	must(fib_routes(fib) == routes && rib_count(rib) == routes);
}

// One operation. Returns how many bytes it took.
static size_t operate(struct fib *fib, struct rib *rib, enum family family, const uint8_t *data, size_t size)
{
	struct ip_addr a = {.family = (uint8_t)family};
	size_t bytes = ip_bytes(a.family), take;
	unsigned i, count = data[0] & 2 && runs++ < MAX_RUNS ? RUN : 1;
	struct ip_prefix p;

	if (size < 3)
		return size;
	take = size - 3 < bytes ? size - 3 : bytes;
	memcpy(a.bytes, data + 3, take);
	p = ip_prefix_of(&a, (uint8_t)(data[1] % (ip_bits(a.family) + 1)));
	for (i = 0; i < count; i++) {
		if (i > 0) { // the next route differs in the last two bytes of the prefix
			a.bytes[p.len > 16 ? (p.len - 1) / 8 - 1 : 0] += (uint8_t)(i % 2 * 3);
			a.bytes[p.len > 8 ? (p.len - 1) / 8 : 0] += 7;
			p = ip_prefix_of(&a, p.len);
		}
		if (data[0] & 1)
			unset(fib, rib, &p);
		else
			set(fib, rib, &p, 1 + data[2]);
	}
	check(fib, rib, &p);
	return 3 + take;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *eal[] = {"fuzz_fib",       "--no-huge",         "-m", "64", "--no-pci", "--no-shconf",
		       "--no-telemetry", "--log-level=error", NULL};

	must(rte_eal_init(8, eal) >= 0 && rcu_init() == 0 && fib_init(1 << 26) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum family family;
	unsigned steps = 0, i;
	struct fib *fib;
	struct rib *rib;
	size_t used;

	if (size < 1)
		return 0;
	family = data[0] & 1 ? IPV6 : IPV4;
	fib = fib_create(family);
	rib = rib_create(family);
	n = runs = 0;
	memset(buckets, 0, sizeof(buckets));
	for (data++, size--; size > 0 && steps < STEPS; data += used, size -= used, steps++)
		used = operate(fib, rib, family, data, size);
	for (i = 0; i < n; i++)
		if (list[i].nexthop != FIB_NONE)
			unset(fib, rib, &list[i].p);
	must(routes == 0);
	fib_arena_flush();
	rcu_synchronize();
	rcu_poll();
	must(fib_memory() == 64); // empty again
	fib_destroy(fib);
	rib_destroy(rib);
	rcu_poll();
	must(rib_memory() == 0 && fib_memory() == 0);
	return 0;
}
