// SPDX-License-Identifier: Apache-2.0
// Flows and counters over a restart: what is written comes back, and nothing comes back of a file that is not whole, or
// of a record that does not fit. The "restart" of this test ends all flows between the two.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory_left.h"
#include "flow/flow_carry.h"
#include "flow/flow_private.h"
#include "flow/quota.h"
#include "graph/counters.h"
#include "keep/carry_private.h"
#include "keep/keep_private.h"
#include "port/port_carry.h"
#include "policy/nat.h"
#include "policy/service.h"
#include "testing/router_fixture.h"

static char dir[64], path[CARRY_PATH];

static const struct packet there = {.src = "10.0.0.2", .dst = "10.0.0.3"},
			   back = {.src = "10.0.0.3", .dst = "10.0.0.2", .sport = 2000, .dport = 1000},
			   out = {.src = "10.0.0.2", .dst = "203.0.113.9"},
			   served = {.src = "10.0.0.2", .dst = "198.18.0.80"};

static const char *pass(const char *node, const struct packet *p, uint16_t port)
{
	struct rte_mbuf *m = router_packet(RED, p);
	const char *edge;

	m->port = port;
	edge = node_test_one(node, m);
	rte_pktmbuf_free(m);
	return edge;
}

static void forget_flows(void)
{
	static uint64_t tsc;
	uint32_t i;

	for (i = 1; i < flow_used_range(); i++)
		if (flows[i].state == FLOW_LIVE)
			flow_end(&flows[i]);
	for (i = 0; i < 100 && flow_count() > 0; i++) {
		tsc = RTE_MAX(tsc, (uint64_t)rte_rdtsc()) + flow_tsc_hz;
		flow_poll();
		flow_age(0, tsc);
	}
	assert_int_equal(flow_count(), 0);
	assert_int_equal(flow_quota_get(RED0).flows, 0);
}

static int carry_setup(void **state)
{
	struct nat_config source = {.id = 7, .kind = NAT_SOURCE, .vrf = RED, .external = RED};
	struct port_config cfg;
	struct error err = {0};

	if (router_setup(state) < 0)
		return -1;
	port_carry_init();
	flow_carry_init();
	snprintf(dir, sizeof(dir), "/tmp/corelane-carry-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/" CARRY_FILE, dir);
	cfg = router_config(RED0);
	cfg.stateful = true;
	router_set(RED0, &cfg);
	router_route("red", "203.0.113.0/24", VIA0);
	source.inside = (struct ip_prefix){router_addr("10.0.0.0"), 24};
	source.outside = source.last = router_addr("198.18.0.3");
	source.to = (struct ip_prefix){router_addr("203.0.113.0"), 24};
	assert_int_equal(nat_add(&source, &err), 0);
	flow_changes_take_effect();
	return 0;
}

static int carry_teardown(void **state)
{
	rmdir(dir);
	return router_teardown(state);
}

static void carry_write_file(void)
{
	carry_start(dir);
	carry_stop();
	assert_int_equal(access(path, R_OK), 0);
}

static struct flow *find_flow(uint32_t nat)
{
	uint32_t i;

	for (i = 1; i < flow_used_range(); i++)
		if (flows[i].state == FLOW_LIVE && flows[i].nat == nat)
			return &flows[i];
	return NULL;
}

static void flows_come_back(void **state)
{
	struct flow_key key[2];
	struct flow *f;
	unsigned i;

	pass("flow4_create", &there, RED0);
	pass("flow4_lookup", &there, RED0);
	pass("flow4_create", &out, RED0);
	f = find_flow(7);
	assert_non_null(f);
	for (i = 0; i < 2; i++)
		key[i] = f->dir[i].key;
	f->tcp = 3;
	carry_write_file();
	forget_flows();
	carry_load(dir);
	assert_int_equal(access(path, F_OK), -1); // it is read once
	assert_int_equal(flow_count(), 2);
	assert_int_equal(flow_quota_get(RED0).flows, 2);
	f = find_flow(7);
	assert_non_null(f);
	assert_memory_equal(&f->dir[0].key, &key[0], sizeof(key[0]));
	assert_memory_equal(&f->dir[1].key, &key[1], sizeof(key[1]));
	assert_int_equal(f->tcp, 3);
	f = find_flow(0);
	assert_non_null(f);
	assert_int_equal(f->dir[0].packets, 2);
	// The decision is made anew, by the first packet, and later ones find it.
	assert_string_equal(pass("flow4_lookup", &back, RED1), "flow4_create");
	assert_string_not_equal(pass("flow4_create", &back, RED1), "drop");
	assert_string_not_equal(pass("flow4_lookup", &back, RED1), "flow4_create");
	assert_int_equal(flow_count(), 2);
	assert_int_equal(f->dir[1].owner, 0); // the worker that saw it
	forget_flows();
}

static struct endpoint *carry_endpoint(struct service *s, const char *addr)
{
	struct endpoint_config c = {router_addr(addr), 0, 1};
	struct error err;
	struct endpoint *e = endpoint_add(s, &c, &err);

	assert_non_null(e);
	return e;
}

