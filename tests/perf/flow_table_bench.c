// SPDX-License-Identifier: Apache-2.0
// Cycles (of the time-stamp counter) per lookup of a flow: a chained table, the steps that make it faster, rte_hash,
// and the flow table. `corelane bench flow-table` runs it and prints its output, a line of JSON for each figure.
//
// All back ends hold the same flows at the same load, and take turns in one process. Each window looks up the keys
// that were looked up longest ago, so that no back end finds cache lines that another one has loaded.
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "dpdk/hugepages.h"
#include "base/rcu.h"
#include "flow_table_bench.h"

#define KEYS (1u << 20)
#define WINDOW (1u << 12) // shorter than the time slice of another program
#define WINDOWS (KEYS / WINDOW)
#define MAX_BACKENDS 16
#define MAX_ROUNDS 1024

struct point {
	unsigned log2_slots, load; // per cent
	bool v6;
};

static const unsigned hit_rates[] = {100, 90, 50, 0};
static struct flow_key *keys;
static flow_entry_t *wanted, out[FLOW_BATCH];
static void *tables[MAX_BACKENDS];
static unsigned rounds = 128, batch = FLOW_BATCH;
static const char *only;
static bool touch, huge;
static uint64_t random_state = 1;

static bool chosen(unsigned i)
{
	return (backends[i]->supported == NULL || backends[i]->supported()) &&
	       (!only || strstr(only, backends[i]->name));
}

static uint32_t n_flows(const struct point *p)
{
	return (uint32_t)((1ull << p->log2_slots) * p->load / 200);
}

// Hosts and ports in random order, as in production: a CRC spreads ascending numbers more evenly than chance would.
static uint32_t scattered(uint32_t number)
{
	number = number * 0x9e3779b1u & 0xfffffff;
	number = (number ^ number >> 14) * 0x85ebca6bu & 0xfffffff; // each step is invertible, so no number is repeated
	return number ^ number >> 15;
}

static struct flow_key key_of(uint32_t f, unsigned dir, bool v6)
{
	struct flow_key k = fixture_key(scattered(f), v6);

	return dir ? flow_key_reverse(&k) : k;
}

static void make_keys(const struct point *p, unsigned hit_rate)
{
	uint32_t i, n = n_flows(p);

	for (i = 0; i < KEYS; i++) {
		uint64_t r = fixture_random(&random_state);
		uint32_t f = 1 + (uint32_t)((r >> 32) * n >> 32);
		bool hit = r % 100 < hit_rate;

		wanted[i] = hit ? f << 1 | (r >> 8 & 1) : 0;
		keys[i] = key_of(hit ? f : f + (1u << 27), r >> 8 & 1, p->v6);
	}
}

static void print_head(const char *what, const struct point *p, unsigned i)
{
	printf("{\"what\":\"%s\",\"backend\":\"%s\",\"text\":\"%s\",\"flows\":%u,\"slots\":%llu,\"load\":%u,\"family\":"
	       "\"%s\"",
	       what, backends[i]->name, backends[i]->text, n_flows(p), 1ull << p->log2_slots, p->load,
	       p->v6 ? "ipv6" : "ipv4");
}

