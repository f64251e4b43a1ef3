// SPDX-License-Identifier: Apache-2.0
// Domains: names, ids, limits, references, and the ports that join and leave.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "l2/bridge_fixture.h"

#define NONE UINT16_MAX

static struct error err;

static void assert_add_refused(const struct bridge_config *c, int code, const char *field)
{
	unsigned before = bridge_count();

	assert_null(bridge_add(c, &err));
	assert_int_equal(err.code, code);
	assert_string_equal(err.field, field);
	assert_int_equal(bridge_count(), before);
}

static struct bridge_config config(const char *name, uint32_t id)
{
	struct bridge_config c = {.id = id};

	strcpy(c.name, name);
	return c;
}

static void add_and_del(void **state)
{
	struct bridge_config c = config("lan", 0);
	struct bridge *b = bridge_add(&c, &err);

	assert_non_null(b);
	assert_int_equal(b->id, 1); // the first free one
	assert_int_equal(b->cfg.mac_limit, LIMIT_BRIDGE_MAC_LIMIT_DEFAULT);
	assert_ptr_equal(bridge_find("lan"), b);
	assert_ptr_equal(bridge_get(1), b);
	assert_non_null(bridge_fwds[1]);
	assert_true(bridge_fwds[1]->learning);
	assert_add_refused(&c, EEXIST, "bridge.name");
	c = config("far", 16383);
	assert_non_null(bridge_add(&c, &err));
	c = config("next", 0);
	assert_int_equal(bridge_add(&c, &err)->id, 2);
	assert_int_equal(bridge_count(), 3);
	assert_int_equal(bridge_del("lan", &err), 0);
	assert_null(bridge_fwds[1]);
	assert_null(bridge_find("lan"));
	assert_int_equal(bridge_del("lan", &err), -ENOENT);
	assert_string_equal(err.field, "bridge.name");
}

static void refused(void **state)
{
	struct bridge_config c = config("x", 0);

	c.n_flood = 1;
	c.flood[0] = 999;
	assert_add_refused(&c, ENOENT, "bridge.flood");
	fixture_tunnel(103, NH_DISCARD, "192.0.2.3", 1500, "vxlan");
	c.flood[0] = 103;
	assert_add_refused(&c, EINVAL, "bridge.flood");
	assert_string_equal(err.value, "103");
	c.n_flood = 0;
	c.id = 5;
	assert_non_null(bridge_add(&c, &err));
	c = config("y", 5);
	assert_add_refused(&c, EEXIST, "bridge.id");
}

static void holds_its_tunnels(void **state)
{
	struct bridge *b = fixture_bridge("lan", 2);
	struct bridge_config c = b->cfg;

	assert_int_equal(fixture_refs(101), 1);
	assert_int_equal(fixture_refs(102), 1);
	c.n_flood = 2;
	c.flood[0] = 102;
	c.flood[1] = 103;
	c.id = 9;
	strcpy(c.name, "renamed");
	assert_int_equal(bridge_set(b, &c, &err), 0);
	assert_int_equal(fixture_refs(101), 0);
	assert_int_equal(fixture_refs(102), 1);
	assert_int_equal(fixture_refs(103), 1);
	assert_string_equal(b->cfg.name, "lan"); // a domain keeps its name and id
	assert_int_equal(b->cfg.id, b->id);
	assert_int_equal(bridge_fwds[b->id]->n_flood, 2);
	assert_int_equal(bridge_fwds[b->id]->flood[1], 103);
	c.flood[1] = 999;
	assert_int_equal(bridge_set(b, &c, &err), -ENOENT); // nothing changed
	assert_int_equal(b->cfg.flood[1], 103);
	assert_int_equal(fixture_refs(103), 1);
	assert_int_equal(bridge_del("lan", &err), 0);
	assert_int_equal(fixture_refs(102) + fixture_refs(103), 0);
}

static void ports_come_and_go(void **state)
{
	struct bridge *b = fixture_bridge("lan", 0), *other = fixture_bridge("other", 0);

	assert_non_null(fixture_join(1, b->id, NONE));
	assert_non_null(fixture_join(2, b->id, NONE));
	assert_int_equal(b->refs, 2);
	assert_int_equal(bridge_fwds[b->id]->n_ports, 2);
	assert_int_equal(bridge_fwds[b->id]->vrf, NONE);
	assert_int_equal(bridge_del("lan", &err), -EBUSY);
	assert_string_equal(err.field, "bridge.name");
	assert_non_null(fixture_join(1, other->id, NONE));
	assert_int_equal(b->refs, 1);
	assert_int_equal(bridge_fwds[b->id]->n_ports, 1);
	assert_int_equal(bridge_fwds[b->id]->ports[0], 2);
	assert_int_equal(bridge_fwds[other->id]->ports[0], 1);
	fixture_leave(2);
	assert_int_equal(bridge_fwds[b->id]->n_ports, 0);
	assert_int_equal(bridge_del("lan", &err), 0);
	assert_null(fixture_join(3, 77, NONE));
	assert_int_equal(fixture_error.code, ENOENT);
	assert_string_equal(fixture_error.field, "port.bridge");
}

