// SPDX-License-Identifier: Apache-2.0
// Routes per second, memory and cycles per lookup of the FIB and RIB, next to rte_fib (dir24_8, trie) and rte_lpm. Run
// it pinned: taskset -c 1 build/tests/perf/fib_bench [--compare] [--memory] [NAME...], each NAME the start of a set's
// name. Cycles are those of the time-stamp counter, changes per second count the thread's own CPU time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvla" // in rte_lpm_lookup_bulk()
#include <rte_lpm.h>
#pragma GCC diagnostic pop

#include "base/rcu.h"
#include "l3/fib.h"
#include "l3/rib.h"

#define BURST 256
#define KEYS (1u << 20)
#define SLICE 2048 // lookups that are timed together; the fastest tenth counts, so that a busy machine disturbs little
#define SLICES 4096

enum mix { INTERNET, HOSTS };

struct set {
	const char *name;
	enum family family;
	enum mix mix;
	unsigned n;
};

static const struct set sets[] = {
	{"IPv4 1 route", IPV4, INTERNET, 1},
	{"IPv4 1 host", IPV4, HOSTS, 1},
	{"IPv4 1k internet", IPV4, INTERNET, 1000},
	{"IPv4 1k hosts", IPV4, HOSTS, 1000},
	{"IPv4 100k internet", IPV4, INTERNET, 100000},
	{"IPv4 100k hosts", IPV4, HOSTS, 100000},
	{"IPv4 1M internet", IPV4, INTERNET, 1000000},
	{"IPv4 1M hosts", IPV4, HOSTS, 1000000},
	{"IPv6 1 route", IPV6, INTERNET, 1},
	{"IPv6 1k internet", IPV6, INTERNET, 1000},
	{"IPv6 250k internet", IPV6, INTERNET, 250000},
	{"IPv6 250k hosts", IPV6, HOSTS, 250000},
};

static struct ip_prefix *routes;
static struct ip_addr *keys;
static uint32_t *keys4;
static const uint8_t **keys6;
static uint32_t *host4;      // the keys for rte_fib and rte_lpm,
static uint8_t (*host6)[16]; // and rte_fib6
static uint32_t nexthops[BURST];
static uint64_t nexthops64[BURST];

static uint64_t seed = 1;

static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 32);
}

// Shares of lengths in per mille, after the global routing tables of 2023.
static unsigned internet_length(enum family family)
{
	static const struct {
		unsigned len, share;
	} v4[] = {{24, 600}, {23, 105}, {22, 115}, {21, 52}, {20, 46}, {19, 26}, {18, 15},
		  {17, 9},   {16, 14},  {15, 5},   {14, 4},  {12, 3},  {32, 6}},
	  v6[] = {{48, 470}, {32, 125}, {44, 105}, {40, 90}, {36, 65}, {47, 30},
		  {46, 30},  {45, 20},  {42, 20},  {29, 25}, {56, 10}, {64, 10}};
	unsigned i, r = rnd() % 1000;

	for (i = 0; i < (family == IPV4 ? RTE_DIM(v4) : RTE_DIM(v6)) - 1; i++) {
		unsigned share = family == IPV4 ? v4[i].share : v6[i].share;

		if (r < share)
			break;
		r -= share;
	}
	return family == IPV4 ? v4[i].len : v6[i].len;
}

static struct ip_prefix random_route(const struct set *s)
{
	struct ip_addr a = {.family = (uint8_t)s->family};
	unsigned i, len = s->mix == HOSTS ? ip_bits(a.family) : internet_length(s->family);

	for (i = 0; i < ip_bytes(a.family); i++)
		a.bytes[i] = (uint8_t)rnd();
	if (s->family == IPV4) {
		a.bytes[0] = (uint8_t)(1 + rnd() % 223);
	} else { // some registries' blocks, some thousand networks in each
		a.bytes[0] = (uint8_t)(0x20 + rnd() % 11);
		a.bytes[1] = (uint8_t)(rnd() % 4);
		a.bytes[2] &= 0x0f;
		if (s->mix == HOSTS) { // of 256 networks
			memset(a.bytes, 0, 15);
			a.bytes[0] = 0x20, a.bytes[1] = 1, a.bytes[5] = (uint8_t)rnd();
			a.bytes[13] = (uint8_t)(rnd() % 4), a.bytes[14] = (uint8_t)rnd();
		}
	}
	return ip_prefix_of(&a, (uint8_t)len);
}

// An address of each route, in random order.
static void make_keys(const struct set *s)
{
	unsigned i, b;

	for (i = 0; i < KEYS; i++) {
		const struct ip_prefix *p = &routes[rnd() % s->n];

		keys[i] = p->addr;
		for (b = p->len; b < ip_bits(p->addr.family); b++)
			keys[i].bytes[b / 8] |= (uint8_t)((rnd() & 1) << (7 - b % 8));
		keys4[i] = ip4_be(&keys[i]);
		keys6[i] = keys[i].bytes;
		host4[i] = rte_be_to_cpu_32(keys4[i]);
		memcpy(host6[i], keys[i].bytes, sizeof(host6[i]));
	}
}

