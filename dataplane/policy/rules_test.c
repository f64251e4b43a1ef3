// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "base/rcu.h"
#include "control/rules_message.h"
#include "policy/rules_private.h"
#include "testing/router_fixture.h"
#include "worker/worker.h"

static struct error err;

// --- Rules and keys from text. ---

static char *value(char *text, const char *flag)
{
	char *at = strstr(text, flag), *out, *end;

	if (at == NULL)
		return strdup("");
	out = strdup(at + strlen(flag));
	end = strchr(out, ' ');
	if (end)
		*end = '\0';
	return out;
}

// "100 allow --protocol tcp --destination-ports 80"
static int parse(const char *line, struct rule *r)
{
	Corelane__V1__Rule m = CORELANE__V1__RULE__INIT;
	char text[512], action[16];
	int ret;

	snprintf(text, sizeof(text), "%s", line);
	sscanf(text, "%u %15s", &m.id, action);
	m.action = strcmp(action, "allow") == 0;
	m.protocol = value(text, "--protocol ");
	m.source = value(text, "--source ");
	m.destination = value(text, "--destination ");
	m.source_group = value(text, "--source-group ");
	m.destination_group = value(text, "--destination-group ");
	m.source_ports = value(text, "--source-ports ");
	m.destination_ports = value(text, "--destination-ports ");
	m.icmp_type = value(text, "--icmp-type ");
	m.icmp_code = value(text, "--icmp-code ");
	m.log = strstr(text, "--log") != NULL;
	ret = rule_decode(&m, r, &err);
	free(m.protocol);
	free(m.source);
	free(m.destination);
	free(m.source_group);
	free(m.destination_group);
	free(m.source_ports);
	free(m.destination_ports);
	free(m.icmp_type);
	free(m.icmp_code);
	return ret;
}

static void add(struct rule_list *l, const char *line)
{
	char text[RULE_TEXT];
	struct rule r;

	assert_int_equal(parse(line, &r), 0);
	assert_string_equal(rule_text(&r, text), line);
	assert_int_equal(rules_add(l, &r, 1, false, &err), 0);
}

static void del(struct rule_list *l, uint32_t id)
{
	assert_int_equal(rules_del(l, &id, 1, &err), 0);
}

static struct flow_key key(uint8_t proto, const char *src, uint16_t sport, const char *dst, uint16_t dport)
{
	struct ip_addr s = router_addr(src), d = router_addr(dst);
	struct flow_key k = {.proto = proto, .family = s.family, .src_port = htons(sport), .dst_port = htons(dport)};

	memcpy(s.family == IPV4 ? (void *)&k.src4 : k.src6, s.bytes, ip_bytes(s.family));
	memcpy(s.family == IPV4 ? (void *)&k.dst4 : k.dst6, d.bytes, ip_bytes(s.family));
	return k;
}

static uint32_t decides(const struct rule_list *l, struct flow_key k)
{
	struct rule_verdict v;
	bool hit = rules_lookup(l->set, &k, &v);

	assert_int_equal(hit, v.rule != 0);
	return v.rule;
}

static struct rule_list *list(const char *name, bool allow)
{
	struct rule_list *l = rule_list_add(name, allow, &err);

	assert_non_null(l);
	return l;
}

static bool settled(void)
{
	struct rule_list *l;

	for (l = rule_list_next(NULL); l; l = rule_list_next(l))
		if (l->wanted || l->running)
			return false;
	return true;
}

static void settle(void)
{
	while (!settled()) {
		rules_poll();
		usleep(200);
	}
	rcu_poll();
}

static void forget(const char *name)
{
	settle();
	assert_int_equal(rule_list_del(name, &err), 0);
	rcu_poll();
}

// A short list is searched rule by rule, a long one is compiled; both must decide alike. Adds 150 rules that match no
// packet here, so that the list is compiled.
static void pad(struct rule_list *l)
{
	char line[128];
	unsigned i;

	for (i = 0; i < 150; i++) {
		snprintf(line, sizeof(line), "%u deny --protocol 99 --source %s", 1000 + i,
			 i % 2 ? "203.0.113.0/24" : "2001:db8:ffff::/48");
		add(l, line);
	}
	settle();
	assert_non_null(l->set->base);
	assert_non_null(l->set->base->acl[0]);
	assert_non_null(l->set->base->acl[1]);
}

