// SPDX-License-Identifier: Apache-2.0
// What single rules, groups and ports decide.
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "policy/rules_testlib.h"
#include "testing/router_fixture.h"
#include "worker/worker.h"

// --- Each field. ---

static void check_fields(struct rule_list *l)
{
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_TCP, "10.1.2.3", 1, "192.0.2.1", 80)), 10);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_TCP, "10.1.2.3", 1, "192.0.2.1", 81)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_UDP, "10.1.2.3", 1, "192.0.2.1", 80)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_TCP, "11.1.2.3", 1, "192.0.2.1", 80)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_UDP, "1.1.1.1", 999, "192.0.2.1", 1)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_UDP, "1.1.1.1", 1000, "192.0.2.1", 1)), 20);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_UDP, "1.1.1.1", 1999, "192.0.2.255", 1)), 20);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_UDP, "1.1.1.1", 2000, "192.0.2.1", 1)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_UDP, "1.1.1.1", 1999, "192.0.3.0", 1)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMP, "1.1.1.1", 7, "1.1.1.2", 7)),
			 30); // echo, identifier 7
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMP, "1.1.1.1", 0, "1.1.1.2", 0)),
			 30); // identifier 0
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMP, "1.1.1.1", 0x0304, "1.1.1.2", 0)),
			 31); // fragmentation needed
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMP, "1.1.1.1", 0x0305, "1.1.1.2", 0)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMPV6, "2001:db8::1", 7, "2001:db8::2", 7)), 40);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMPV6, "2001:db8::1", 0x0100, "2001:db8::2", 0)),
			 41);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMPV6, "2001:db8::1", 0x8500, "2001:db8::2", 0)),
			 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_ICMP, "2001:db8::1", 7, "2001:db8::2", 7)),
			 0); // of the other family
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_SCTP, "2001:db8:1::1", 5, "2001:db8:2::1", 5)),
			 50);
	assert_int_equal(
		rules_test_decides(l, rules_test_key(IPPROTO_SCTP, "2001:db8:1::1", 5, "2001:db8:2:8000::1", 5)), 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_SCTP, "2001:db8:1::2", 5, "2001:db8:2::1", 5)),
			 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(IPPROTO_SCTP, "2001:db8:1::1", 4, "2001:db8:2::1", 5)),
			 0);
	assert_int_equal(rules_test_decides(l, rules_test_key(47, "1.1.1.1", 0, "2.2.2.2", 0)), 60);
	assert_int_equal(rules_test_decides(l, rules_test_key(47, "::1", 0, "::2", 0)), 60);
	assert_int_equal(rules_test_decides(l, rules_test_key(0, "::1", 0, "::2", 0)), 61);
	assert_int_equal(rules_test_decides(l, rules_test_key(46, "1.1.1.1", 0, "2.2.2.2", 0)), 0);
}

static void fields(void **state)
{
	struct rule_list *l = rules_test_list("fields", false);

	rules_test_add(l, "10 allow --protocol tcp --source 10.0.0.0/8 --destination-ports 80");
	rules_test_add(l, "20 deny --protocol udp --destination 192.0.2.0/24 --source-ports 1000-1999 --log");
	rules_test_add(l, "30 allow --protocol icmp --icmp-type 8");
	rules_test_add(l, "31 allow --protocol icmp --icmp-type 3 --icmp-code 4");
	rules_test_add(l, "40 allow --protocol icmpv6 --icmp-type 128-129");
	rules_test_add(l, "41 allow --protocol icmpv6 --icmp-type 1-4");
	rules_test_add(
		l,
		"50 allow --protocol sctp --source 2001:db8:1::1/128 --destination 2001:db8:2::/49 --source-ports 5");
	rules_test_add(l, "60 allow --protocol 47");
	rules_test_add(l, "61 allow --protocol 0");
	check_fields(l);
	rules_test_pad(l);
	check_fields(l);
	rules_test_forget("fields");
}

