// SPDX-License-Identifier: Apache-2.0
// Long lists, compared with a search rule by rule, and changes while a worker evaluates them.
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "base/rcu.h"
#include "base/sanitizers.h"
#include "policy/rules_testlib.h"
#include "testing/router_fixture.h"

// --- Ten thousand rules, compared with a search rule by rule. ---

static uint32_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * n) >> 32);
}

static struct ip_addr some_addr(uint8_t family)
{
	struct ip_addr a = {.family = family};
	unsigned i;

	for (i = 0; i < ip_bytes(family); i++)
		a.bytes[i] = (uint8_t)(i == 0 ? 10 : i % 2 ? rnd(4) : rnd(8) * 32);
	return a;
}

static struct ip_prefix some_prefix(uint8_t family)
{
	struct ip_addr a = some_addr(family);

	if (rnd(4) == 0)
		return (struct ip_prefix){0};
	return ip_prefix_of(&a, (uint8_t)(ip_bits(family) - rnd(ip_bits(family) / 2)));
}

static struct rule some_rule(uint32_t id)
{
	static const int16_t protocols[] = {-1,           IPPROTO_TCP, IPPROTO_UDP,  IPPROTO_TCP,
					    IPPROTO_SCTP, 47,          IPPROTO_ICMP, IPPROTO_ICMPV6};
	uint8_t family = rnd(2) ? IPV4 : IPV6;
	struct rule r = {.id = id, .allow = rnd(2), .proto = protocols[rnd(RTE_DIM(protocols))]};
	unsigned i;

	if (r.proto == IPPROTO_ICMP || r.proto == IPPROTO_ICMPV6)
		family = r.proto == IPPROTO_ICMP ? IPV4 : IPV6;
	r.src = some_prefix(family);
	do {
		r.dst = some_prefix(family);
	} while (r.src.addr.family == 0 && r.dst.addr.family == 0);
	for (i = 0; i < 2; i++) {
		uint16_t most = r.proto == IPPROTO_ICMP || r.proto == IPPROTO_ICMPV6 ? 255 : 65535;
		bool has = r.proto > 0 && r.proto != 47;

		r.ports[i][0] = has && rnd(2) ? (uint16_t)rnd(RTE_MIN(most, 200u)) : 0;
		r.ports[i][1] = r.ports[i][0] && rnd(3) ? r.ports[i][0]
				: has && rnd(2)         ? (uint16_t)(r.ports[i][0] + rnd(50))
							: most;
	}
	return r;
}