static bool insert_all(const struct point *p, unsigned i)
{
	uint32_t f, n = n_flows(p);
	uint64_t start = rte_rdtsc();
	double seconds;

	for (f = 1; f <= n; f++)
		if (!backends[i]->insert(tables[i], f << 1))
			return false;
	seconds = (double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz();
	print_head("insert", p, i);
	printf(",\"per_second\":%.0f}\n", n / seconds);
	return true;
}

static void remove_all(const struct point *p, unsigned i)
{
	uint32_t f, n = n_flows(p);
	uint64_t start = rte_rdtsc();

	for (f = 1; f <= n; f++)
		backends[i]->remove(tables[i], f << 1);
	print_head("remove", p, i);
	printf(",\"per_second\":%.0f}\n", n / ((double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz()));
}

static void build(const struct point *p)
{
	uint32_t f, n = n_flows(p);
	unsigned i;

	for (f = 1; f <= n; f++) {
		struct flow_key k = fixture_key(scattered(f), p->v6);

		fixture_flow(f, &k);
	}
	for (i = 0; backends[i]; i++) {
		if (backends[i]->create == NULL) { // it shares the previous table
			tables[i] = i ? tables[i - 1] : NULL;
			continue;
		}
		tables[i] = backends[i]->create(1ull << p->log2_slots, 2ull * n, p->v6);
		if (tables[i] && insert_all(p, i))
			continue;
		fprintf(stderr, "%s: no room for %u flows (%s)\n", backends[i]->name, n, rte_strerror(rte_errno));
		if (tables[i])
			backends[i]->destroy(tables[i]);
		tables[i] = NULL;
	}
}

static void take_down(const struct point *p)
{
	unsigned i;

	for (i = 0; backends[i]; i++) {
		if (tables[i] == NULL || backends[i]->create == NULL)
			continue;
		remove_all(p, i);
		backends[i]->destroy(tables[i]);
	}
	rcu_poll();
}

static void use(unsigned n) // reads what a packet needs of its flow
{
	uint32_t sum = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		__builtin_prefetch(flow_entry_dir(out[i]));
	for (i = 0; i < n; i++)
		sum += flow_entry_dir(out[i])->nexthop;
	__asm__ volatile("" : : "r"(sum)); // keeps the compiler from removing it
}

// The keys come from packets that have just been parsed: they are in the cache, whatever is looked up.
static double window(const struct point *p, unsigned i, unsigned w)
{
	void (*lookup)(const void *, const struct flow_key *, flow_entry_t *, unsigned) =
		p->v6 ? backends[i]->lookup6 : backends[i]->lookup;
	static struct flow_key parsed[FLOW_BATCH];
	uint64_t cycles = 0;
	unsigned k;

	for (k = w * WINDOW; k < (w + 1) * WINDOW; k += batch) {
		uint64_t start;

		memcpy(parsed, keys + k, batch * sizeof(*keys));
		start = rte_rdtsc_precise();
		lookup(tables[i], parsed, out, batch);
		if (touch)
			use(batch);
		cycles += rte_rdtsc_precise() - start;
	}
	return (double)cycles / WINDOW;
}

static void verify(const struct point *p, unsigned i)
{
	unsigned k;

	for (k = 0; k < WINDOW; k += batch) {
		(p->v6 ? backends[i]->lookup6 : backends[i]->lookup)(tables[i], keys + k, out, batch);
		if (memcmp(out, wanted + k, batch * sizeof(*out)) == 0)
			continue;
		fprintf(stderr, "%s finds other flows than there are\n", backends[i]->name);
		exit(3);
	}
}

static int compare_double(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void measure(const struct point *p, unsigned hit_rate)
{
	static double cycles[MAX_BACKENDS][MAX_ROUNDS];
	unsigned i, r, w = 0;

	make_keys(p, hit_rate);
	for (i = 0; backends[i]; i++)
		if (tables[i] && chosen(i))
			verify(p, i);
	for (r = 0; r < rounds; r++)
		for (i = 0; backends[i]; i++)
			if (tables[i] && chosen(i))
				cycles[i][r] = window(p, i, w++ % WINDOWS);
	for (i = 0; backends[i]; i++) {
		if (tables[i] == NULL || !chosen(i))
			continue;
		qsort(cycles[i], rounds, sizeof(double), compare_double);
		print_head("lookup", p, i);
		printf(",\"hit\":%u,\"batch\":%u,\"cycles\":%.1f,\"low\":%.1f,\"high\":%.1f}\n", hit_rate, batch,
		       cycles[i][rounds / 2], cycles[i][rounds / 10], cycles[i][rounds - 1 - rounds / 10]);
	}
	fflush(stdout);
}

static void run(const struct point *p)
{
	unsigned i;

	build(p);
	for (i = 0; i < RTE_DIM(hit_rates); i++)
		measure(p, hit_rates[i]);
	take_down(p);
}

static int start_eal(char *name, unsigned megabytes)
{
	char mb[16], level[] = "--log-level=error";
	char *with_huge[] = {name, "-m", mb, "--in-memory", "--no-pci", "--no-telemetry", level, NULL};
	char *without[] = {name, "--no-huge", "-m", mb, "--no-pci", "--no-shconf", "--no-telemetry", level, NULL};

	snprintf(mb, sizeof(mb), "%u", megabytes);
	huge = hugepages_free_mb() >= megabytes;
	return huge ? rte_eal_init(7, with_huge) : rte_eal_init(8, without);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set) != 0)
		fprintf(stderr, "CPU %d cannot be used\n", cpu);
}

static int usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--quick] [--cpu N] [--slots LOG2,...] [--load PERCENT,...] [--rounds N] [--batch N] "
		"[--only NAMES] "
		"[--touch]\n"
		"       [--ipv6]\n",
		name);
	return 2;
}

