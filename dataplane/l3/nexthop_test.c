// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "l3/underlay.h"
#include "neighbor/neighbor.h"
#include "testing/router_fixture.h"

static struct error err;

static struct nexthop_config to_port(uint32_t id, uint16_t port, const char *mac)
{
	return (struct nexthop_config){.id = id, .kind = NH_PORT, .port = {.id = port, .mac = router_mac(mac)}};
}

static void added_and_deleted(void **state)
{
	struct nexthop_config c = to_port(FREE_ID, RED0, "02:00:00:00:00:03");
	unsigned before = nexthop_count();

	assert_int_equal(nexthop_add(&c, false, &err), 0);
	assert_int_equal(nexthop_count(), before + 1);
	assert_int_equal(nexthop_table[FREE_ID]->port, RED0);
	assert_int_equal(nexthop_table[FREE_ID]->edge, NH_EDGE_PORT);
	assert_true(nexthop_get(FREE_ID)->resolved);
	assert_int_equal(nexthop_add(&c, false, &err), -EEXIST);
	assert_string_equal(err.field, "nexthop.id");
	assert_int_equal(nexthop_del(FREE_ID, &err), 0);
	assert_null(nexthop_table[FREE_ID]);
	assert_null(nexthop_get(FREE_ID));
	assert_int_equal(nexthop_count(), before);
	assert_int_equal(nexthop_del(FREE_ID, &err), -ENOENT);
}

static void refused(void **state)
{
	struct nexthop_config c = {.id = FREE_ID, .kind = NH_PORT, .port.id = RED0};

	assert_int_equal(nexthop_add(&c, false, &err), -EINVAL); // neither address nor MAC
	assert_string_equal(err.field, "nexthop.port.address");
	c.port.addr = router_addr("224.0.0.1");
	assert_int_equal(nexthop_add(&c, false, &err), -EINVAL);
	c.port.addr = router_addr("10.0.0.1"); // the gateway itself
	assert_int_equal(nexthop_add(&c, false, &err), -EINVAL);
	c = to_port(FREE_ID, PORTS_END, "02:00:00:00:00:03");
	assert_int_equal(nexthop_add(&c, false, &err), -ENOENT);
	c = (struct nexthop_config){.id = FREE_ID, .kind = NH_TUNNEL};
	c.tunnel = (struct tunnel_config){.encap = encap_find("mplsoudp"), .label = 100};
	c.tunnel.remote = router_addr("192.0.2.1"); // this node
	assert_int_equal(nexthop_add(&c, false, &err), -EINVAL);
	assert_string_equal(err.field, "nexthop.tunnel.remote");
	c.tunnel.remote = router_addr("2001:db8::1");
	assert_int_equal(nexthop_add(&c, false, &err), -EINVAL);
	assert_null(nexthop_get(FREE_ID));
	assert_int_equal(nexthop_usable(FREE_ID, "route.nexthop", &err), -ENOENT);
	assert_string_equal(err.field, "route.nexthop");
	assert_int_equal(nexthop_usable(NH_ID_LOCAL, "route.nexthop", &err), -ENOENT); // the system's
}

static struct nexthop_config to_host(uint32_t id, uint16_t port, const char *addr)
{
	struct nexthop_config c = {.id = id, .kind = NH_PORT, .port.id = port};

	c.port.addr = router_addr(addr);
	return c;
}

// A next hop of a fabric port is on its link.
static void on_link(void **state)
{
	static const char *const good[] = {"192.0.2.77", "2001:db8::77", "fe80::1"}, *const bad[] = {"198.51.100.7",
												     "2001:db8:7::1"};
	struct nexthop_config c;
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		c = to_host(FREE_ID, FABRIC0, bad[i]);
		assert_int_equal(nexthop_add(&c, false, &err), -EINVAL);
		assert_string_equal(err.field, "nexthop.port.address");
	}
	for (i = 0; i < RTE_DIM(good); i++) {
		c = to_host(FREE_ID, FABRIC0, good[i]);
		assert_int_equal(nexthop_add(&c, false, &err), 0);
		assert_int_equal(nexthop_del(FREE_ID, NULL), 0);
	}
}

