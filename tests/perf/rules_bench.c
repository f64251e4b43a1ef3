// SPDX-License-Identifier: Apache-2.0
// Cycles of rules_classify() by the number of rules in the port's list, searched rule by rule and compiled, and the
// time of compiling. Keys are drawn from all rules; half of them have a port that the rule does not match. Run it
// pinned: taskset -c 1 build/tests/perf/rules_bench. The fastest tenth counts, so that a busy machine disturbs little.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>

#include "policy/rules_private.h"
#include "testing/router_fixture.h"

#define KEYS 256
#define ROUNDS 2000

static struct error err;

static uint32_t rnd(uint32_t n)
{
	static uint32_t x = 1;

	x = x * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)x * n) >> 32);
}

static struct rule draw(uint32_t id, uint8_t family)
{
	struct rule r = {.id = id, .allow = true, .proto = rnd(2) ? 6 : 17, .ports = {{0, 65535}, {0, 0}}};
	unsigned i;

	r.src = (struct ip_prefix){.addr.family = family, .len = family == IPV4 ? 24 : 64};
	for (i = 0; i < (family == IPV4 ? 3u : 8u); i++)
		r.src.addr.bytes[i] = i == 0 ? 10 : (uint8_t)rnd(256);
	r.ports[1][0] = (uint16_t)rnd(60000);
	r.ports[1][1] = (uint16_t)(r.ports[1][0] + (rnd(2) ? 0 : rnd(5000)));
	return r;
}

static struct flow_key key_of(const struct rule *r)
{
	struct flow_key k = {.proto = (uint8_t)r->proto, .family = r->src.addr.family};

	memcpy(k.family == IPV4 ? (void *)&k.src4 : k.src6, r->src.addr.bytes, ip_bytes(k.family));
	k.dst_port = rte_cpu_to_be_16((uint16_t)(r->ports[1][0] + rnd(2)));
	k.src_port = (uint16_t)rnd(65536);
	return k;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double cycles(const struct flow_key *keys)
{
	static uint64_t spent[ROUNDS];
	struct rule_verdict v;
	unsigned r, i, sum = 0;

	for (r = 0; r < ROUNDS; r++) {
		spent[r] = rte_rdtsc();
		for (i = 0; i < KEYS; i++) {
			rules_classify(RED0, RULES_EGRESS, &keys[i], &v);
			sum += v.rule;
		}
		spent[r] = rte_rdtsc() - spent[r];
	}
	qsort(spent, ROUNDS, sizeof(*spent), compare);
	return sum ? (double)spent[ROUNDS / 10] / KEYS : 0;
}

static double settle(struct rule_list *l)
{
	uint64_t begun = rte_rdtsc();

	while (l->wanted || l->running) {
		rules_poll();
		usleep(100);
	}
	return (double)(rte_rdtsc() - begun) * 1000 / (double)rte_get_tsc_hz();
}

static void measure(unsigned n, uint8_t family)
{
	struct rule_list *l = rule_list_add("bench", false, &err);
	struct port_config cfg = router_config(RED0);
	struct rule *r = calloc(n, sizeof(*r));
	struct flow_key keys[KEYS];
	double walked, ms, one;
	uint64_t begun;
	unsigned i;

	for (i = 0; i < n; i++)
		r[i] = draw(i + 1, family);
	for (i = 0; i < KEYS; i++)
		keys[i] = key_of(&r[rnd(n)]);
	cfg.stateful = true;
	rules_config_edit(&cfg)->lists[RULES_EGRESS] = rule_list_id(l);
	router_set(RED0, &cfg);
	if (rules_add(l, r, n, false, &err) < 0)
		rte_panic("%s\n", err.message);
	walked = cycles(keys);
	ms = settle(l);
	begun = rte_rdtsc();
	rules_del(l, (uint32_t[]){n}, 1, &err);
	one = (double)(rte_rdtsc() - begun) * 1000 / (double)rte_get_tsc_hz();
	settle(l);
	printf("IPv%u %6u rules: walked %8.0f, compiled %5.0f cycles; compiling %7.1f ms, a change %.2f ms\n", family,
	       n, walked, cycles(keys), ms, one);
	rules_config_edit(&cfg)->lists[RULES_EGRESS] = 0;
	router_set(RED0, &cfg);
	rule_list_del("bench", &err);
	router_poll();
	free(r);
}

int main(void)
{
	static const unsigned sizes[] = {1, 4, 8, 9, 16, 100, 1000, 10000};
	unsigned i, f;

	router_setup(NULL);
	for (f = 0; f < 2; f++)
		for (i = 0; i < RTE_DIM(sizes); i++)
			measure(sizes[i], f ? IPV6 : IPV4);
	return 0;
}