// --- Each field. ---

static void check_fields(struct rule_list *l)
{
	assert_int_equal(decides(l, key(IPPROTO_TCP, "10.1.2.3", 1, "192.0.2.1", 80)), 10);
	assert_int_equal(decides(l, key(IPPROTO_TCP, "10.1.2.3", 1, "192.0.2.1", 81)), 0);
	assert_int_equal(decides(l, key(IPPROTO_UDP, "10.1.2.3", 1, "192.0.2.1", 80)), 0);
	assert_int_equal(decides(l, key(IPPROTO_TCP, "11.1.2.3", 1, "192.0.2.1", 80)), 0);
	assert_int_equal(decides(l, key(IPPROTO_UDP, "1.1.1.1", 999, "192.0.2.1", 1)), 0);
	assert_int_equal(decides(l, key(IPPROTO_UDP, "1.1.1.1", 1000, "192.0.2.1", 1)), 20);
	assert_int_equal(decides(l, key(IPPROTO_UDP, "1.1.1.1", 1999, "192.0.2.255", 1)), 20);
	assert_int_equal(decides(l, key(IPPROTO_UDP, "1.1.1.1", 2000, "192.0.2.1", 1)), 0);
	assert_int_equal(decides(l, key(IPPROTO_UDP, "1.1.1.1", 1999, "192.0.3.0", 1)), 0);
	assert_int_equal(decides(l, key(IPPROTO_ICMP, "1.1.1.1", 7, "1.1.1.2", 7)), 30);      // echo, identifier 7
	assert_int_equal(decides(l, key(IPPROTO_ICMP, "1.1.1.1", 0, "1.1.1.2", 0)), 30);      // identifier 0
	assert_int_equal(decides(l, key(IPPROTO_ICMP, "1.1.1.1", 0x0304, "1.1.1.2", 0)), 31); // fragmentation needed
	assert_int_equal(decides(l, key(IPPROTO_ICMP, "1.1.1.1", 0x0305, "1.1.1.2", 0)), 0);
	assert_int_equal(decides(l, key(IPPROTO_ICMPV6, "2001:db8::1", 7, "2001:db8::2", 7)), 40);
	assert_int_equal(decides(l, key(IPPROTO_ICMPV6, "2001:db8::1", 0x0100, "2001:db8::2", 0)), 41);
	assert_int_equal(decides(l, key(IPPROTO_ICMPV6, "2001:db8::1", 0x8500, "2001:db8::2", 0)), 0);
	assert_int_equal(decides(l, key(IPPROTO_ICMP, "2001:db8::1", 7, "2001:db8::2", 7)), 0); // of the other family
	assert_int_equal(decides(l, key(IPPROTO_SCTP, "2001:db8:1::1", 5, "2001:db8:2::1", 5)), 50);
	assert_int_equal(decides(l, key(IPPROTO_SCTP, "2001:db8:1::1", 5, "2001:db8:2:8000::1", 5)), 0);
	assert_int_equal(decides(l, key(IPPROTO_SCTP, "2001:db8:1::2", 5, "2001:db8:2::1", 5)), 0);
	assert_int_equal(decides(l, key(IPPROTO_SCTP, "2001:db8:1::1", 4, "2001:db8:2::1", 5)), 0);
	assert_int_equal(decides(l, key(47, "1.1.1.1", 0, "2.2.2.2", 0)), 60);
	assert_int_equal(decides(l, key(47, "::1", 0, "::2", 0)), 60);
	assert_int_equal(decides(l, key(0, "::1", 0, "::2", 0)), 61);
	assert_int_equal(decides(l, key(46, "1.1.1.1", 0, "2.2.2.2", 0)), 0);
}

static void fields(void **state)
{
	struct rule_list *l = list("fields", false);

	add(l, "10 allow --protocol tcp --source 10.0.0.0/8 --destination-ports 80");
	add(l, "20 deny --protocol udp --destination 192.0.2.0/24 --source-ports 1000-1999 --log");
	add(l, "30 allow --protocol icmp --icmp-type 8");
	add(l, "31 allow --protocol icmp --icmp-type 3 --icmp-code 4");
	add(l, "40 allow --protocol icmpv6 --icmp-type 128-129");
	add(l, "41 allow --protocol icmpv6 --icmp-type 1-4");
	add(l, "50 allow --protocol sctp --source 2001:db8:1::1/128 --destination 2001:db8:2::/49 --source-ports 5");
	add(l, "60 allow --protocol 47");
	add(l, "61 allow --protocol 0");
	check_fields(l);
	pad(l);
	check_fields(l);
	forget("fields");
}