static uint64_t resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f != NULL) {
		if (fscanf(f, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare_u64(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

// Cycles per lookup. lookup(fib, i, n) looks keys i .. i + n up; n <= BURST.
static double measure(void (*lookup)(const void *fib, unsigned i, unsigned n), const void *fib, unsigned burst)
{
	static uint64_t cycles[SLICES];
	unsigned slice, i;

	for (slice = 0; slice < SLICES; slice++) {
		unsigned first = slice * SLICE % KEYS;

		cycles[slice] = rte_rdtsc();
		for (i = first; i < first + SLICE; i += burst)
			lookup(fib, i, burst);
		cycles[slice] = rte_rdtsc() - cycles[slice];
	}
	qsort(cycles, SLICES, sizeof(*cycles), compare_u64);
	return (double)cycles[SLICES / 10] / SLICE;
}

static void add_routes(const struct set *s, struct fib *fib, struct rib *rib)
{
	bool created;
	unsigned i;

	for (i = 0; i < s->n; i++) {
		struct rib_route *r = rib_add(rib, &routes[i], &created);

		if (r == NULL || fib_set(fib, &routes[i], 1 + i % 1000) != 0) {
			printf("out of memory at route %u\n", i);
			exit(1);
		}
		r->nexthop = 1 + i % 1000;
		if (i % 64 == 0)
			rcu_poll();
	}
}

static void del_routes(const struct set *s, struct fib *fib, struct rib *rib)
{
	struct ip_prefix cover;
	struct rib_route *r;
	unsigned i;

	for (i = 0; i < s->n; i++) {
		if (rib_del(rib, &routes[i]) != 0) // given twice in the set
			continue;
		r = rib_cover(rib, &routes[i], &cover);
		fib_unset(fib, &routes[i], r ? &cover : NULL, r ? r->nexthop : FIB_NONE);
		if (i % 64 == 0)
			rcu_poll();
	}
}

static void lookup4(const void *fib, unsigned i, unsigned n)
{
	fib4_lookup_bulk(fib, keys4 + i, nexthops, n);
}

static void lookup6(const void *fib, unsigned i, unsigned n)
{
	fib6_lookup_bulk(fib, keys6 + i, nexthops, n);
}

static void lookup_rte_fib(const void *fib, unsigned i, unsigned n)
{
	rte_fib_lookup_bulk((void *)(uintptr_t)fib, host4 + i, nexthops64, n);
}

static void lookup_rte_lpm(const void *fib, unsigned i, unsigned n)
{
	rte_lpm_lookup_bulk(fib, host4 + i, nexthops, n);
}

static void lookup_rte_fib6(const void *fib, unsigned i, unsigned n)
{
	rte_fib6_lookup_bulk((void *)(uintptr_t)fib, host6 + i, nexthops64, n);
}

static void check_hits(void)
{
	unsigned i;

	for (i = 0; i < BURST; i++)
		if (nexthops[i] == FIB_NONE)
			printf("a lookup found no route\n");
}

static double measure_rte_fib(const struct set *s)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8, .max_routes = 1 << 20, .dir24_8 = {RTE_FIB_DIR24_8_4B, 1 << 17}};
	struct rte_fib *fib = rte_fib_create("bench", SOCKET_ID_ANY, &conf);
	double cycles;
	unsigned i;

	if (fib == NULL)
		return 0;
	for (i = 0; i < s->n; i++)
		rte_fib_add(fib, rte_be_to_cpu_32(ip4_be(&routes[i].addr)), routes[i].len, 1 + i % 1000);
	cycles = measure(lookup_rte_fib, fib, BURST);
	rte_fib_free(fib);
	return cycles;
}

static double measure_rte_lpm(const struct set *s)
{
	struct rte_lpm_config conf = {.max_rules = s->n + 1, .number_tbl8s = 1 << 17};
	struct rte_lpm *lpm = rte_lpm_create("bench", SOCKET_ID_ANY, &conf);
	double cycles;
	unsigned i;

	if (lpm == NULL)
		return 0;
	for (i = 0; i < s->n; i++)
		rte_lpm_add(lpm, rte_be_to_cpu_32(ip4_be(&routes[i].addr)), routes[i].len, 1 + i % 1000);
	cycles = measure(lookup_rte_lpm, lpm, BURST);
	rte_lpm_free(lpm);
	return cycles;
}

static double measure_rte_fib6(const struct set *s)
{
	struct rte_fib6_conf conf = {.type = RTE_FIB6_TRIE, .max_routes = 1 << 20, .trie = {RTE_FIB6_TRIE_4B, 1 << 18}};
	struct rte_fib6 *fib = rte_fib6_create("bench", SOCKET_ID_ANY, &conf);
	double cycles;
	unsigned i;

	if (fib == NULL)
		return 0;
	for (i = 0; i < s->n; i++)
		rte_fib6_add(fib, routes[i].addr.bytes, routes[i].len, 1 + i % 1000);
	cycles = measure(lookup_rte_fib6, fib, BURST);
	rte_fib6_free(fib);
	return cycles;
}

// Reference libraries are left out where they would need gigabytes or minutes.
static void compare(const struct set *s)
{
	if (s->family == IPV4 && (s->mix == INTERNET || s->n <= 100000))
		printf("  rte_fib %5.1f", measure_rte_fib(s));
	if (s->family == IPV4 && s->n <= 1000)
		printf("  rte_lpm %5.1f", measure_rte_lpm(s));
	if (s->family == IPV6)
		printf("  rte_fib6 %5.1f", measure_rte_fib6(s));
}

static void run(const struct set *s, bool with_others)
{
	struct fib *fib = fib_create(s->family);
	struct rib *rib = rib_create(s->family);
	void (*lookup)(const void *, unsigned, unsigned) = s->family == IPV4 ? lookup4 : lookup6;
	const struct fib *fibs[BURST];
	double start, add, del, bulk, few;
	unsigned i, n;

	for (i = 0; i < s->n; i++)
		routes[i] = random_route(s);
	for (i = 0; i < BURST; i++)
		fibs[i] = fib;
	make_keys(s);
	start = cpu_seconds();
	add_routes(s, fib, rib);
	add = cpu_seconds() - start;
	rcu_poll();
	n = fib_routes(fib);
	bulk = measure(lookup, fibs, BURST);
	check_hits();
	few = measure(lookup, fibs, 2);
	printf("%-20s %8u routes  %5.2f M adds/s  FIB %6.1f RIB %5.1f MB  cycles per lookup: %5.1f in 256, %5.1f in 2",
	       s->name, n, s->n / add / 1e6, (double)fib_memory() / 1e6, (double)rib_memory() / 1e6, bulk, few);
	if (with_others)
		compare(s);
	start = cpu_seconds();
	del_routes(s, fib, rib);
	del = cpu_seconds() - start;
	printf("  %5.2f M dels/s\n", s->n / del / 1e6);
	fflush(stdout);
	fib_destroy(fib);
	rib_destroy(rib);
	rcu_poll();
}

// 1,000,000 IPv4 and 250,000 IPv6 routes at once.
static void run_both(enum mix mix)
{
	const struct set s4 = {"", IPV4, mix, 1000000}, s6 = {"", IPV6, mix, 250000};
	struct fib *fib4 = fib_create(IPV4), *fib6 = fib_create(IPV6);
	struct rib *rib4 = rib_create(IPV4), *rib6 = rib_create(IPV6);
	uint64_t before = resident();
	unsigned i;

	for (i = 0; i < s4.n; i++)
		routes[i] = random_route(&s4);
	add_routes(&s4, fib4, rib4);
	for (i = 0; i < s6.n; i++)
		routes[i] = random_route(&s6);
	add_routes(&s6, fib6, rib6);
	printf("%s: %u IPv4 and %u IPv6 routes: FIB %.1f MB, RIB %.1f MB, resident memory grew by %.1f MB\n",
	       mix == HOSTS ? "hosts" : "internet", fib_routes(fib4), fib_routes(fib6), (double)fib_memory() / 1e6,
	       (double)rib_memory() / 1e6, (double)(resident() - before) / 1e6);
	fib_destroy(fib4);
	fib_destroy(fib6);
	rib_destroy(rib4);
	rib_destroy(rib6);
	rcu_poll();
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0],          "--no-huge",         "-m", "1024", "--no-pci", "--no-shconf",
		       "--no-telemetry", "--log-level=error", NULL};
	bool with_others = false, memory = false, named = false;
	unsigned i;
	int arg;

	if (rte_eal_init(8, eal) < 0 || rcu_init() != 0 || fib_init(1ull << 30) != 0)
		return 1;
	routes = calloc(1000000, sizeof(*routes));
	keys = calloc(KEYS, sizeof(*keys));
	keys4 = calloc(KEYS, sizeof(*keys4));
	keys6 = calloc(KEYS, sizeof(*keys6));
	host4 = calloc(KEYS, sizeof(*host4));
	host6 = calloc(KEYS, sizeof(*host6));
	if (!routes || !keys || !keys4 || !keys6 || !host4 || !host6)
		return 1;
	memset(routes, 1, 1000000 * sizeof(*routes)); // resident before anything is measured
	for (arg = 1; arg < argc; arg++) {
		with_others |= strcmp(argv[arg], "--compare") == 0;
		memory |= strcmp(argv[arg], "--memory") == 0;
		named |= argv[arg][0] != '-';
	}
	if (memory) {
		run_both(INTERNET);
		run_both(HOSTS);
	}
	for (i = 0; i < RTE_DIM(sets) && !memory; i++) {
		bool wanted = !named;

		for (arg = 1; arg < argc; arg++)
			wanted |= strncmp(sets[i].name, argv[arg], strlen(argv[arg])) == 0;
		if (wanted)
			run(&sets[i], with_others);
	}
	return 0;
}
