// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/setting.h"
#include "policy/maglev.h"
#include "policy/service_private.h"
#include "testing/router_fixture.h"

static struct error err;
static bool no_memory;

struct maglev *__real_maglev_begin(const struct maglev_endpoint *e, unsigned n, uint32_t rows);
struct maglev *__wrap_maglev_begin(const struct maglev_endpoint *e, unsigned n, uint32_t rows);

struct maglev *__wrap_maglev_begin(const struct maglev_endpoint *e, unsigned n, uint32_t rows)
{
	return no_memory ? NULL : __real_maglev_begin(e, n, rows);
}

static struct service *add(const char *name, const char *addr, uint16_t port, uint16_t max)
{
	struct service_config c = {.vrf = RED,
				   .external = RED,
				   .addr = router_addr(addr),
				   .protocol = IPPROTO_TCP,
				   .port = port,
				   .max_endpoints = max};
	struct service *s;

	snprintf(c.name, sizeof(c.name), "%s", name);
	s = service_add(&c, &err);
	if (s == NULL)
		fail_msg("%s", err.message);
	return s;
}

static struct endpoint *with(struct service *s, const char *addr, uint16_t port, uint16_t weight)
{
	struct endpoint_config c = {router_addr(addr), port, weight};
	struct endpoint *e = endpoint_add(s, &c, &err);

	if (e == NULL)
		fail_msg("%s", err.message);
	while (service_is_stale(s))
		service_poll();
	return e;
}

static void forget(struct service *s)
{
	char name[SERVICE_NAME];

	memcpy(name, s->cfg.name, sizeof(name));
	while (s->n_endpoints > 0)
		endpoint_del(s->endpoints[0]);
	assert_int_equal(service_del(name, &err), 0);
	assert_null(service_find(name));
}

static struct flow_key key(const char *src, uint16_t sport, const char *dst, uint16_t dport)
{
	struct ip_addr s = router_addr(src), d = router_addr(dst);
	struct flow_key k = {.zone = RED, .proto = IPPROTO_TCP, .family = s.family};

	k.src_port = rte_cpu_to_be_16(sport);
	k.dst_port = rte_cpu_to_be_16(dport);
	memcpy(s.family == IPV4 ? (uint8_t *)&k.src4 : k.src6, s.bytes, ip_bytes(s.family));
	memcpy(s.family == IPV4 ? (uint8_t *)&k.dst4 : k.dst6, d.bytes, ip_bytes(s.family));
	return k;
}

static struct nat_verdict ask(struct flow_key *k)
{
	struct nat_verdict v = {0};

	nat_destination(k, &v);
	return v;
}

static void flows_have_golden_rows(void **state)
{
	struct flow_key v4 = key("203.0.113.1", 1000, "198.51.100.1", 443),
			v6 = key("2001:db8:2::1", 1000, "2001:db8::1", 443);
	const struct setting *own = setting_find("service_key");

	assert_int_equal(service_row(&v4, SERVICE_MAGLEV, 0, 509), 125);
	assert_int_equal(service_row(&v6, SERVICE_MAGLEV, 0, 509), 82);
	setting_set_list(own, (uint32_t[]){1, 2, 3, 4}, 4);
	v4.zone = v6.zone = BLUE; // ids of VRFs differ between nodes
	assert_int_equal(service_row(&v4, SERVICE_MAGLEV, 0, 509), 414);
	assert_int_equal(service_row(&v6, SERVICE_MAGLEV, 0, 509), 156);
	setting_set_list(own, NULL, 0);
	assert_int_equal(service_row(&v4, SERVICE_MAGLEV, 0, 509), 125);
}

// --- Services. ---

static void choice(const char *vip, const char *first, const char *second, const char *client)
{
	struct service *s = add("web", vip, 443, 8);
	struct endpoint *a = with(s, first, 8443, 1), *b = with(s, second, 0, 3);
	unsigned i, seen[2] = {0};

	assert_int_equal(a->rows + b->rows, s->rows);
	for (i = 0; i < 4000; i++) {
		struct flow_key k = key(client, (uint16_t)(1000 + i), vip, 443), k2 = k, want;
		struct nat_verdict v = ask(&k);
		bool at_b = v.rule == (NAT_OF_ENDPOINT | b->id);

		assert_true(at_b || v.rule == (NAT_OF_ENDPOINT | a->id));
		want = key(client, (uint16_t)(1000 + i), at_b ? second : first, at_b ? 443 : 8443);
		assert_memory_equal(&k, &want, sizeof(k));
		assert_int_equal(nat_endpoint_of(&k2, &k), v.rule);
		seen[at_b]++;
	}
	assert_in_range(seen[0], 850, 1150);
	assert_in_range(seen[1], 2850, 3150);
	forget(s);
}