static void order_and_defaults(void **state)
{
	struct rule_list *l = list("order", true);
	struct flow_key k = key(IPPROTO_TCP, "10.0.0.1", 1000, "10.0.0.2", 22);
	struct rule_verdict v;

	rules_lookup(l->set, &k, &v);
	assert_false(v.denied);
	assert_int_equal(rule_list_set(l, false), 0);
	rules_lookup(l->set, &k, &v);
	assert_true(v.denied && v.rule == 0);
	add(l, "16777216 allow");
	assert_int_equal(decides(l, k), LIMIT_RULE_ID_MAX);
	add(l, "200 deny --protocol tcp --log");
	add(l, "300 allow --protocol tcp --destination-ports 22");
	assert_int_equal(decides(l, k), 200);
	rules_lookup(l->set, &k, &v);
	assert_true(v.denied && v.log);
	pad(l);
	assert_int_equal(decides(l, k), 200);
	add(l, "1 allow --protocol tcp --destination-ports 22");
	assert_int_equal(decides(l, k), 1); // not compiled yet
	settle();
	assert_int_equal(decides(l, k), 1);
	del(l, 1);
	assert_int_equal(decides(l, k), 200); // compiled, and the rule is deleted
	del(l, 200);
	assert_int_equal(decides(l, k), 300);
	settle();
	del(l, 300);
	del(l, 16777216);
	assert_int_equal(decides(l, k), 0);
	forget("order");
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
	struct rule_list *l = list("bad", false);
	struct rule r[3];
	uint32_t ids[] = {1, 2};
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		memset(&err, 0, sizeof(err));
		assert_true(parse(bad[i].line, &r[0]) < 0);
		assert_string_equal(err.field, bad[i].field);
		assert_true(err.message[0]);
	}
	assert_int_equal(parse("1 allow", &r[0]), 0);
	assert_int_equal(parse("2 deny", &r[1]), 0);
	assert_int_equal(parse("1 deny --log", &r[2]), 0);
	assert_int_equal(rules_add(l, r, 3, true, &err), -EINVAL); // 1 twice
	assert_int_equal(err.index, 2);
	assert_int_equal(l->n, 0);
	assert_int_equal(rules_add(l, r, 1, false, &err), 0);
	assert_int_equal(rules_add(l, &r[1], 2, false, &err), -EEXIST);
	assert_int_equal(err.index, 1);
	assert_int_equal(l->n, 1);
	assert_int_equal(rules_add(l, &r[1], 2, true, &err), 0);
	assert_int_equal(l->n, 2);
	assert_true(rules_get(l, 1)->log);
	ids[1] = 3;
	assert_int_equal(rules_del(l, ids, 2, &err), -ENOENT);
	assert_int_equal(err.index, 1);
	assert_int_equal(l->n, 2);
	ids[1] = 1;
	assert_int_equal(rules_del(l, ids, 2, &err), 0); // named twice
	assert_int_equal(l->n, 1);
	assert_null(rule_list_add("bad", false, &err));
	assert_int_equal(err.code, EEXIST);
	assert_int_equal(rule_list_del("nobody", &err), -ENOENT);
	forget("bad");
}

// --- Groups. ---

static struct ip_prefix prefix(const char *text)
{
	struct ip_prefix p;

	assert_int_equal(ip_parse_prefix(text, NULL, &p, &err), 0);
	return p;
}

