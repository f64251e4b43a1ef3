// SPDX-License-Identifier: Apache-2.0
// flow4_lookup, flow6_lookup, flow4_create, flow6_create: packet in, edge and packet out; and the life of flows, in one
// thread.
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "flow/decide.h"
#include "flow/flow_private.h"
#include "flow/packet.h"
#include "flow/quota.h"
#include "flow/tcp.h"
#include "l3/ip_header.h"
#include "policy/rules.h"
#include "testing/router_fixture.h"

static void stateful(uint16_t port, bool on)
{
	struct port_config cfg = router_config(port);

	cfg.stateful = on;
	router_set(port, &cfg);
	flow_changes_take_effect();
}

static int begin(void **state)
{
	stateful(RED0, true);
	return 0;
}

// Lets the ager scan every flow, as it does within a second.
static void poll_all(void)
{
	static uint64_t tsc;

	tsc = RTE_MAX(tsc, (uint64_t)rte_rdtsc()) + flow_tsc_hz;
	flow_poll();
	flow_age(0, tsc);
}

static void forget_flows(void)
{
	uint32_t i;

	for (i = 1; i < flow_used_range(); i++)
		if (flows[i].state == FLOW_LIVE)
			flow_end(&flows[i]);
	for (i = 0; i < 100 && flow_count() > 0; i++)
		poll_all();
}

static int end(void **state)
{
	stateful(RED0, false);
	forget_flows();
	assert_int_equal(flow_count(), 0);
	return 0;
}

static struct rte_mbuf *sent(uint16_t port, const struct packet *p)
{
	struct rte_mbuf *m = router_packet(RED, p);

	m->port = port;
	return m;
}

static const struct packet there4 = {.src = "10.0.0.2", .dst = "10.0.0.3"},
			   there6 = {.src = "fd00::2", .dst = "fd00::3"};

static const char *through(const char *node, const struct packet *p, uint16_t port)
{
	struct rte_mbuf *m = sent(port, p);
	const char *edge = node_test_one(node, m);

	rte_pktmbuf_free(m);
	return edge;
}

static const char *lookup(const struct packet *p, uint16_t port)
{
	return through(strchr(p->src, ':') ? "flow6_lookup" : "flow4_lookup", p, port);
}

static const char *create(const struct packet *p, uint16_t port)
{
	return through(strchr(p->src, ':') ? "flow6_create" : "flow4_create", p, port);
}

static struct flow *only(void)
{
	struct flow *found = NULL;
	uint32_t i;

	for (i = 1; i < flow_used_range(); i++) {
		if (flows[i].state != FLOW_LIVE)
			continue;
		assert_null(found);
		found = &flows[i];
	}
	assert_non_null(found);
	return found;
}

static void flows_of_a_batch_have_their_own_routes(void **state)
{
	static const struct {
		const char *dst[2];
		uint32_t nexthop;
	} to[] = {{{"172.16.0.1", "fd00:99::1"}, VIA0}, {{"172.16.0.9", "fd00:99::9"}, VIA1},
		  {{"172.16.0.2", "fd00:99::2"}, VIA0}, {{"172.16.1.9", "fd00:99::1:9"}, VIA0},
		  {{"172.17.0.9", "fd00:98::9"}, VIA1}, {{"172.16.0.9", "fd00:99::9"}, VIA1}};
	static const char *const routes[][2] = {{"172.16.0.0/16", "172.16.0.9/32"}, {"fd00:99::/32", "fd00:99::9/128"}};
	static const char *const others[] = {"172.17.0.0/16", "fd00:98::/32"};
	struct rte_mbuf *m[RTE_DIM(to)];
	unsigned i, v6;

	for (v6 = 0; v6 < 2; v6++) {
		router_route("red", routes[v6][0], VIA0);
		router_route("red", routes[v6][1], VIA1);
		router_route("red", others[v6], VIA1);
		for (i = 0; i < RTE_DIM(to); i++)
			m[i] = sent(RED0, &(struct packet){.src = v6 ? "fd00::2" : "10.0.0.2",
							   .dst = to[i].dst[v6],
							   .sport = (uint16_t)(1 + i)});
		assert_int_equal(node_test_run(v6 ? "flow6_create" : "flow4_create", m, RTE_DIM(to)), RTE_DIM(to));
		for (i = 0; i < RTE_DIM(to); i++)
			assert_int_equal(meta(m[i])->nexthop->id, to[i].nexthop);
		rte_pktmbuf_free_bulk(m, RTE_DIM(to));
		for (i = 0; i < 2; i++)
			router_unroute("red", routes[v6][i]);
		router_unroute("red", others[v6]);
	}
}