// IPv6 has no way through an IPv4 neighbour; IPv4 has one through an IPv6 neighbour.
static void families(void **state)
{
	struct nexthop_config c = to_host(FREE_ID, FABRIC0, "192.0.2.77"),
			      group = {
				      .id = FREE_ID + 1, .kind = NH_GROUP, .group = {.n = 1, .member = {{FREE_ID, 1}}}};

	router_nexthop(&c);
	router_nexthop(&group);
	assert_int_equal(nexthop_carries(FREE_ID, IPV4, "route.nexthop", &err), 0);
	assert_int_equal(nexthop_carries(FREE_ID, IPV6, "route.nexthop", &err), -EINVAL);
	assert_int_equal(nexthop_carries(FREE_ID + 1, IPV6, "route.nexthop", &err), -EINVAL);
	assert_int_equal(nexthop_del(FREE_ID + 1, NULL), 0);
	assert_int_equal(nexthop_del(FREE_ID, NULL), 0);
	c = to_host(FREE_ID, FABRIC0, "2001:db8::77");
	router_nexthop(&c);
	assert_int_equal(nexthop_carries(FREE_ID, IPV4, "route.nexthop", &err), 0);
	assert_int_equal(nexthop_carries(FREE_ID, IPV6, "route.nexthop", &err), 0);
	assert_int_equal(nexthop_del(FREE_ID, NULL), 0);
}

static void in_use(void **state)
{
	struct nexthop_config c = to_port(FREE_ID, RED1, "02:00:00:00:00:04"),
			      local = {.id = FREE_ID, .kind = NH_LOCAL};
	struct nexthop_config group = {.id = FREE_ID, .kind = NH_GROUP, .group = {.n = 1, .member = {{VIA0, 1}}}};

	router_nexthop(&c);
	router_route("red", "172.16.0.0/12", FREE_ID);
	router_route("red", "172.16.0.0/16", FREE_ID);
	assert_int_equal(nexthop_get(FREE_ID)->refs, 2);
	assert_int_equal(nexthop_del(FREE_ID, &err), -EBUSY);
	assert_non_null(strstr(err.message, "': is in use by route 172.16.0.0/12 of VRF 'red' (2 references in all)"));
	assert_int_equal(nexthop_add(&local, true, &err), -EBUSY);
	assert_non_null(strstr(err.message, "': cannot become local, because it is in use by route 172.16.0.0/12"));
	assert_int_equal(nexthop_add(&group, true, &err), -EBUSY);
	assert_non_null(strstr(err.message, "': cannot become a group, because it is in use by route 172.16.0.0/12"));
	assert_int_equal(nexthop_table[FREE_ID]->kind, NH_PORT);
	c = to_port(FREE_ID, RED0, "02:00:00:00:00:03"); // routes use the change
	router_nexthop(&c);
	assert_int_equal(nexthop_table[FREE_ID]->port, RED0);
	assert_int_equal(nexthop_get(FREE_ID)->refs, 2);
	router_unroute("red", "172.16.0.0/16");
	router_unroute("red", "172.16.0.0/12");
	assert_int_equal(nexthop_del(FREE_ID, &err), 0);
}

static uint32_t refs(uint16_t port, const char *addr)
{
	struct ip_addr a = router_addr(addr);
	struct neighbor *n = neighbor_find(port, &a);

	return n ? n->refs : 0;
}

static void neighbors_held(void **state)
{
	struct nexthop_config c = {
		.id = FREE_ID, .kind = NH_PORT, .port = {.id = RED1, .addr = router_addr("10.0.0.50")}};

	router_nexthop(&c);
	assert_int_equal(refs(RED1, "10.0.0.50"), 1);
	assert_false(nexthop_get(FREE_ID)->resolved);
	router_nexthop(&c); // the same once more
	assert_int_equal(refs(RED1, "10.0.0.50"), 1);
	neighbor_learn(RED1, &c.port.addr, &(struct rte_ether_addr){{2, 0, 0, 0, 0, 0x50}}, false, true);
	router_poll();
	assert_true(nexthop_get(FREE_ID)->resolved);
	c.port.addr = router_addr("10.0.0.51");
	router_nexthop(&c);
	assert_int_equal(refs(RED1, "10.0.0.50"), 0);
	assert_int_equal(refs(RED1, "10.0.0.51"), 1);
	assert_int_equal(nexthop_del(FREE_ID, &err), 0);
	assert_int_equal(refs(RED1, "10.0.0.51"), 0);
}