static void order_and_defaults(void **state)
{
	struct rule_list *l = rules_test_list("order", true);
	struct flow_key k = rules_test_key(IPPROTO_TCP, "10.0.0.1", 1000, "10.0.0.2", 22);
	struct rule_verdict v;

	rules_lookup(l->set, &k, &v);
	assert_false(v.denied);
	assert_int_equal(rule_list_set(l, false), 0);
	rules_lookup(l->set, &k, &v);
	assert_true(v.denied && v.rule == 0);
	rules_test_add(l, "16777216 allow");
	assert_int_equal(rules_test_decides(l, k), LIMIT_RULE_ID_MAX);
	rules_test_add(l, "200 deny --protocol tcp --log");
	rules_test_add(l, "300 allow --protocol tcp --destination-ports 22");
	assert_int_equal(rules_test_decides(l, k), 200);
	rules_lookup(l->set, &k, &v);
	assert_true(v.denied && v.log);
	rules_test_pad(l);
	assert_int_equal(rules_test_decides(l, k), 200);
	rules_test_add(l, "1 allow --protocol tcp --destination-ports 22");
	assert_int_equal(rules_test_decides(l, k), 1); // not compiled yet
	rules_test_settle();
	assert_int_equal(rules_test_decides(l, k), 1);
	rules_test_del(l, 1);
	assert_int_equal(rules_test_decides(l, k), 200); // compiled, and the rule is deleted
	rules_test_del(l, 200);
	assert_int_equal(rules_test_decides(l, k), 300);
	rules_test_settle();
	rules_test_del(l, 300);
	rules_test_del(l, 16777216);
	assert_int_equal(rules_test_decides(l, k), 0);
	rules_test_forget("order");
}

static void refusals(void **state)
{
	static const struct {
		const char *line, *field;
	} bad[] = {
		{"1 allow --destination-ports 80", "rule.destination_ports"},
		{"1 allow --protocol icmp --source-ports 80", "rule.source_ports"},
		{"1 allow --protocol tcp --source-ports 80-79", "rule.source_ports"},
		{"1 allow --protocol tcp --source-ports 65536", "rule.source_ports"},
		{"1 allow --protocol tcp --source-ports 1-2-3", "rule.source_ports"},
		{"1 allow --protocol tcp --source-ports -1", "rule.source_ports"},
		{"1 allow --protocol tcp --source-ports 1-", "rule.source_ports"},
		{"1 allow --protocol tcp --icmp-type 8", "rule.icmp_type"},
		{"1 allow --protocol icmp --icmp-type 256", "rule.icmp_type"},
		{"1 allow --protocol icmp --icmp-code 1", "rule.icmp_code"},
		{"1 allow --protocol icmp --icmp-type 0-255 --icmp-code 1", "rule.icmp_code"},
		{"1 allow --protocol 256", "rule.protocol"},
		{"1 allow --protocol ip", "rule.protocol"},
		{"1 allow --source 10.0.0.1/8", "rule.source"},
		{"1 allow --source 10.0.0.0/8 --destination 2001:db8::/32", "rule.destination"},
		{"1 allow --protocol icmp --source 2001:db8::/32", "rule.protocol"},
		{"1 allow --protocol icmpv6 --destination 10.0.0.0/8", "rule.protocol"},
		{"1 allow --source-group nobody", "rule.source_group"},
	};
	struct rule_list *l = rules_test_list("bad", false);
	struct rule r[3];
	uint32_t ids[] = {1, 2};
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		memset(&rules_test_err, 0, sizeof(rules_test_err));
		assert_true(rules_test_parse(bad[i].line, &r[0]) < 0);
		assert_string_equal(rules_test_err.field, bad[i].field);
		assert_true(rules_test_err.message[0]);
	}
	assert_int_equal(rules_test_parse("1 allow", &r[0]), 0);
	assert_int_equal(rules_test_parse("2 deny", &r[1]), 0);
	assert_int_equal(rules_test_parse("1 deny --log", &r[2]), 0);
	assert_int_equal(rules_add(l, r, 3, true, &rules_test_err), -EINVAL); // 1 twice
	assert_int_equal(rules_test_err.index, 2);
	assert_int_equal(l->n, 0);
	assert_int_equal(rules_add(l, r, 1, false, &rules_test_err), 0);
	assert_int_equal(rules_add(l, &r[1], 2, false, &rules_test_err), -EEXIST);
	assert_int_equal(rules_test_err.index, 1);
	assert_int_equal(l->n, 1);
	assert_int_equal(rules_add(l, &r[1], 2, true, &rules_test_err), 0);
	assert_int_equal(l->n, 2);
	assert_true(rules_get(l, 1)->log);
	ids[1] = 3;
	assert_int_equal(rules_del(l, ids, 2, &rules_test_err), -ENOENT);
	assert_int_equal(rules_test_err.index, 1);
	assert_int_equal(l->n, 2);
	ids[1] = 1;
	assert_int_equal(rules_del(l, ids, 2, &rules_test_err), 0); // named twice
	assert_int_equal(l->n, 1);
	assert_null(rule_list_add("bad", false, &rules_test_err));
	assert_int_equal(rules_test_err.code, EEXIST);
	assert_int_equal(rule_list_del("nobody", &rules_test_err), -ENOENT);
	rules_test_forget("bad");
}