// A group selects the same member for a packet with a flow as for one without, whatever its flow label is.
static void flows_and_packets_have_one_hash(void **state)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, PROTO_SCTP, IPPROTO_ESP};
	const struct packet *both[] = {&there4, &there6};
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < RTE_DIM(protocols); k++) {
			struct packet p = *both[i];
			struct flow_packet parsed;
			struct rte_mbuf *m;

			p.proto = protocols[k];
			p.payload = 40;
			m = sent(RED0, &p);
			if (i)
				rte_pktmbuf_mtod(m, uint8_t *)[3] = 0x5a; // flow label
			flow_parse(m, 0, RED, &parsed);
			if (flow_spread_hash(&parsed.key) != ip_hash(m, 0))
				fail_msg("IPv%c, protocol %u", i ? 0x36 : 0x34, protocols[k]);
			rte_pktmbuf_free(m);
		}
	}
}

static uint32_t hash_behind(const char *node, const struct packet *p)
{
	struct rte_mbuf *m = sent(RED0, p);
	uint32_t hash;

	node_test_one(node, m);
	hash = meta(m)->hash;
	rte_pktmbuf_free(m);
	return hash;
}

// The hash becomes the source port of the tunnel.
static void all_packets_of_a_flow_have_one_hash(void **state)
{
	struct packet other = there4;
	uint32_t hash = hash_behind("flow4_create", &there4);

	assert_int_not_equal(hash, 0);
	assert_int_equal(hash_behind("flow4_lookup", &there4), hash);
	other.sport = 1001;
	assert_int_not_equal(hash_behind("flow4_create", &other) >> 16, hash >> 16);
}

static void first_packet_and_those_that_follow(void **state)
{
	const struct packet *both[] = {&there4, &there6};
	unsigned i;

	for (i = 0; i < 2; i++) {
		const struct packet *p = both[i];
		struct packet back = {.src = p->dst, .dst = p->src, .sport = 2000, .dport = 1000};
		struct flow *f;

		assert_string_equal(lookup(p, RED0), i ? "flow6_create" : "flow4_create");
		assert_string_equal(create(p, RED0), "port_output");
		f = only();
		assert_int_equal(f->port[0], RED0);
		assert_int_equal(f->port[1], 0); // RED1 keeps no flows
		assert_int_equal(flow_quota_get(RED0).flows, 1);
		assert_string_equal(lookup(p, RED0), "port_output");
		assert_int_equal(f->dir[0].packets, 2);
		// The reverse direction is not decided yet.
		assert_string_equal(lookup(&back, RED1), i ? "flow6_create" : "flow4_create");
		assert_string_equal(create(&back, RED1), "port_output");
		assert_string_equal(lookup(&back, RED1), "port_output");
		assert_int_equal(f->dir[1].packets, 2);
		assert_int_equal(f->dir[1].bytes, 2 * (26 + (i ? 40 : 20)));
		forget_flows();
	}
}

static void a_second_create_finds_the_flow(void **state)
{
	struct rte_mbuf *two[] = {sent(RED0, &there4), sent(RED0, &there4)};

	assert_int_equal(node_test_run("flow4_create", two, 2), 2);
	assert_int_equal(only()->dir[0].packets, 2);
	rte_pktmbuf_free_bulk(two, 2);
}