static void choices(void **state)
{
	choice("198.51.100.1", "10.0.0.31", "10.0.0.32", "203.0.113.1");
	choice("2001:db8::1", "fd00::31", "fd00::32", "2001:db8:2::1");
}

static uint32_t carried(const char *vip, const char *addr, uint16_t port)
{
	const char *client = strchr(vip, ':') ? "2001:db8:2::1" : "203.0.113.1";
	struct flow_key k = key(client, 1000, vip, 443), out = key(client, 1000, addr, port);

	return nat_endpoint_of(&k, &out);
}

// A flow that a restart has carried over finds its endpoint: that of its port, or else the one that keeps ports.
static void carry(const char *vip, const char *prefix)
{
	struct service *s = add("web", vip, 443, 120);
	char addr[32];
	unsigned i;

	service_hold(true);
	for (i = 0; i < 120; i++) {
		struct endpoint_config c = {.port = (uint16_t[]){0, 443, 8443}[i % 3], .weight = 1};

		snprintf(addr, sizeof(addr), "%s%u", prefix, i / 3 + 1);
		c.addr = router_addr(addr);
		assert_non_null(endpoint_add(s, &c, &err));
	}
	service_hold(false);
	for (i = 0; i < 120; i++) {
		snprintf(addr, sizeof(addr), "%s%u", prefix, i / 3 + 1);
		if (i % 3 > 0)
			assert_int_equal(carried(vip, addr, s->endpoints[i]->cfg.port),
					 NAT_OF_ENDPOINT | s->endpoints[i]->id);
		assert_int_equal(carried(vip, addr, 80), 0);
	}
	snprintf(addr, sizeof(addr), "%s%u", prefix, 1u);
	endpoint_del(s->endpoints[1]);
	assert_int_equal(carried(vip, addr, 443), NAT_OF_ENDPOINT | s->endpoints[0]->id);
	snprintf(addr, sizeof(addr), "%s%u", prefix, 99u);
	assert_int_equal(carried(vip, addr, 443), 0);
	forget(s);
}

static void carried_flows(void **state)
{
	struct service_config c = {
		.name = "all", .vrf = RED, .external = RED, .addr = router_addr("198.51.100.2"), .max_endpoints = 2};
	struct flow_key k = key("203.0.113.1", 0, "198.51.100.2", 0), out = key("203.0.113.1", 0, "10.0.0.32", 0);
	struct service *s;
	struct endpoint *e;

	carry("198.51.100.1", "10.0.0.");
	carry("2001:db8::1", "fd00::");
	s = service_add(&c, &err);
	assert_non_null(s);
	with(s, "10.0.0.31", 0, 1);
	e = with(s, "10.0.0.32", 0, 1);
	k.proto = out.proto = IPPROTO_ICMP;
	assert_int_equal(nat_endpoint_of(&k, &out), NAT_OF_ENDPOINT | e->id);
	out = key("203.0.113.1", 0, "10.0.0.33", 0);
	assert_int_equal(nat_endpoint_of(&k, &out), 0);
	forget(s);
}