static void one_gateway(void **state)
{
	struct bridge *b = fixture_bridge("lan", 0);
	struct rte_ether_addr gateway = fixture_mac(GATEWAY);

	fixture_join(1, b->id, NONE);
	fixture_join(2, b->id, 7);
	assert_int_equal(bridge_fwds[b->id]->vrf, 7);
	assert_memory_equal(&bridge_fwds[b->id]->gateway, &gateway, 6);
	assert_non_null(fixture_join(1, b->id, 7));
	assert_null(fixture_join(3, b->id, 8)); // another tenant's
	assert_string_equal(fixture_error.field, "port.vrf");
	port_table[3]->mac = fixture_mac("02:00:00:00:00:01");
	assert_null(fixture_join(3, b->id, 7));
	assert_string_equal(fixture_error.field, "port.mac");
	assert_non_null(fixture_join(3, b->id, NONE)); // has no gateway
	fixture_leave(1);
	assert_int_equal(bridge_fwds[b->id]->vrf, 7);
	assert_non_null(fixture_join(2, b->id, 8)); // the only one with a VRF may change it
	assert_int_equal(bridge_fwds[b->id]->vrf, 8);
	fixture_leave(2);
	assert_int_equal(bridge_fwds[b->id]->vrf, NONE);
}

static int mac(const struct bridge *b, const char *addr, uint16_t port, uint32_t nexthop)
{
	struct mac_entry e = {.bridge = b->id, .mac = fixture_mac(addr), .port = port, .nexthop = nexthop};

	return mac_set(&e, &err);
}

static void names_its_tunnels(void **state)
{
	struct bridge *b = fixture_bridge("lan", 1);

	assert_int_equal(mac(b, "02:00:00:00:00:01", 0, 102), 0);
	assert_string_equal(fixture_user(101), "bridge 'lan'");
	assert_string_equal(fixture_user(102), "a MAC of bridge 'lan'");
	assert_null(fixture_user(103));
	assert_int_equal(bridge_del("lan", &err), 0);
	assert_null(fixture_user(101));
	assert_null(fixture_user(102));
}

static void macs_by_hand(void **state)
{
	struct bridge *b = fixture_bridge("lan", 1), gone = {.id = 99};
	struct rte_ether_addr a = fixture_mac("02:00:00:00:00:0a");
	struct mac_entry e;

	fixture_join(1, b->id, NONE);
	assert_int_equal(mac(b, "02:00:00:00:00:0a", 2, 0), -EINVAL); // not in the domain
	assert_string_equal(err.field, "mac.port");
	assert_int_equal(mac(b, "02:00:00:00:00:0a", 50, 0), -ENOENT);
	assert_int_equal(mac(b, "03:00:00:00:00:0a", 1, 0), -EINVAL);
	assert_string_equal(err.field, "mac.mac");
	assert_int_equal(mac(b, "02:00:00:00:00:0a", 0, 999), -ENOENT);
	assert_string_equal(err.field, "mac.nexthop");
	assert_int_equal(mac(&gone, "02:00:00:00:00:0a", 1, 0), -ENOENT);
	assert_int_equal(mac_count(), 0);

	assert_int_equal(mac(b, "02:00:00:00:00:0a", 1, 0), 0);
	assert_int_equal(mac(b, "02:00:00:00:00:0a", 0, 101), -EEXIST);
	assert_int_equal(mac(b, "02:00:00:00:00:0b", 0, 101), 0);
	assert_int_equal(mac(b, "02:00:00:00:00:0c", 0, 101), 0);
	assert_int_equal(fixture_refs(101), 2); // a flood target, and the target of a MAC
	assert_true(fixture_find(b->id, "02:00:00:00:00:0b", &e));
	assert_int_equal(e.nexthop, 101);
	assert_false(e.learnt);
	assert_int_equal(mac_unset(b->id, &a, &err), 0);
	assert_int_equal(mac_unset(b->id, &a, &err), -ENOENT);
	assert_int_equal(b->n_macs, 2);
	assert_int_equal(b->n_learnt, 0);
	fixture_leave(1);
	assert_int_equal(bridge_del("lan", &err), 0); // and its addresses with it
	assert_int_equal(mac_count(), 0);
	assert_int_equal(fixture_refs(101), 0);
}

static void by_hand_replaces_learnt(void **state)
{
	struct bridge *b = fixture_bridge("lan", 1);
	struct mac_entry e;

	fixture_join(1, b->id, NONE);
	fixture_learn(b->id, 1, HERE, "02:00:00:00:00:0a");
	assert_int_equal(b->n_learnt, 1);
	assert_int_equal(mac(b, "02:00:00:00:00:0a", 0, 101), 0);
	assert_int_equal(b->n_learnt, 0);
	assert_int_equal(b->n_macs, 1);
	assert_true(fixture_find(b->id, "02:00:00:00:00:0a", &e));
	assert_int_equal(e.nexthop, 101);
}

#define T(fn) cmocka_unit_test_setup(fn, fixture_reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(add_and_del), T(refused),      T(holds_its_tunnels),       T(ports_come_and_go),
		T(one_gateway), T(macs_by_hand), T(by_hand_replaces_learnt), T(names_its_tunnels),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