static void groups(void **state)
{
	struct ip_prefix first[] = {prefix("10.0.0.0/8"), prefix("2001:db8::/32"), prefix("10.0.0.0/8")};
	struct ip_prefix second[] = {prefix("192.0.2.0/24"), prefix("198.51.100.0/24")};
	struct address_group *a = address_group_add("a", first, 3, &err), *b = address_group_add("b", second, 2, &err);
	struct rule_list *l = list("one", false), *m = list("two", false);
	struct flow_key k4 = key(6, "10.0.0.1", 1, "192.0.2.1", 2), k6 = key(6, "2001:db8::1", 1, "::2", 2);
	struct flow_key k = key(6, "192.0.2.9", 1, "198.51.100.1", 2);

	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(a->n, 2); // one prefix was given twice
	add(l, "5 allow --source-group a --destination-group b");
	add(l, "6 allow --protocol tcp --source-group a");
	add(m, "7 allow --destination-group b");
	assert_int_equal(l->entries[0], 2 + 1);
	assert_int_equal(l->entries[1], 1);
	assert_int_equal(decides(l, k4), 5);
	assert_int_equal(decides(l, k6), 6);
	assert_int_equal(decides(l, k), 0);
	assert_int_equal(decides(m, k), 7);
	assert_int_equal(a->rules, 2);
	assert_int_equal(b->rules, 2);
	assert_int_equal(address_group_del("a", &err), -EBUSY);
	pad(l);
	assert_int_equal(decides(l, k4), 5);
	assert_int_equal(address_group_set(a, second, 2, &err), 0); // both lists are compiled anew
	assert_int_equal(decides(l, k4), 0);
	assert_int_equal(decides(l, k6), 0);
	assert_int_equal(decides(l, k), 5);
	settle();
	assert_int_equal(decides(l, k), 5);
	assert_int_equal(address_group_set(a, NULL, 0, &err), 0); // matches nothing
	assert_int_equal(decides(l, k), 0);
	del(l, 5);
	del(l, 6);
	assert_int_equal(a->rules, 0);
	assert_int_equal(address_group_del("a", &err), 0);
	forget("one");
	forget("two");
	assert_int_equal(b->rules, 0);
	assert_int_equal(address_group_del("b", &err), 0);
}

// A rule with two large groups is refused, and so is a change of a group that would result in one.
static void too_many_entries(void **state)
{
	struct ip_prefix *many = malloc(LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS * sizeof(*many));
	struct rule_list *l = list("many", false);
	struct address_group *g;
	struct rule r;
	unsigned i;

	for (i = 0; i < LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS; i++)
		many[i] = ip_prefix_of(&(struct ip_addr){.family = IPV4, .bytes = {10, 0, i >> 8, i & 255}}, 32);
	g = address_group_add("g", many, LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS, &err);
	assert_non_null(g);
	assert_int_equal(parse("9 allow --source-group g --destination-group g", &r), 0);
	assert_int_equal(rules_add(l, &r, 1, false, &err), -ENOSPC);
	assert_int_equal(g->rules, 0);
	assert_int_equal(address_group_set(g, many, 4, &err), 0);
	assert_int_equal(rules_add(l, &r, 1, false, &err), 0);
	assert_int_equal(address_group_set(g, many, LIMIT_ADDRESS_GROUP_PREFIXES_ITEMS, &err), -ENOSPC);
	assert_int_equal(g->n, 4);
	assert_int_equal(decides(l, key(6, "10.0.0.3", 1, "10.0.0.0", 1)), 9);
	forget("many");
	assert_int_equal(address_group_del("g", &err), 0);
	free(many);
}

// --- Shadows. ---

static uint32_t shadow(const struct rule_list *l, uint32_t id)
{
	return rules_get(l, id)->shadowed_by;
}

static void shadows(void **state)
{
	struct rule_list *l = list("shadows", false);
	struct rule r;

	add(l, "10 allow --protocol tcp --destination 10.0.0.0/8 --destination-ports 80-443");
	add(l, "20 deny --protocol tcp --destination 10.1.0.0/16 --destination-ports 443");
	add(l, "21 deny --protocol tcp --destination 10.1.0.0/16 --destination-ports 444");
	add(l, "22 deny --protocol udp --destination 10.1.0.0/16 --destination-ports 443");
	add(l, "30 allow --protocol tcp --destination 10.0.0.0/8 --destination-ports 80-443");
	add(l, "40 allow --destination 10.0.0.0/8");
	assert_int_equal(shadow(l, 10), 0);
	assert_int_equal(shadow(l, 20), 10);
	assert_int_equal(shadow(l, 21), 0);
	assert_int_equal(shadow(l, 22), 0);
	assert_int_equal(shadow(l, 30), 10);
	assert_int_equal(shadow(l, 40), 0);
	add(l, "5 allow --protocol tcp"); // shadows existing rules
	assert_int_equal(shadow(l, 10), 5);
	assert_int_equal(shadow(l, 20), 5);
	assert_int_equal(shadow(l, 21), 5);
	del(l, 5);
	assert_int_equal(shadow(l, 10), 0);
	assert_int_equal(shadow(l, 20), 10);
	assert_int_equal(shadow(l, 21), 0);
	assert_int_equal(parse("10 allow --protocol tcp --destination 10.1.0.0/16", &r), 0); // replaces another rule
	assert_int_equal(rules_add(l, &r, 1, true, &err), 0);
	assert_int_equal(shadow(l, 21), 10);
	assert_int_equal(shadow(l, 30), 0);
	forget("shadows");
}

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