// --- Groups. ---

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_parse_prefix(text, NULL, &p, &rules_test_err), 0);
	return p;
}

static void groups(void **state)
{
	struct ip_prefix first[] = {prefix("10.0.0.0/8"), prefix("2001:db8::/32"), prefix("10.0.0.0/8")};
	struct ip_prefix second[] = {prefix("192.0.2.0/24"), prefix("198.51.100.0/24")};
	struct address_group *a = address_group_add("a", first, 3, &rules_test_err),
			     *b = address_group_add("b", second, 2, &rules_test_err);
	struct rule_list *l = rules_test_list("one", false), *m = rules_test_list("two", false);
	struct flow_key k4 = rules_test_key(6, "10.0.0.1", 1, "192.0.2.1", 2),
			k6 = rules_test_key(6, "2001:db8::1", 1, "::2", 2);
	struct flow_key k = rules_test_key(6, "192.0.2.9", 1, "198.51.100.1", 2);

	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(a->n, 2); // one prefix was given twice
	rules_test_add(l, "5 allow --source-group a --destination-group b");
	rules_test_add(l, "6 allow --protocol tcp --source-group a");
	rules_test_add(m, "7 allow --destination-group b");
	assert_int_equal(l->entries[0], 2 + 1);
	assert_int_equal(l->entries[1], 1);
	assert_int_equal(rules_test_decides(l, k4), 5);
	assert_int_equal(rules_test_decides(l, k6), 6);
	assert_int_equal(rules_test_decides(l, k), 0);
	assert_int_equal(rules_test_decides(m, k), 7);
	assert_int_equal(a->rules, 2);
	assert_int_equal(b->rules, 2);
	assert_int_equal(address_group_del("a", &rules_test_err), -EBUSY);
	assert_string_equal(rules_test_err.message,
			    "group.name 'a': is in use by rule 5 of list 'one' (2 references in all)");
	rules_test_pad(l);
	assert_int_equal(rules_test_decides(l, k4), 5);
	assert_int_equal(address_group_set(a, second, 2, &rules_test_err), 0); // both lists are compiled anew
	assert_int_equal(rules_test_decides(l, k4), 0);
	assert_int_equal(rules_test_decides(l, k6), 0);
	assert_int_equal(rules_test_decides(l, k), 5);
	rules_test_settle();
	assert_int_equal(rules_test_decides(l, k), 5);
	assert_int_equal(address_group_set(a, NULL, 0, &rules_test_err), 0); // matches nothing
	assert_int_equal(rules_test_decides(l, k), 0);
	rules_test_del(l, 5);
	rules_test_del(l, 6);
	assert_int_equal(a->rules, 0);
	assert_int_equal(address_group_del("a", &rules_test_err), 0);
	rules_test_forget("one");
	rules_test_forget("two");
	assert_int_equal(b->rules, 0);
	assert_int_equal(address_group_del("b", &rules_test_err), 0);
}

// A rule with two large groups is refused, and so is a change of a group that would result in one.
static void too_many_entries(void **state)
{
	struct ip_prefix *many = malloc(LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS * sizeof(*many));
	struct rule_list *l = rules_test_list("many", false);
	struct address_group *g;
	struct rule r;
	unsigned i;

	for (i = 0; i < LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS; i++)
		many[i] = ip_prefix_of(&(struct ip_addr){.family = IPV4, .bytes = {10, 0, i >> 8, i & 255}}, 32);
	g = address_group_add("g", many, LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS, &rules_test_err);
	assert_non_null(g);
	assert_int_equal(rules_test_parse("9 allow --source-group g --destination-group g", &r), 0);
	assert_int_equal(rules_add(l, &r, 1, false, &rules_test_err), -ENOSPC);
	assert_int_equal(g->rules, 0);
	assert_int_equal(address_group_set(g, many, 4, &rules_test_err), 0);
	assert_int_equal(rules_add(l, &r, 1, false, &rules_test_err), 0);
	assert_int_equal(address_group_set(g, many, LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS, &rules_test_err), -ENOSPC);
	assert_int_equal(g->n, 4);
	assert_int_equal(rules_test_decides(l, rules_test_key(6, "10.0.0.3", 1, "10.0.0.0", 1)), 9);
	rules_test_forget("many");
	assert_int_equal(address_group_del("g", &rules_test_err), 0);
	free(many);
}