static unsigned list(char *text, unsigned *values)
{
	unsigned n = 0;
	char *part, *rest = NULL;

	for (part = strtok_r(text, ",", &rest); part && n < 16; part = strtok_r(NULL, ",", &rest))
		values[n++] = (unsigned)strtoul(part, NULL, 10);
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"quick", 0, 0, 'q'},  {"cpu", 1, 0, 'c'},
						{"slots", 1, 0, 's'},  {"load", 1, 0, 'l'},
						{"rounds", 1, 0, 'r'}, {"only", 1, 0, 'o'},
						{"touch", 0, 0, 't'},  {"ipv6", 0, 0, '6'},
						{"batch", 1, 0, 'b'},  {0}};
	unsigned sizes[16] = {11, 18, 21}, n_sizes = 3, loads[16] = {90}, n_loads = 1, i, k, largest = 0;
	struct point p = {0};
	int opt, cpu = -1;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'q':
			rounds = 48;
			break;
		case 'c':
			cpu = atoi(optarg);
			break;
		case 's':
			n_sizes = list(optarg, sizes);
			break;
		case 'l':
			n_loads = list(optarg, loads);
			break;
		case 'r':
			rounds = RTE_MIN((unsigned)atoi(optarg), (unsigned)MAX_ROUNDS);
			break;
		case 'b':
			batch = (unsigned)atoi(optarg);
			break;
		case 'o':
			only = optarg;
			break;
		case 't':
			touch = true;
			break;
		case '6':
			p.v6 = true;
			break;
		default:
			return usage(argv[0]);
		}
	}
	for (i = 0; i < n_sizes; i++)
		largest = RTE_MAX(largest, sizes[i]);
	for (i = 0; i < n_loads; i++)
		if (loads[i] < 1 || loads[i] > 98)
			return usage(argv[0]);
	if (rounds == 0 || batch == 0 || batch > FLOW_BATCH || (batch & (batch - 1)) || largest < 10 || largest > 25)
		return usage(argv[0]);
	if (start_eal(argv[0], 64 + (unsigned)((1ull << largest) * (p.v6 ? 80 : 48) >> 20)) < 0 || rcu_init() != 0)
		return 1;
	pin(cpu);
	if (flow_init((uint32_t)(1ull << largest) / 2 + FLOW_CAPACITY_MIN) != 0 || flow_start(NULL) != 0) {
		fprintf(stderr, "too little memory for %llu flows\n", (1ull << largest) / 2);
		return 1;
	}
	while (flow_grow_step(UINT32_MAX))
		rcu_poll();
	keys = calloc(KEYS, sizeof(*keys));
	wanted = calloc(KEYS, sizeof(*wanted));
	if (!keys || !wanted)
		return 1;
	printf("{\"what\":\"machine\",\"tsc_hz\":%llu,\"hugepages\":%s}\n", (unsigned long long)rte_get_tsc_hz(),
	       huge ? "true" : "false");
	for (i = 0; i < n_sizes; i++) {
		for (k = 0; k < n_loads; k++) {
			p.log2_slots = sizes[i];
			p.load = loads[k];
			fixture_secret(i * 100 + k);
			run(&p);
		}
	}
	return 0;
}