// An endpoint of weight 0, or one that was removed, gets no new flows; those that it has are kept.
static void drain(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 8);
	struct endpoint *a = with(s, "10.0.0.31", 0, 1), *b = with(s, "10.0.0.32", 0, 1);
	struct flow_key original[500], out[500];
	struct service_config c;
	struct nat_verdict v;
	uint32_t rule[500];
	unsigned i, round;

	for (i = 0; i < 500; i++) {
		original[i] = out[i] = key("203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80);
		rule[i] = ask(&out[i]).rule;
	}
	for (round = 0; round < 2; round++) {
		if (round == 0)
			assert_int_equal(endpoint_set(a, 0, &err), 0);
		else
			endpoint_del(a);
		assert_int_equal(b->rows, s->rows);
		for (i = 0; i < 500; i++) {
			struct flow_key now = original[i];

			assert_int_equal(ask(&now).rule, NAT_OF_ENDPOINT | b->id);
			v = (struct nat_verdict){.was = rule[i]};
			assert_true(nat_keeps(&original[i], &out[i], &v));
			assert_int_equal(v.rule, rule[i]);
		}
	}
	// No flow of another service or rule is taken for one of this service.
	assert_int_not_equal(rule[0], 0);
	v = (struct nat_verdict){.was = 5};
	assert_false(nat_keeps(&original[0], &out[0], &v) && v.rule == 5);
	assert_int_equal(endpoint_set(b, 0, &err), 0);
	v = ask(&original[0]);
	assert_true(v.refused);
	assert_int_equal(v.rule, NAT_OF_SERVICE | s->id);
	assert_false(service_flow_refused(v.rule));
	c = s->cfg;
	c.reject = true;
	assert_int_equal(service_set(s, &c, &err), 0);
	assert_true(service_flow_refused(v.rule));
	assert_int_equal(s->refused, 2);
	forget(s);
}

// A large table is built by the master's turns; until then the old one serves.
static void large(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 1000);
	struct endpoint_config c = {router_addr("10.0.0.32"), 0, 1};
	struct endpoint *a = with(s, "10.0.0.31", 0, 1), *b;
	struct flow_key k;
	unsigned i, seen = 0;

	b = endpoint_add(s, &c, &err);
	assert_non_null(b);
	assert_non_null(s->building);
	for (i = 0; i < 100; i++) {
		k = key("203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80);
		assert_int_equal(ask(&k).rule, NAT_OF_ENDPOINT | a->id);
	}
	for (i = 0; s->building; i++)
		service_poll();
	assert_in_range(i, 1, 100);
	for (i = 0; i < 100; i++) {
		k = key("203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80);
		seen += ask(&k).rule == (NAT_OF_ENDPOINT | b->id);
	}
	assert_in_range(seen, 20, 80);
	forget(s);
}

static struct endpoint *add_unbuilt(struct service *s, const char *addr)
{
	struct endpoint_config c = {router_addr(addr), 0, 1};
	struct endpoint *e = endpoint_add(s, &c, &err);

	if (e == NULL)
		fail_msg("%s", err.message);
	return e;
}

// A service whose endpoints change in each turn gets new tables nevertheless, and so do others.
static void changing(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 1000), *t = add("tls", "198.51.100.1", 443, 1000);
	struct endpoint *a = with(s, "10.0.0.31", 0, 1), *of_t = with(t, "10.0.0.31", 0, 1), *b, *c;
	unsigned i;

	b = add_unbuilt(s, "10.0.0.32");
	c = add_unbuilt(t, "10.0.0.32");
	for (i = 0; i < 400; i++) {
		assert_int_equal(endpoint_set(a, (uint16_t)(1 + i % 2), &err), 0);
		service_poll();
	}
	assert_in_range(b->rows, s->rows / 4, s->rows * 3 / 4);
	assert_in_range(c->rows, t->rows / 4, t->rows * 3 / 4);
	assert_int_equal(c->rows + of_t->rows, t->rows);
	assert_true(service_is_stale(s));
	while (service_is_stale(s))
		service_poll();
	assert_in_range(b->rows, s->rows / 3 - 2, s->rows / 3 + 2); // the last weight counts
	forget(s);
	forget(t);
}

// What was removed or drained while a table was built is not in it.
static void removed_while_built(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 1000);
	struct endpoint *a = with(s, "10.0.0.31", 0, 1), *b = add_unbuilt(s, "10.0.0.32"), *c, *d;
	const struct service_table *was = s->table;
	unsigned i;

	c = add_unbuilt(s, "10.0.0.33");
	d = add_unbuilt(s, "10.0.0.34");
	assert_non_null(s->building);
	endpoint_del(b);
	assert_int_equal(endpoint_set(a, 0, &err), 0);
	while (s->table == was)
		service_poll();
	assert_int_equal(a->rows, 0);
	assert_int_equal(c->rows + d->rows, s->rows);
	for (i = 0; i < 500; i++) {
		struct flow_key k = key("203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80);
		uint32_t rule = ask(&k).rule;

		assert_true(rule == (NAT_OF_ENDPOINT | c->id) || rule == (NAT_OF_ENDPOINT | d->id));
	}
	forget(s);
}