static struct flow_key some_key(void)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP,  IPPROTO_SCTP,  47,
					    50,          IPPROTO_ICMP, IPPROTO_ICMPV6};
	uint8_t family = rnd(2) ? IPV4 : IPV6;
	struct ip_addr s = some_addr(family), d = some_addr(family);
	struct flow_key k = {.proto = protocols[rnd(RTE_DIM(protocols))], .family = family};

	if (rnd(3) == 0) // where few rules are
		s.bytes[0] = d.bytes[0] = 11;
	memcpy(family == IPV4 ? (void *)&k.src4 : k.src6, s.bytes, ip_bytes(family));
	memcpy(family == IPV4 ? (void *)&k.dst4 : k.dst6, d.bytes, ip_bytes(family));
	if (k.proto != 47 && k.proto != 50) {
		k.src_port = htons((uint16_t)rnd(300));
		k.dst_port = htons((uint16_t)rnd(300));
	}
	if (k.proto == (family == IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		k.dst_port = rnd(2) ? k.src_port : 0;
	return k;
}

static bool side_matches(const struct ip_prefix *p, const void *addr, uint8_t family)
{
	struct ip_addr a = {.family = family};

	memcpy(a.bytes, addr, ip_bytes(family));
	return p->addr.family == 0 || (p->addr.family == family && ip_prefix_covers(p, &a));
}

static bool rule_matches(const struct rule *r, const struct flow_key *k)
{
	unsigned sport = ntohs(k->src_port), dport = ntohs(k->dst_port);

	if (r->proto == IPPROTO_ICMP && k->family == 6)
		return false;
	if (r->proto == IPPROTO_ICMPV6 && k->family == 4)
		return false;
	if (k->proto == (k->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
		unsigned type = sport == dport ? (k->family == 4 ? 8 : 128) : sport / 256,
			 code = sport == dport ? 0 : sport % 256;

		sport = type;
		dport = code;
	}
	return (r->proto < 0 || r->proto == k->proto) &&
	       side_matches(&r->src, k->family == 4 ? (const void *)&k->src4 : k->src6, k->family) &&
	       side_matches(&r->dst, k->family == 4 ? (const void *)&k->dst4 : k->dst6, k->family) &&
	       sport >= r->ports[0][0] && sport <= r->ports[0][1] && dport >= r->ports[1][0] && dport <= r->ports[1][1];
}

static uint32_t reference(const struct rule_list *l, const struct flow_key *k)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (rule_matches(&l->rules[i], k))
			return l->rules[i].id;
	return 0;
}

static unsigned compare(const struct rule_list *l, unsigned n)
{
	unsigned found = 0;

	while (n-- > 0) {
		struct flow_key k = some_key();
		uint32_t want = reference(l, &k);

		assert_int_equal(rules_test_decides(l, k), want);
		found += want != 0;
	}
	return found;
}

// --- Shadows. ---

static bool inside(const struct ip_prefix *a, const struct ip_prefix *b)
{
	return a->addr.family == 0 ||
	       (a->addr.family == b->addr.family && a->len <= b->len && ip_prefix_covers(a, &b->addr));
}

static bool all_of(const struct rule *a, const struct rule *b)
{
	return (a->proto < 0 || a->proto == b->proto) && inside(&a->src, &b->src) && inside(&a->dst, &b->dst) &&
	       a->ports[0][0] <= b->ports[0][0] && a->ports[0][1] >= b->ports[0][1] &&
	       a->ports[1][0] <= b->ports[1][0] && a->ports[1][1] >= b->ports[1][1];
}

static unsigned check_shadows(const struct rule_list *l)
{
	unsigned found = 0;
	size_t i, j;

	for (i = 0; i < l->n; i++) {
		for (j = 0; j < i && !all_of(&l->rules[j], &l->rules[i]); j++)
			;
		assert_int_equal(l->rules[i].shadowed_by, j < i ? l->rules[j].id : 0);
		found += j < i;
	}
	return found;
}

// Both search methods agree with a plain search, for many rules and for few.
static void shadows_of_many(void **state)
{
	struct rule_list *l = rules_test_list("shadows", false);
	struct rule *r = calloc(1000, sizeof(*r));
	uint32_t i, ids[100];

	for (i = 0; i < 1000; i++)
		r[i] = some_rule(i + 1);
	r[400].proto = -1; // covers many later rules
	r[400].src = r[400].dst = (struct ip_prefix){0};
	memcpy(r[400].ports, (uint16_t[2][2]){{0, 50}, {0, 65535}}, sizeof(r[400].ports));
	assert_int_equal(rules_add(l, r, 1000, false, &rules_test_err), 0);
	assert_in_range(check_shadows(l), 10, 990);
	for (i = 0; i < 30; i++) {
		struct rule one = some_rule(1 + (i * 37) % 1100);

		assert_int_equal(rules_add(l, &one, 1, true, &rules_test_err), 0);
		check_shadows(l);
	}
	for (i = 0; i < 100; i++)
		ids[i] = i * 9 + 2;
	assert_int_equal(rules_del(l, ids, 100, &rules_test_err), 0);
	check_shadows(l);
	assert_int_equal(rules_del(l, (uint32_t[]){401}, 1, &rules_test_err), 0);
	check_shadows(l);
	free(r);
	rules_test_forget("shadows");
}

// --- Lookup. ---

static void many(void **state)
{
	struct rule_list *l = rules_test_list("large", false);
	struct rule *r = calloc(4096, sizeof(*r));
	uint32_t i, ids[100], n = TSAN_ROUNDS(10000u, 1500u);
	uint64_t begun = rte_rdtsc();
	double ms = (double)rte_get_tsc_hz() / 1000;
	unsigned found;

	for (i = 1; i <= n; i++) {
		r[(i - 1) % 4096] = some_rule(i * 7);
		if (i % 4096 == 0 || i == n)
			assert_int_equal(rules_add(l, r, (i - 1) % 4096 + 1, false, &rules_test_err), 0);
	}
	print_message("# %u rules were added in %.0f ms\n", n, (double)(rte_rdtsc() - begun) / ms);
	found = compare(l, 2000); // walked
	assert_in_range(found, 200, 1990);
	begun = rte_rdtsc();
	rules_test_settle();
	print_message("# and compiled in %.0f ms, %u + %u entries\n", (double)(rte_rdtsc() - begun) / ms, l->entries[0],
		      l->entries[1]);
	assert_non_null(l->set->base->acl[0]);
	compare(l, 4000);
	begun = rte_rdtsc();
	for (i = 0; i < 100; i++) { // changes on top of the compiled list
		ids[i] = i * 63 + 7;
		r[i] = some_rule(i * 11 + 3);
	}
	assert_int_equal(rules_del(l, ids, 100, &rules_test_err), 0);
	assert_int_equal(rules_add(l, r, 100, true, &rules_test_err), 0);
	print_message("# two changes took %.2f ms\n", (double)(rte_rdtsc() - begun) / ms);
	compare(l, 2000);
	rules_test_settle();
	compare(l, 4000);
	free(r);
	rules_test_forget("large");
}

// --- Changes while a worker evaluates rules. ---

static struct {
	bool stop;
	uint64_t asked, wrong;
} reader;

static void *read_on(void *arg)
{
	struct flow_key k = rules_test_key(IPPROTO_TCP, "10.0.0.2", 1000, "10.0.0.3", 80);
	struct rule_verdict v;

	rcu_reader_online(9);
	while (!__atomic_load_n(&reader.stop, __ATOMIC_RELAXED)) {
		rules_classify(RED0, RULES_EGRESS, &k, &v);
		reader.asked++;
		reader.wrong += v.rule != 100 && v.rule != 50; // rule 50 is added and removed in front of 100
		rcu_quiescent(9);
	}
	rcu_reader_offline(9);
	return NULL;
}

static void changes_under_traffic(void **state)
{
	struct port_config red0 = router_config(RED0);
	struct rte_malloc_socket_stats before, after;
	struct rule_list *l;
	size_t heap = 0;
	pthread_t thread;
	unsigned round, i;

	red0.stateful = true;
	for (round = 0; round < 2; round++) { // the first round fills what stays allocated
		if (round == 1)
			heap = mallinfo2().uordblks;
		rte_malloc_get_socket_stats(0, &before);
		l = rules_test_list("traffic", false);
		rules_test_add(l, "100 allow");
		rules_config_edit(&red0)->lists[RULES_EGRESS] = l->id;
		router_set(RED0, &red0);
		rules_test_pad(l);
		reader.stop = false;
		assert_int_equal(pthread_create(&thread, NULL, read_on, NULL), 0);
		for (i = 0; i < TSAN_ROUNDS(3000u, 500u); i++) {
			rules_test_add(l, "50 deny --protocol tcp");
			rules_poll();
			rcu_poll();
			if (i % 100 == 0)
				rules_test_settle();
			rules_test_del(l, 50);
			rules_poll();
			rcu_poll();
		}
		__atomic_store_n(&reader.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		assert_int_equal(reader.wrong, 0);
		assert_true(reader.asked > 0);
		rules_config_edit(&red0)->lists[RULES_EGRESS] = 0;
		router_set(RED0, &red0);
		rules_test_forget("traffic");
		while (rcu_pending())
			rcu_poll();
		rte_malloc_get_socket_stats(0, &after);
	}
	assert_int_equal(after.heap_allocsz_bytes, before.heap_allocsz_bytes);
	assert_in_range(mallinfo2().uordblks, 0, heap + 65536);
}

// The counters of a list that is deleted are cleared in steps. Those that are not cleared yet are not lost to others.
static void deleted_in_steps(void **state)
{
	struct rule_list *l = rules_test_list("large", false);
	struct rule *r = calloc(4096, sizeof(*r));
	unsigned left, i;

	while (rule_slots_leaving() > 0) // those of other tests
		rules_poll();
	left = rule_slots_left();
	for (i = 0; i < 4096; i++)
		r[i] = (struct rule){.id = i + 1, .proto = 6, .ports = {{0, 65535}, {(uint16_t)i, (uint16_t)i}}};
	assert_int_equal(rules_add(l, r, 4096, false, &rules_test_err), 0);
	free(r);
	assert_int_equal(rule_slots_left(), left - 4096);
	assert_int_equal(rule_list_del("large", &rules_test_err), 0);
	rcu_poll();
	assert_int_equal(rule_slots_left(), left + 1);
	for (i = 4096 + 1; i > RULE_SLOTS_TURN; i -= RULE_SLOTS_TURN) {
		assert_int_equal(rule_slots_leaving(), i);
		rules_poll();
	}
	assert_int_equal(rule_slots_leaving(), i);
	rules_poll();
	assert_int_equal(rule_slots_leaving(), 0);
	assert_int_equal(rule_slots_left(), left + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shadows_of_many),
		cmocka_unit_test(many),
		cmocka_unit_test(deleted_in_steps),
		cmocka_unit_test(changes_under_traffic),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