static void other_headers(void **state)
{
	struct packet ttl = there4, far = {.src = "10.0.0.2", .dst = "192.168.7.7"},
		      gateway = {.src = "10.0.0.2", .dst = "10.0.0.1"};

	ttl.ttl = 1;
	assert_string_equal(create(&ttl, RED0), "icmp_error"); // the flow exists nevertheless
	only();
	assert_string_equal(create(&far, RED0), "icmp_error"); // there is no route
	assert_string_equal(create(&gateway, RED0), "ip_local");
	only();
}

static void nobody_wants_flows(void **state)
{
	struct packet p = {.src = "10.0.0.3", .dst = "10.0.0.2"};

	stateful(RED0, false);
	assert_string_equal(create(&p, RED1), "port_output");
	assert_int_equal(flow_count(), 0);
	stateful(RED0, true);
	assert_string_equal(create(&p, RED1), "port_output"); // the receiver's port keeps flows
	assert_int_equal(only()->port[1], RED0);
	assert_int_equal(flow_quota_get(RED0).flows, 1);
}

static void changes_are_seen(void **state)
{
	struct flow *f;

	create(&there4, RED0);
	f = only();
	assert_string_equal(lookup(&there4, RED0), "port_output");
	flow_zone_changed(RED);
	assert_string_equal(lookup(&there4, RED0), "port_output"); // changes take effect with the end of the request
	flow_changes_take_effect();
	assert_string_equal(lookup(&there4, RED0), "flow4_create");
	assert_string_equal(create(&there4, RED0), "port_output");
	assert_ptr_equal(only(), f);
	assert_string_equal(lookup(&there4, RED0), "port_output");
}

static uint16_t add_guest(const struct rule_list *egress)
{
	struct port_config c = router_config(RED0);
	struct port *p;

	snprintf(c.name, sizeof(c.name), "guest");
	c.guests[0].addr = router_addr("10.0.0.50");
	c.n_guests = 1;
	rules_config_edit(&c)->lists[RULES_EGRESS] = egress ? egress->id : 0;
	p = port_add(&c, NULL);
	assert_non_null(p);
	flow_changes_take_effect();
	return p->id;
}

// A port that replaces another one does not inherit its flows.
static void a_removed_port_leaves_no_flows(void **state)
{
	struct rule_list *deny = rule_list_add("deny", false, NULL);
	struct packet p = {.src = "10.0.0.50", .dst = "10.0.0.3"},
		      back = {.src = "10.0.0.3", .dst = "10.0.0.50", .sport = 2000, .dport = 1000};
	uint16_t port = add_guest(NULL);

	stateful(RED1, true);
	assert_string_equal(create(&p, port), "port_output");
	assert_string_equal(create(&back, RED1), "port_output");
	assert_int_equal(port_del("guest", NULL), 0);
	port = add_guest(deny);
	assert_string_equal(lookup(&p, port), "flow4_create");
	assert_string_equal(create(&p, port), "drop");
	assert_int_equal(only()->port[0], port);
	assert_int_equal(port_del("guest", NULL), 0);
	assert_int_equal(rule_list_del("deny", NULL), 0);
	stateful(RED1, false);
}

static void ages(void **state)
{
	uint16_t was = flow_timeouts.udp;

	create(&there4, RED0);
	flow_timeouts.udp = 1;
	only()->dir[0].seen = only()->dir[1].seen = (uint16_t)(flow_now() - 3);
	poll_all();
	flow_timeouts.udp = was;
	assert_int_equal(flow_quota_get(RED0).flows, 0);
	assert_string_equal(lookup(&there4, RED0), "flow4_create");
}

// A worker's clock may be in the next second already when the master scans.
static void seen_in_the_next_second(void **state)
{
	struct flow *f;

	create(&there4, RED0);
	f = only();
	f->dir[0].seen = (uint16_t)(flow_now() + 1);
	f->dir[1].seen = (uint16_t)(flow_now() - 100);
	poll_all();
	assert_ptr_equal(only(), f);
}