// Without memory for the table after a removal, new flows are refused until there is some.
static void no_memory_to_remove(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 8);
	struct endpoint *a = with(s, "10.0.0.31", 0, 1), *b = with(s, "10.0.0.32", 0, 1);
	struct endpoint_config c = {router_addr("10.0.0.33"), 0, 1};

	no_memory = true;
	assert_null(endpoint_add(s, &c, &err));
	assert_int_equal(endpoint_set(b, 2, &err), -ENOMEM);
	assert_false(service_is_stale(s));
	endpoint_del(a);
	service_poll();
	assert_null(s->table);
	assert_true(service_is_stale(s));
	no_memory = false;
	service_poll();
	assert_int_equal(b->rows, s->rows);
	assert_false(service_is_stale(s));
	forget(s);
}

static unsigned shares;

static void count_share(void)
{
	shares++;
	service_poll(); // as the master's turns between the changes of a start
}

// A start that repeats the changes of many endpoints builds each table once, before packets arrive.
static void restart(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 1000), *t = add("tls", "198.51.100.1", 443, 1000);
	char addr[16];
	unsigned i;

	service_hold(true);
	for (i = 0; i < 200; i++) {
		snprintf(addr, sizeof(addr), "10.0.0.%u", 1 + i);
		add_unbuilt(s, addr);
		add_unbuilt(t, addr);
		service_poll();
	}
	assert_null(s->building);
	assert_null(s->table);
	service_finish(count_share);
	assert_in_range(shares, 20, 400);
	for (i = 0; i < s->n_endpoints; i++) {
		assert_in_range(s->endpoints[i]->rows, s->rows / 200, s->rows / 200 + 1);
		assert_in_range(t->endpoints[i]->rows, t->rows / 200, t->rows / 200 + 1);
	}
	endpoint_del(s->endpoints[0]);
	service_poll();
	assert_true(service_is_stale(s));
	no_memory = true;
	service_finish(count_share); // returns all the same
	no_memory = false;
	assert_true(service_is_stale(s));
	service_hold(false);
	while (service_is_stale(s)) // later turns do not forget it
		service_poll();
	assert_in_range(s->endpoints[0]->rows, s->rows / 199, s->rows / 199 + 1);
	forget(s);
	forget(t);
}

// The id of an endpoint is not reused while a table names it, however many others come and go.
static void id_in_old_table(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 1000), *t = add("tls", "198.51.100.1", 443, 8);
	struct endpoint *a = with(s, "10.0.0.31", 0, 1), *e;
	uint32_t id = a->id, i;
	struct service_totals totals;
	struct flow_key k = key("203.0.113.1", 1000, "198.51.100.1", 80);

	add_unbuilt(s, "10.0.0.32");
	endpoint_del(a);
	service_hold(true); // the old table stays
	for (i = 0; i < ENDPOINT_MAX; i++) {
		e = add_unbuilt(t, "10.0.0.31");
		assert_int_not_equal(e->id, id);
		endpoint_del(e);
		rcu_poll();
	}
	assert_int_equal(ask(&k).rule, NAT_OF_ENDPOINT | id);
	service_flow_made(NAT_OF_ENDPOINT | id);
	service_flow_ended(NAT_OF_ENDPOINT | id, (uint64_t[2]){0}, (uint64_t[2]){0});
	service_finish(rcu_poll);
	service_hold(false);
	while (rcu_pending() > 0)
		rcu_poll();
	service_totals(s, &totals);
	assert_int_equal(totals.flows, 1); // it has passed
	forget(s);
	forget(t);
}