// --- Shadows. ---

static uint32_t shadow(const struct rule_list *l, uint32_t id)
{
	return rules_get(l, id)->shadowed_by;
}

static void shadows(void **state)
{
	struct rule_list *l = rules_test_list("shadows", false);
	struct rule r;

	rules_test_add(l, "10 allow --protocol tcp --destination 10.0.0.0/8 --destination-ports 80-443");
	rules_test_add(l, "20 deny --protocol tcp --destination 10.1.0.0/16 --destination-ports 443");
	rules_test_add(l, "21 deny --protocol tcp --destination 10.1.0.0/16 --destination-ports 444");
	rules_test_add(l, "22 deny --protocol udp --destination 10.1.0.0/16 --destination-ports 443");
	rules_test_add(l, "30 allow --protocol tcp --destination 10.0.0.0/8 --destination-ports 80-443");
	rules_test_add(l, "40 allow --destination 10.0.0.0/8");
	assert_int_equal(shadow(l, 10), 0);
	assert_int_equal(shadow(l, 20), 10);
	assert_int_equal(shadow(l, 21), 0);
	assert_int_equal(shadow(l, 22), 0);
	assert_int_equal(shadow(l, 30), 10);
	assert_int_equal(shadow(l, 40), 0);
	rules_test_add(l, "5 allow --protocol tcp"); // shadows existing rules
	assert_int_equal(shadow(l, 10), 5);
	assert_int_equal(shadow(l, 20), 5);
	assert_int_equal(shadow(l, 21), 5);
	rules_test_del(l, 5);
	assert_int_equal(shadow(l, 10), 0);
	assert_int_equal(shadow(l, 20), 10);
	assert_int_equal(shadow(l, 21), 0);
	assert_int_equal(rules_test_parse("10 allow --protocol tcp --destination 10.1.0.0/16", &r),
			 0); // replaces another rule
	assert_int_equal(rules_add(l, &r, 1, true, &rules_test_err), 0);
	assert_int_equal(shadow(l, 21), 10);
	assert_int_equal(shadow(l, 30), 0);
	rules_test_forget("shadows");
}

// --- Ports. ---

static struct rule_verdict verdict(uint16_t port, enum rule_direction dir, struct flow_key k)
{
	struct rule_verdict v;

	rules_classify(port, dir, &k, &v);
	rules_hit(&v);
	return v;
}

static unsigned told[PORTS_END];

static void tell(uint16_t port)
{
	told[port]++;
}

static void ports(void **state)
{
	static struct rules_listener listener = {.changed = tell}, silent;
	struct port_config red0 = router_config(RED0), red1 = router_config(RED1), fabric = router_config(FABRIC0);
	struct port_config irb = router_config(IRB0);
	struct flow_key k = rules_test_key(IPPROTO_TCP, "10.0.0.2", 1000, "10.0.0.3", 80);
	struct rule_list *l = rules_test_list("shared", false);
	uint64_t hits, defaults;

	rules_listen(&silent); // has no callback: skipped
	rules_listen(&listener);
	assert_false(verdict(RED0, RULES_EGRESS, k).denied); // no list: everything
	rules_config_edit(&red0)->lists[RULES_EGRESS] = rules_config_edit(&red1)->lists[RULES_INGRESS] = l->id;
	red0.stateful = red1.stateful = false;
	assert_int_equal(port_set(port_get(RED0), &red0, &rules_test_err), -EINVAL);
	assert_string_equal(rules_test_err.field, "port.egress_rules");
	red0.stateful = red1.stateful = true;
	router_set(RED0, &red0);
	router_set(RED1, &red1);
	assert_int_equal(told[RED0], 1);
	assert_int_equal(told[RED1], 1);
	assert_true(verdict(RED0, RULES_EGRESS, k).denied);
	assert_false(verdict(RED0, RULES_INGRESS, k).denied);
	assert_true(verdict(RED1, RULES_INGRESS, k).denied);
	rules_test_add(l, "3 allow --protocol tcp");
	assert_int_equal(told[RED0], 2);
	assert_int_equal(told[RED1], 2);
	hits = rule_hits(rules_get(l, 3)->slot);
	defaults = rule_hits(l->slot);
	assert_int_equal(verdict(RED0, RULES_EGRESS, k).rule, 3);
	assert_int_equal(verdict(RED1, RULES_INGRESS, k).rule, 3);
	k.proto = IPPROTO_UDP;
	assert_true(verdict(RED1, RULES_INGRESS, k).denied);
	assert_int_equal(rule_hits(rules_get(l, 3)->slot), hits + 2);
	assert_int_equal(rule_hits(l->slot), defaults + 1);
	assert_int_equal(rule_list_del("shared", &rules_test_err), -EBUSY);
	rules_config_edit(&fabric)->lists[RULES_EGRESS] = l->id;
	assert_int_equal(port_set(port_get(FABRIC0), &fabric, &rules_test_err), -EINVAL);
	assert_string_equal(rules_test_err.field, "port.egress_rules");
	rules_config_edit(&irb)->lists[RULES_INGRESS] = l->id; // it keeps no flows
	assert_int_equal(port_set(port_get(IRB0), &irb, &rules_test_err), -EINVAL);
	assert_string_equal(rules_test_err.field, "port.ingress_rules");
	rules_config_edit(&red0)->lists[RULES_EGRESS] = rules_config_edit(&red1)->lists[RULES_INGRESS] = 0;
	router_set(RED0, &red0);
	router_set(RED1, &red1);
	assert_int_equal(told[RED0], 3);
	assert_false(verdict(RED0, RULES_EGRESS, k).denied);
	rules_test_forget("shared");
}