static void the_table_is_full(void **state)
{
	struct packet p = there4;
	unsigned i, refused = 0;

	for (i = 0; i < FLOW_CAPACITY_MIN + 50; i++) {
		p.sport = (uint16_t)(10000 + i);
		refused += strcmp(create(&p, RED0), "drop") == 0;
	}
	assert_int_equal(refused, 50);
	assert_string_equal(create(&p, RED0), "drop");
	assert_int_equal(router_drops(RED0, "flow_table_full"), 0); // the drop node counts, and did not run
	forget_flows();
	assert_string_equal(create(&p, RED0), "port_output"); // the refusal ends with its cause
}

static void measure(void)
{
	flow_poll();
	flow_quota_weigh();
}

// Returns how many of n new flows were created.
static unsigned flood(uint16_t port, unsigned from, unsigned n)
{
	struct packet p = {.src = port == RED0 ? "10.0.0.2" : "10.0.0.3",
			   .dst = port == RED0 ? "10.0.0.3" : "10.0.0.2"};
	unsigned i, made = 0;

	for (i = 0; i < n; i++) {
		p.sport = (uint16_t)(from + i);
		made += strcmp(create(&p, port), "drop") != 0;
		if (i % 8 == 0)
			measure(); // as the master does each millisecond
	}
	measure();
	return made;
}

// Only ports above the fair level lose flows: a port below it gets new ones and keeps its own.
static void a_large_port_beside_an_attacker(void **state)
{
	unsigned i, made;

	stateful(RED1, true);
	assert_int_equal(flood(RED1, 1, FLOW_CAPACITY_MIN / 4), FLOW_CAPACITY_MIN / 4);
	made = flood(RED0, 10000, FLOW_CAPACITY_MIN);
	assert_in_range(made, FLOW_CAPACITY_MIN * 60 / 100, FLOW_CAPACITY_MIN * 63 / 100);
	assert_true(flow_quota_over_share(RED0));
	assert_false(flow_quota_over_share(RED1));
	assert_int_equal(flood(RED1, 1000, 120), 120);
	for (i = 0; i < 20; i++)
		poll_all();
	assert_int_equal(flow_quota_get(RED1).flows, FLOW_CAPACITY_MIN / 4 + 120);
	stateful(RED1, false);
}

static void one_port_does_not_take_the_table(void **state)
{
	unsigned made, i;

	stateful(RED1, true);
	made = flood(RED0, 10000, FLOW_CAPACITY_MIN);
	assert_in_range(made, FLOW_CAPACITY_MIN * 85 / 100, FLOW_CAPACITY_MIN * 87 / 100);
	assert_int_equal(flow_quota_get(RED0).flows, made);
	assert_int_equal(flood(RED1, 1, 100), 100); // the other port gets its flows
	// Once the table is nearly full, flows of the port above its share end, although none is old.
	assert_int_equal(flood(RED1, 101, 40), 40);
	assert_true(flow_pressure() >= 95);
	for (i = 0; i < 20; i++)
		poll_all();
	assert_in_range(flow_quota_get(RED0).flows, FLOW_CAPACITY_MIN * 58 / 100,
			FLOW_CAPACITY_MIN * 82 / 100); // flows end until the table is below 95 %
	assert_int_equal(flow_quota_get(RED1).flows, 140);
	stateful(RED1, false);
}

// Each refusal ends with its cause, and not some seconds later.
static void refusals_end_with_their_cause(void **state)
{
	struct packet p = there4;

	assert_string_equal(create(&there4, RED0), "port_output");
	p.sport = 2;
	flow_quota_set(RED0, 1, 0);
	assert_string_equal(create(&p, RED0), "drop");
	assert_string_equal(create(&p, RED0), "drop");
	flow_end(only());
	assert_string_equal(create(&p, RED0), "port_output");
	flow_quota_set(RED0, 0, 1);
	do
		p.sport++; // the first one of a window may pass
	while (strcmp(create(&p, RED0), "drop") != 0);
	flow_quota_set(RED0, 0, 0);
	assert_string_equal(create(&p, RED0), "port_output");
	flood(RED0, 10000, FLOW_CAPACITY_MIN);
	p.sport = 9999;
	assert_string_equal(create(&p, RED0), "drop");
	forget_flows();
	measure();
	assert_string_equal(create(&p, RED0), "port_output");
}