static void by_client(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 8), *t = add("tls", "198.51.100.1", 443, 8);
	uint32_t first = 0, other = 0;
	struct service_config c;
	unsigned i;

	c = s->cfg;
	c.scheduler = SERVICE_SOURCE;
	assert_int_equal(service_set(s, &c, &err), 0);
	for (i = 0; i < 8; i++) {
		char addr[16];

		snprintf(addr, sizeof(addr), "10.0.0.%u", 30 + i);
		with(s, addr, 0, 1);
	}
	for (i = 0; i < 300; i++) {
		struct flow_key k = key("203.0.113.1", (uint16_t)(1000 + i), "198.51.100.1", 80);
		struct flow_key of = key("203.0.113.2", (uint16_t)(1000 + i), "198.51.100.1", 80);
		uint32_t rule = ask(&k).rule, rule2 = ask(&of).rule;

		first = i ? first : rule;
		other = i ? other : rule2;
		assert_int_equal(rule, first);
		assert_int_equal(rule2, other);
	}
	assert_true(ask(&(struct flow_key){.zone = RED}).rule == 0);
	forget(s);
	forget(t);
}

// What clients of one prefix have in common chooses, and nothing else.
static void by_client_prefix(void **state)
{
	static const struct {
		const char *vip, *first, *same, *other;
		uint8_t prefix;
	} all[] = {
		{"198.51.100.1", "203.0.113.1", "203.0.113.254", "203.0.112.1", 24},
		{"198.51.100.1", "203.0.113.16", "203.0.113.23", "203.0.113.24", 29},
		{"2001:db8::1", "2001:db8:2::1", "2001:db8:2:0:ffff::9", "2001:db8:2:1::1", 64},
		{"2001:db8::1", "2001:db8:2::1:0", "2001:db8:2::1:ffff", "2001:db8:2::2:0", 112},
	};
	unsigned i;

	for (i = 0; i < RTE_DIM(all); i++) {
		struct flow_key k[] = {key(all[i].first, 1000, all[i].vip, 80), key(all[i].same, 2000, all[i].vip, 80),
				       key(all[i].other, 1000, all[i].vip, 80)};
		uint32_t row = service_row(&k[0], SERVICE_SOURCE, all[i].prefix, 131071);

		assert_int_equal(service_row(&k[1], SERVICE_SOURCE, all[i].prefix, 131071), row);
		assert_int_not_equal(service_row(&k[2], SERVICE_SOURCE, all[i].prefix, 131071), row);
		assert_int_not_equal(service_row(&k[1], SERVICE_SOURCE, 0, 131071), row);
		assert_int_not_equal(service_row(&k[1], SERVICE_MAGLEV, all[i].prefix, 131071),
				     service_row(&k[0], SERVICE_MAGLEV, all[i].prefix, 131071));
	}
}

static void prefix_fits_the_family(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 8), *t = add("v6", "2001:db8::1", 80, 8);
	struct service_config c = s->cfg;

	c.client_prefix = 33;
	assert_int_equal(service_set(s, &c, &err), -EINVAL);
	assert_string_equal(err.field, "service.client_prefix");
	assert_int_equal(s->cfg.client_prefix, 0);
	c.client_prefix = 32;
	assert_int_equal(service_set(s, &c, &err), 0);
	c = t->cfg;
	c.client_prefix = 128;
	assert_int_equal(service_set(t, &c, &err), 0);
	forget(s);
	forget(t);
}

static void counts(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 8);
	struct endpoint *e = with(s, "10.0.0.31", 0, 1);
	uint32_t rule = NAT_OF_ENDPOINT | e->id, id;
	struct service_totals t;

	service_flow_made(rule);
	service_flow_made(rule);
	service_flow_ended(rule, (uint64_t[]){3, 4}, (uint64_t[]){300, 400});
	endpoint_totals(e->id, &t);
	assert_int_equal(t.flows, 2);
	assert_int_equal(t.active, 1);
	assert_int_equal(t.traffic.packets[0], 3);
	assert_int_equal(t.traffic.bytes[1], 400);
	endpoint_del(e);
	service_totals(s, &t);
	assert_int_equal(t.flows, 2);
	assert_int_equal(t.traffic.bytes[0], 300);
	// The id of an endpoint is not reused while it has flows.
	id = e->id;
	assert_int_equal(service_of_rule(rule), s->id);
	e = with(s, "10.0.0.31", 0, 1);
	assert_int_not_equal(e->id, id);
	// A flow that outlives its endpoint counts for the service when it ends, once.
	service_flow_ended(rule, (uint64_t[]){5, 6}, (uint64_t[]){50, 60});
	rcu_poll();
	service_totals(s, &t);
	assert_int_equal(t.traffic.packets[0], 8);
	assert_int_equal(t.traffic.bytes[1], 460);
	service_flow_made(NAT_OF_ENDPOINT | e->id);
	rule = NAT_OF_ENDPOINT | e->id;
	endpoint_del(e);
	forget(s);
	assert_int_equal(service_of_rule(rule), 0); // nor for the next service
	service_flow_ended(rule, (uint64_t[2]){0}, (uint64_t[2]){0});
}