// A counter that is reused begins at 0.
static void counters_begin_at_zero(void **state)
{
	struct port_config red0 = router_config(RED0);
	struct rule_list *l = rules_test_list("count", false);
	uint32_t slot;

	red0.stateful = true;
	rules_config_edit(&red0)->lists[RULES_EGRESS] = l->id;
	router_set(RED0, &red0);
	rules_test_add(l, "1 allow");
	slot = rules_get(l, 1)->slot;
	assert_int_equal(verdict(RED0, RULES_EGRESS, rules_test_key(6, "10.0.0.1", 1, "10.0.0.2", 1)).rule, 1);
	assert_int_equal(rule_hits(slot), 1);
	rules_test_del(l, 1);
	rcu_poll();
	while (rule_slots_leaving() > 0)
		rules_poll();
	rules_test_add(l, "2 allow");
	assert_int_equal(rules_get(l, 2)->slot, slot);
	assert_int_equal(rule_hits(slot), 0);
	rules_config_edit(&red0)->lists[RULES_EGRESS] = 0;
	router_set(RED0, &red0);
	rules_test_forget("count");
}

static bool is_resident(void *at)
{
	size_t page = (size_t)getpagesize();
	unsigned char in = 0;

	assert_int_equal(mincore((void *)((uintptr_t)at & ~(page - 1)), page, &in), 0);
	return in & 1;
}

// The counters of a worker that is added when there are many rules come a few pages per tick, and before it needs them.
static void counters_of_a_later_worker(void **state)
{
	struct worker_config cfg = {.cpu = (unsigned)sched_getcpu(), .idle = IDLE_YIELD, .target = WORKER_NONE};
	static uint32_t slots[20000];
	unsigned i, polls;
	uint64_t *last;

	for (i = 0; i < RTE_DIM(slots); i++)
		slots[i] = rule_slot_get();
	if (worker_add(7, &cfg, &rules_test_err) == NULL)
		fail_msg("%s", rules_test_err.message);
	last = rules_hits_counter(7, slots[RTE_DIM(slots) - 1]);
	assert_false(is_resident(last));
	for (polls = 0; polls < 10 && !is_resident(last); polls++) {
		__atomic_store_n(rules_hits_counter(7, slots[0]), 5, __ATOMIC_RELAXED); // it counts meanwhile
		rules_poll();
		assert_int_equal(rule_hits(slots[0]), 5);
	}
	assert_in_range(polls, 2, 5); // 40 pages, 16 in each poll
	for (i = 0; i < RTE_DIM(slots); i += 512)
		assert_true(is_resident(rules_hits_counter(7, slots[i])));
	worker_del_all();
	for (i = 0; i < RTE_DIM(slots); i++)
		rule_slot_put(slots[i]);
	assert_int_equal(rule_hits(slots[0]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(order_and_defaults),
		cmocka_unit_test(refusals),
		cmocka_unit_test(groups),
		cmocka_unit_test(too_many_entries),
		cmocka_unit_test(shadows),
		cmocka_unit_test(ports),
		cmocka_unit_test(counters_begin_at_zero),
		cmocka_unit_test(counters_of_a_later_worker),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