// The endpoint of a flow has another id after the restart, and the table may choose another endpoint.
static void flows_of_services_come_back(void **state)
{
	struct service_config c = {
		.name = "web", .vrf = RED, .external = RED, .addr = router_addr("198.18.0.80"), .max_endpoints = 2};
	struct service_totals t;
	struct endpoint *e, *other;
	struct error err;
	struct service *s = service_add(&c, &err);
	struct flow *f;

	assert_non_null(s);
	e = carry_endpoint(s, "10.0.0.3");
	flow_changes_take_effect();
	assert_string_not_equal(pass("flow4_create", &served, RED0), "drop");
	f = find_flow(NAT_OF_ENDPOINT | e->id);
	assert_non_null(f);
	assert_int_equal(f->dir[1].key.src4, ip4_be(&e->cfg.addr));
	carry_write_file();
	forget_flows();
	endpoint_del(e);
	other = carry_endpoint(s, "203.0.113.9");
	e = carry_endpoint(s, "10.0.0.3");
	assert_int_equal(endpoint_set(e, 0, &err), 0);
	carry_load(dir);
	f = find_flow(NAT_OF_ENDPOINT | e->id);
	assert_non_null(f);
	endpoint_totals(e->id, &t);
	assert_int_equal(t.active, 1);
	assert_string_not_equal(pass("flow4_create", &served, RED0), "drop");
	assert_ptr_equal(find_flow(NAT_OF_ENDPOINT | e->id), f);
	assert_int_equal(flow_packets(f, 0), 2);
	forget_flows();
	endpoint_totals(e->id, &t);
	assert_int_equal(t.active, 0);
	assert_int_equal(t.traffic.packets[0], 2);
	endpoint_del(e);
	endpoint_del(other);
	assert_int_equal(service_del("web", &err), 0);
	flow_changes_take_effect();
}

static void counters_come_back(void **state)
{
	uint64_t before = counters_drops(RED0, 1);
	struct port_counters n;

	counters->drops[RED0][1] += 5;
	counters->port[RED0].rx_packets = 11;
	counters->port[RED0].tx_bytes = 12;
	carry_write_file();
	counters_port_reset(RED0);
	carry_load(dir);
	counters_port(RED0, &n);
	assert_int_equal(n.rx_packets, 11);
	assert_int_equal(n.tx_bytes, 12);
	assert_int_equal(counters_drops(RED0, 1), before + 5);
}

static size_t read_file(uint8_t *data, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(data, 1, size, f);
	fclose(f);
	unlink(path);
	return n;
}

// Cut at each byte, and with each byte changed.
static void damaged(void **state)
{
	static uint8_t data[65536];
	size_t size, i;

	pass("flow4_create", &there, RED0);
	carry_write_file();
	forget_flows();
	size = read_file(data, sizeof(data));
	for (i = 0; i < size; i++) {
		assert_int_equal(carry_read(data, i), -EBADMSG);
		data[i] ^= 0x10;
		assert_int_equal(carry_read(data, size), -EBADMSG);
		data[i] ^= 0x10;
	}
	assert_int_equal(flow_count(), 0);
	assert_int_equal(carry_read(data, size), 0);
	assert_int_equal(flow_count(), 1);
	assert_int_equal(carry_read(data, size), 0); // the same flow once more: it exists
	assert_int_equal(flow_count(), 1);
	forget_flows();
}

// What the configuration does not have any more.
static void gone(void **state)
{
	struct port_config cfg = router_config(RED0);
	static uint8_t data[65536];
	struct error err = {0};
	size_t size;

	pass("flow4_create", &there, RED0);
	pass("flow4_create", &out, RED0);
	carry_write_file();
	forget_flows();
	size = read_file(data, sizeof(data));
	assert_int_equal(nat_del(7, &err), 0);
	flow_changes_take_effect();
	assert_int_equal(carry_read(data, size), 0);
	assert_int_equal(flow_count(), 1); // without its rule a translated one is left out
	forget_flows();
	cfg.stateful = false;
	router_set(RED0, &cfg);
	assert_int_equal(carry_read(data, size), 0);
	assert_int_equal(flow_count(), 0); // the VRF keeps no flows
}

static void of_others(void **state)
{
	counters_port_reset(RED0);
	counters->port[RED0].rx_packets = 3;
	carry_write_file();
	assert_int_equal(chmod(path, 0622), 0); // others may have written to it
	counters_port_reset(RED0);
	carry_load(dir);
	assert_int_equal(counters->port[RED0].rx_packets, 0);
	assert_int_equal(access(path, F_OK), -1);
}

static uint64_t two_bytes(const char *root)
{
	return 2;
}

// Reading a file that takes more memory than there is would end the process.
static void without_memory(void **state)
{
	counters_port_reset(RED0);
	counters->port[RED0].rx_packets = 3;
	carry_write_file();
	counters_port_reset(RED0);
	carry_memory_left = two_bytes;
	carry_load(dir);
	carry_memory_left = memory_left;
	assert_int_equal(counters->port[RED0].rx_packets, 0);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_come_back),
		cmocka_unit_test(flows_of_services_come_back),
		cmocka_unit_test(counters_come_back),
		cmocka_unit_test(damaged),
		cmocka_unit_test(of_others),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(gone),
	};

	return cmocka_run_group_tests(tests, carry_setup, carry_teardown);
}