static struct rule some_rule(uint32_t id);

// Both search methods agree with a plain search, for many rules and for few.
static void shadows_of_many(void **state)
{
	struct rule_list *l = list("shadows", false);
	struct rule *r = calloc(1000, sizeof(*r));
	uint32_t i, ids[100];

	for (i = 0; i < 1000; i++)
		r[i] = some_rule(i + 1);
	r[400].proto = -1; // covers many later rules
	r[400].src = r[400].dst = (struct ip_prefix){0};
	memcpy(r[400].ports, (uint16_t[2][2]){{0, 50}, {0, 65535}}, sizeof(r[400].ports));
	assert_int_equal(rules_add(l, r, 1000, false, &err), 0);
	assert_in_range(check_shadows(l), 10, 990);
	for (i = 0; i < 30; i++) {
		struct rule one = some_rule(1 + (i * 37) % 1100);

		assert_int_equal(rules_add(l, &one, 1, true, &err), 0);
		check_shadows(l);
	}
	for (i = 0; i < 100; i++)
		ids[i] = i * 9 + 2;
	assert_int_equal(rules_del(l, ids, 100, &err), 0);
	check_shadows(l);
	assert_int_equal(rules_del(l, (uint32_t[]){401}, 1, &err), 0);
	check_shadows(l);
	free(r);
	forget("shadows");
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
	struct flow_key k = key(IPPROTO_TCP, "10.0.0.2", 1000, "10.0.0.3", 80);
	struct rule_list *l = list("shared", false);
	uint64_t hits, defaults;

	rules_listen(&silent); // has no callback: skipped
	rules_listen(&listener);
	assert_false(verdict(RED0, RULES_EGRESS, k).denied); // no list: everything
	rules_config_edit(&red0)->lists[RULES_EGRESS] = rules_config_edit(&red1)->lists[RULES_INGRESS] = l->id;
	red0.stateful = red1.stateful = false;
	assert_int_equal(port_set(port_get(RED0), &red0, &err), -EINVAL);
	assert_string_equal(err.field, "port.egress_rules");
	red0.stateful = red1.stateful = true;
	router_set(RED0, &red0);
	router_set(RED1, &red1);
	assert_int_equal(told[RED0], 1);
	assert_int_equal(told[RED1], 1);
	assert_true(verdict(RED0, RULES_EGRESS, k).denied);
	assert_false(verdict(RED0, RULES_INGRESS, k).denied);
	assert_true(verdict(RED1, RULES_INGRESS, k).denied);
	add(l, "3 allow --protocol tcp");
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
	assert_int_equal(rule_list_del("shared", &err), -EBUSY);
	rules_config_edit(&fabric)->lists[RULES_EGRESS] = l->id;
	assert_int_equal(port_set(port_get(FABRIC0), &fabric, &err), -EINVAL);
	assert_string_equal(err.field, "port.egress_rules");
	irb.stateful = true;
	rules_config_edit(&irb)->lists[RULES_INGRESS] = l->id; // bridged frames would pass them
	assert_int_equal(port_set(port_get(IRB0), &irb, &err), -EINVAL);
	assert_string_equal(err.field, "port.ingress_rules");
	rules_config_edit(&red0)->lists[RULES_EGRESS] = rules_config_edit(&red1)->lists[RULES_INGRESS] = 0;
	router_set(RED0, &red0);
	router_set(RED1, &red1);
	assert_int_equal(told[RED0], 3);
	assert_false(verdict(RED0, RULES_EGRESS, k).denied);
	forget("shared");
}