static void refused(const char *vip, uint8_t protocol, uint16_t port, int code, const char *field)
{
	struct service_config c = {.name = "other",
				   .vrf = RED,
				   .external = RED,
				   .addr = router_addr(vip),
				   .protocol = protocol,
				   .port = port,
				   .max_endpoints = 2};

	assert_null(service_add(&c, &err));
	assert_int_equal(err.code, code);
	assert_string_equal(err.field, field);
}

static void endpoint_refused(struct service *s, const char *addr, uint16_t port, int code, const char *field)
{
	struct endpoint_config c = {router_addr(addr), port, 1};

	assert_null(endpoint_add(s, &c, &err));
	assert_int_equal(err.code, code);
	assert_string_equal(err.field, field);
}

static void refusals(void **state)
{
	struct service *s = add("web", "198.51.100.1", 80, 2), *ping;
	struct service_config c = {
		.name = "ping", .vrf = RED, .external = RED, .addr = router_addr("198.51.100.2"), .max_endpoints = 2};
	struct nat_config floating = {.id = 1,
				      .vrf = RED,
				      .external = RED,
				      .kind = NAT_FLOATING,
				      .inside = {router_addr("10.0.0.9"), 32},
				      .outside = router_addr("198.51.100.1")};
	struct nat_backend b = {router_addr("10.0.0.9"), 0, 1};
	struct nat_config destination = {.id = 1,
					 .vrf = RED,
					 .external = RED,
					 .kind = NAT_DESTINATION,
					 .outside = router_addr("198.51.100.1"),
					 .first_port = 80,
					 .protocol = IPPROTO_TCP,
					 .backends = &b,
					 .n_backends = 1};

	assert_null(service_add(&s->cfg, &err));
	assert_int_equal(err.code, EEXIST);
	refused("198.51.100.1", IPPROTO_TCP, 80, EEXIST, "service.address");
	refused("198.51.100.2", 0, 80, EINVAL, "service.port");
	assert_int_equal(nat_add(&floating, &err), -EEXIST);
	assert_int_equal(nat_add(&destination, &err), -EEXIST);
	assert_non_null(strstr(err.message, "is in use by service 'web'"));
	with(s, "10.0.0.31", 8080, 1);
	endpoint_refused(s, "10.0.0.31", 8080, EEXIST, "endpoint.address");
	endpoint_refused(s, "fd00::31", 8080, EINVAL, "endpoint.address");
	with(s, "10.0.0.31", 8081, 1);
	endpoint_refused(s, "10.0.0.32", 8080, ENOSPC, "endpoint.address");
	assert_int_equal(service_del("web", &err), -EBUSY);
	assert_int_equal(service_del("none", &err), -ENOENT);
	assert_int_equal(vrf_del("red", &err), -EBUSY);
	ping = service_add(&c, &err);
	assert_non_null(ping);
	endpoint_refused(ping, "10.0.0.31", 80, EINVAL, "endpoint.port");
	forget(ping);
	forget(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_have_golden_rows),
		cmocka_unit_test(choices),
		cmocka_unit_test(carried_flows),
		cmocka_unit_test(drain),
		cmocka_unit_test(large),
		cmocka_unit_test(changing),
		cmocka_unit_test(removed_while_built),
		cmocka_unit_test(no_memory_to_remove),
		cmocka_unit_test(restart),
		cmocka_unit_test(id_in_old_table),
		cmocka_unit_test(by_client),
		cmocka_unit_test(by_client_prefix),
		cmocka_unit_test(prefix_fits_the_family),
		cmocka_unit_test(counts),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
