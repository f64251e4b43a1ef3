// SPDX-License-Identifier: Apache-2.0
// Compares the FIB and RIB with a plain list of routes. The input is a list of operations: kind, number of routes,
// length and address of the prefix, next hop. After each one, addresses around the prefix are looked up.
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "base/rcu.h"
#include "l3/fib.h"
#include "l3/fib_arena.h"
#include "l3/rib.h"

#define MAX 1600
#define RUN 180    // routes of an operation on many
#define MAX_RUNS 8 // operations on many, at most

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct entry {
	struct ip_prefix p;
	uint32_t nexthop;
};

static struct entry list[MAX];
static unsigned n, runs;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static struct entry *find(const struct ip_prefix *p)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (list[i].p.len == p->len && ip_addr_eq(&list[i].p.addr, &p->addr))
			return &list[i];
	return NULL;
}

static bool covers(const struct ip_prefix *p, const struct ip_addr *a)
{
	unsigned whole = p->len / 8, rest = p->len % 8;

	return memcmp(p->addr.bytes, a->bytes, whole) == 0 &&
	       (rest == 0 || (p->addr.bytes[whole] ^ a->bytes[whole]) >> (8 - rest) == 0);
}

static uint32_t match(const struct ip_addr *a)
{
	const struct entry *best = NULL;
	unsigned i;

	for (i = 0; i < n; i++)
		if ((!best || list[i].p.len > best->p.len) && covers(&list[i].p, a))
			best = &list[i];
	return best ? best->nexthop : FIB_NONE;
}

static void set(struct fib *fib, struct rib *rib, const struct ip_prefix *p, uint32_t nexthop)
{
	struct entry *known = find(p);
	struct rib_route *r;
	bool created;

	if (known == NULL && n == MAX)
		return;
	must(fib_set(fib, p, nexthop) == 0);
	r = rib_add(rib, p, &created);
	must(r != NULL && created == (known == NULL));
	r->nexthop = nexthop;
	if (known == NULL)
		known = &list[n++];
	*known = (struct entry){.p = *p, .nexthop = nexthop};
}

static void unset(struct fib *fib, struct rib *rib, const struct ip_prefix *p)
{
	struct entry *known = find(p);
	struct ip_prefix cover;
	struct rib_route *r;

	must((rib_del(rib, p) == 0) == (known != NULL));
	r = rib_cover(rib, p, &cover);
	must((fib_unset(fib, p, r ? &cover : NULL, r ? r->nexthop : FIB_NONE) == 0) == (known != NULL));
	if (known != NULL)
		*known = list[--n];
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
	must(fib_routes(fib) == n && rib_count(rib) == n);
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
	unsigned steps = 0;
	struct fib *fib;
	struct rib *rib;
	size_t used;

	if (size < 1)
		return 0;
	family = data[0] & 1 ? IPV6 : IPV4;
	fib = fib_create(family);
	rib = rib_create(family);
	n = runs = 0;
	for (data++, size--; size > 0 && steps < 100; data += used, size -= used, steps++)
		used = operate(fib, rib, family, data, size);
	while (n > 0) {
		struct ip_prefix p = list[n / 2].p; // unset() moves the list

		unset(fib, rib, &p);
	}
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