// A counter that is reused begins at 0.
static void counters_begin_at_zero(void **state)
{
	struct port_config red0 = router_config(RED0);
	struct rule_list *l = list("count", false);
	uint32_t slot;

	red0.stateful = true;
	rules_config_edit(&red0)->lists[RULES_EGRESS] = l->id;
	router_set(RED0, &red0);
	add(l, "1 allow");
	slot = rules_get(l, 1)->slot;
	assert_int_equal(verdict(RED0, RULES_EGRESS, key(6, "10.0.0.1", 1, "10.0.0.2", 1)).rule, 1);
	assert_int_equal(rule_hits(slot), 1);
	del(l, 1);
	rcu_poll();
	add(l, "2 allow");
	assert_int_equal(rules_get(l, 2)->slot, slot);
	assert_int_equal(rule_hits(slot), 0);
	rules_config_edit(&red0)->lists[RULES_EGRESS] = 0;
	router_set(RED0, &red0);
	forget("count");
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
	if (worker_add(7, &cfg, &err) == NULL)
		fail_msg("%s", err.message);
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

		assert_int_equal(decides(l, k), want);
		found += want != 0;
	}
	return found;
}

static void many(void **state)
{
	struct rule_list *l = list("large", false);
	struct rule *r = calloc(4096, sizeof(*r));
	uint32_t i, ids[100], n = 10000;
	uint64_t begun = rte_rdtsc();
	double ms = (double)rte_get_tsc_hz() / 1000;
	unsigned found;

	for (i = 1; i <= n; i++) {
		r[(i - 1) % 4096] = some_rule(i * 7);
		if (i % 4096 == 0 || i == n)
			assert_int_equal(rules_add(l, r, (i - 1) % 4096 + 1, false, &err), 0);
	}
	print_message("# %u rules were added in %.0f ms\n", n, (double)(rte_rdtsc() - begun) / ms);
	found = compare(l, 2000); // walked
	assert_in_range(found, 200, 1990);
	begun = rte_rdtsc();
	settle();
	print_message("# and compiled in %.0f ms, %u + %u entries\n", (double)(rte_rdtsc() - begun) / ms, l->entries[0],
		      l->entries[1]);
	assert_non_null(l->set->base->acl[0]);
	compare(l, 4000);
	begun = rte_rdtsc();
	for (i = 0; i < 100; i++) { // changes on top of the compiled list
		ids[i] = i * 63 + 7;
		r[i] = some_rule(i * 11 + 3);
	}
	assert_int_equal(rules_del(l, ids, 100, &err), 0);
	assert_int_equal(rules_add(l, r, 100, true, &err), 0);
	print_message("# two changes took %.2f ms\n", (double)(rte_rdtsc() - begun) / ms);
	compare(l, 2000);
	settle();
	compare(l, 4000);
	free(r);
	forget("large");
}

// --- Changes while a worker evaluates rules. ---

static struct {
	bool stop;
	uint64_t asked, wrong;
} reader;

static void *read_on(void *arg)
{
	struct flow_key k = key(IPPROTO_TCP, "10.0.0.2", 1000, "10.0.0.3", 80);
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
		l = list("traffic", false);
		add(l, "100 allow");
		rules_config_edit(&red0)->lists[RULES_EGRESS] = l->id;
		router_set(RED0, &red0);
		pad(l);
		reader.stop = false;
		assert_int_equal(pthread_create(&thread, NULL, read_on, NULL), 0);
		for (i = 0; i < 3000; i++) {
			add(l, "50 deny --protocol tcp");
			rules_poll();
			rcu_poll();
			if (i % 100 == 0)
				settle();
			del(l, 50);
			rules_poll();
			rcu_poll();
		}
		__atomic_store_n(&reader.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		assert_int_equal(reader.wrong, 0);
		assert_true(reader.asked > 0);
		rules_config_edit(&red0)->lists[RULES_EGRESS] = 0;
		router_set(RED0, &red0);
		forget("traffic");
		while (rcu_pending())
			rcu_poll();
		rte_malloc_get_socket_stats(0, &after);
	}
	assert_int_equal(after.heap_allocsz_bytes, before.heap_allocsz_bytes);
	assert_in_range(mallinfo2().uordblks, 0, heap + 65536);
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
		cmocka_unit_test(shadows_of_many),
		cmocka_unit_test(ports),
		cmocka_unit_test(counters_begin_at_zero),
		cmocka_unit_test(counters_of_a_later_worker),
		cmocka_unit_test(many),
		cmocka_unit_test(changes_under_traffic),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