static void denied_flows_have_a_cap(void **state)
{
	unsigned i, taken = 0;

	for (i = 0; i < FLOW_CAPACITY_MIN; i++)
		taken += flow_quota_take_denied(0, RED1);
	assert_int_equal(taken, FLOW_DENIED_MIN);
	flow_quota_return_denied(0, RED1);
	assert_true(flow_quota_take_denied(0, RED1));
	for (i = 0; i < taken; i++)
		flow_quota_return_denied(0, RED1);
}

static uint8_t tcp_after(struct flow *f, unsigned dir)
{
	f->tcp = flow_tcp_next(f, dir, TCP_ACK);
	f->dir[dir].packets++;
	return f->tcp;
}

// Two packets are not enough for the long timeout of established connections.
static void tcp_from_the_middle_proves_itself(void **state)
{
	struct flow f = {0};
	unsigned i;

	f.dir[0].key.proto = IPPROTO_TCP;
	assert_int_equal(flow_timeout(&f), flow_timeouts.tcp[TCP_SYN_SENT]);
	for (i = 0; i < 3; i++) {
		assert_int_equal(tcp_after(&f, 0), TCP_NONE);
		assert_int_equal(tcp_after(&f, 1), TCP_NONE);
	}
	assert_int_equal(flow_timeout(&f), flow_timeouts.tcp[TCP_FIN_WAIT]);
	assert_int_equal(tcp_after(&f, 0), TCP_ESTABLISHED);
}

// Whoever knows the 5-tuple can forge the end of a connection: it is closed only until both hosts prove that it lives.
static void tcp_survives_a_forged_end(void **state)
{
	static const uint8_t ends[] = {TCP_RST, TCP_FIN | TCP_ACK};
	unsigned i, k;

	for (i = 0; i < RTE_DIM(ends); i++) {
		struct flow f = {.tcp = TCP_ESTABLISHED};

		f.tcp = flow_tcp_next(&f, 0, ends[i]);
		f.tcp = flow_tcp_next(&f, 1, ends[i]);
		assert_true(f.tcp >= TCP_CLOSING);
		for (k = 0; k < 10; k++) // what was on its way to the host that closed, each answered by a RST
			assert_true(tcp_after(&f, 1) >= TCP_CLOSING);
		f.tcp = flow_tcp_next(&f, 0, TCP_RST);
		assert_int_equal(f.tcp, TCP_CLOSED);
		for (k = 0; k < 2; k++) {
			assert_int_equal(tcp_after(&f, 0), TCP_CLOSED);
			assert_int_equal(tcp_after(&f, 1), TCP_CLOSED);
		}
		assert_int_equal(tcp_after(&f, 0), TCP_CLOSED);
		assert_int_equal(tcp_after(&f, 1), TCP_ESTABLISHED);
		f.tcp = flow_tcp_next(&f, 0, TCP_FIN | TCP_ACK); // the real end
		assert_int_equal(f.tcp, TCP_FIN_WAIT);
		f.tcp = flow_tcp_next(&f, 1, TCP_FIN | TCP_ACK);
		assert_int_equal(f.tcp, TCP_CLOSING);
	}
}

// The decision of a direction is never taken for current because its generation came round, at the 65,535th change.
static void generations_wrap_around(void **state)
{
	struct packet back = {.src = "10.0.0.3", .dst = "10.0.0.2", .sport = 2000, .dport = 1000};
	unsigned i;

	assert_string_equal(create(&there4, RED0), "port_output");
	assert_string_equal(create(&back, RED1), "port_output");
	for (i = 0; i < UINT16_MAX; i++) {
		flow_zone_changed(RED);
		flow_changes_take_effect();
		if (i % 16384 == 0)
			assert_string_equal(create(&there4, RED0), "port_output");
	}
	assert_string_equal(lookup(&back, RED1), "flow4_create");
	assert_string_equal(create(&back, RED1), "port_output");
	assert_string_equal(lookup(&back, RED1), "port_output");
}