static void follows_port(void **state)
{
	static struct nexthop_listener silent;
	struct nexthop_config c = to_port(FREE_ID, RED1, "02:00:00:00:00:04");
	struct port_config old = router_config(RED1), p = old;

	nexthop_listen(&silent); // has no callback: skipped
	router_nexthop(&c);
	assert_int_equal(nexthop_table[FREE_ID]->mtu, 1500);
	p.mtu = 9000;
	routed_config_edit(&p)->mss_clamp = 1400;
	router_set(RED1, &p);
	assert_int_equal(nexthop_table[FREE_ID]->mtu, 9000);
	assert_int_equal(nexthop_table[FREE_ID]->mss, 1400);
	router_set(RED1, &old);
	assert_int_equal(port_del("red1", &err), -EBUSY); // its id may become another tenant's
	assert_string_equal(err.field, "port.name");
	assert_int_equal(nexthop_del(FREE_ID, &err), 0);
}

static unsigned count_all(void)
{
	struct nexthop_entry *e;
	unsigned n = 0;

	for (e = nexthop_next(0); e; e = nexthop_next(e->cfg.id))
		n++;
	return n;
}

// The router's own next hops are added and removed with the ports that need them.
static void system_own(void **state)
{
	struct port_config c = {.name = "extra", .kind = "tap", .role = PORT_TENANT, .vrf = RED, .bridge = UINT16_MAX};
	unsigned before = count_all(), api = nexthop_count();
	uint32_t local = nexthop_get(NH_ID_LOCAL)->refs;

	c.n_gateways = c.n_guests = 1;
	c.gateways[0] = (struct ip_prefix){router_addr("10.5.0.1"), 24};
	c.guests[0] = (struct ip_prefix){router_addr("10.5.0.2"), 32};
	assert_non_null(port_add(&c, &err));
	assert_int_equal(count_all(), before + 1);
	assert_int_equal(nexthop_count(), api);
	assert_int_equal(nexthop_get(NH_ID_LOCAL)->refs, local + 1);
	assert_int_equal(port_del("extra", &err), 0);
	router_poll();
	assert_int_equal(count_all(), before);
	assert_int_equal(nexthop_get(NH_ID_LOCAL)->refs, local);
}

#define MANY 6000

// When a link is up again, tunnels are rebuilt some at a time, so that the master does other work in between.
static void rebuilt_in_turns(void **state)
{
	static const struct nexthop *before[MANY];
	unsigned i, polls, built = 0;

	for (i = 0; i < MANY; i++)
		router_tunnel(FREE_ID + i, "mplsoudp", "203.0.113.9", 100);
	while (nexthop_rebuilding())
		router_poll();
	for (i = 0; i < MANY; i++)
		before[i] = nexthop_table[FREE_ID + i];
	nexthop_underlay_changed();
	assert_true(nexthop_rebuilding());
	nexthop_poll();
	for (i = 0; i < MANY; i++)
		built += nexthop_table[FREE_ID + i] != before[i];
	assert_in_range(built, 1, MANY - 1);
	for (polls = 0; nexthop_rebuilding() && polls < 100; polls++)
		nexthop_poll();
	assert_in_range(polls, 1, 10);
	for (i = 0; i < MANY; i++)
		assert_ptr_not_equal(nexthop_table[FREE_ID + i], before[i]);
	for (i = 0; i < MANY; i++)
		assert_int_equal(nexthop_del(FREE_ID + i, &err), 0);
	rcu_poll();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(added_and_deleted), cmocka_unit_test(refused),      cmocka_unit_test(in_use),
		cmocka_unit_test(neighbors_held),    cmocka_unit_test(follows_port), cmocka_unit_test(system_own),
		cmocka_unit_test(rebuilt_in_turns),  cmocka_unit_test(on_link),      cmocka_unit_test(families),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