// A worker that was preempted while it decided about a flow does not make another one wait for long, or pass packets by
// the old decision.
static void another_worker_decides(void **state)
{
	struct rte_mbuf *m = sent(RED0, &there4);
	struct flow *f;

	assert_string_equal(create(&there4, RED0), "port_output");
	f = only();
	f->lock = 1;
	assert_string_equal(lookup(&there4, RED0), "port_output"); // the fast path does not take it
	flow_zone_changed(RED);
	flow_changes_take_effect();
	assert_string_equal(lookup(&there4, RED0), "flow4_create");
	meta(m)->arg = flow_entry(f, 0);
	assert_string_equal(node_test_one("flow4_create", m), "drop");
	assert_string_equal(node_test_reason(m), "flow_changing");
	f->lock = 0;
	meta(m)->arg = flow_entry(f, 0);
	assert_string_equal(node_test_one("flow4_create", m), "port_output");
	rte_pktmbuf_free(m);
}

// Rules do not see an ICMP error about an allowed flow, so each port has a rate of them.
static void errors_about_flows_have_a_rate(void **state)
{
	unsigned i, passed = 0;

	for (i = 0; i < 5000; i++)
		passed += flow_quota_error(RED1, false);
	assert_in_range(passed, 1000, 4000);
	assert_true(flow_quota_error(RED0, false)); // another port has a rate of its own
	assert_true(flow_quota_error(RED1, true));  // and so have errors from tunnels
}

static void quota_of_a_port(void **state)
{
	struct port_config c = router_config(RED0);
	struct error err;

	*flow_quota_config_edit(&c) = (struct flow_quota_config){.limit = 5, .rate = 6};
	c.stateful = false;
	assert_int_equal(port_set(port_get(RED0), &c, &err), -EINVAL);
	assert_string_equal(err.field, "port.flow_limit");
	assert_int_equal(flow_quota_get(RED0).limit, 0);
	c.stateful = true;
	router_set(RED0, &c);
	assert_int_equal(flow_quota_get(RED0).limit, 5);
	assert_int_equal(flow_quota_get(RED0).rate, 6);
	*flow_quota_config_edit(&c) = (struct flow_quota_config){0};
	c.stateful = false;
	router_set(RED0, &c);
	assert_int_equal(flow_quota_get(RED0).limit, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_and_packets_have_one_hash),
		cmocka_unit_test_setup_teardown(all_packets_of_a_flow_have_one_hash, begin, end),
		cmocka_unit_test_setup_teardown(first_packet_and_those_that_follow, begin, end),
		cmocka_unit_test_setup_teardown(flows_of_a_batch_have_their_own_routes, begin, end),
		cmocka_unit_test_setup_teardown(a_second_create_finds_the_flow, begin, end),
		cmocka_unit_test_setup_teardown(other_headers, begin, end),
		cmocka_unit_test_setup_teardown(nobody_wants_flows, begin, end),
		cmocka_unit_test_setup_teardown(changes_are_seen, begin, end),
		cmocka_unit_test_setup_teardown(a_removed_port_leaves_no_flows, begin, end),
		cmocka_unit_test_setup_teardown(ages, begin, end),
		cmocka_unit_test_setup_teardown(seen_in_the_next_second, begin, end),
		cmocka_unit_test_setup_teardown(the_table_is_full, begin, end),
		cmocka_unit_test_setup_teardown(one_port_does_not_take_the_table, begin, end),
		cmocka_unit_test_setup_teardown(a_large_port_beside_an_attacker, begin, end),
		cmocka_unit_test_setup_teardown(refusals_end_with_their_cause, begin, end),
		cmocka_unit_test(denied_flows_have_a_cap),
		cmocka_unit_test_setup_teardown(generations_wrap_around, begin, end),
		cmocka_unit_test_setup_teardown(another_worker_decides, begin, end),
		cmocka_unit_test(tcp_from_the_middle_proves_itself),
		cmocka_unit_test(tcp_survives_a_forged_end),
		cmocka_unit_test(errors_about_flows_have_a_rate),
		cmocka_unit_test(quota_of_a_port),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
