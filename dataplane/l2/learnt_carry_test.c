// SPDX-License-Identifier: Apache-2.0
// MACs and neighbours over a restart. The "restart" of this test forgets them between the two.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "keep/carry.h"
#include "l2/mac.h"
#include "l2/mac_carry.h"
#include "neighbor/neighbor_carry.h"
#include "neighbor/neighbor_private.h"
#include "port/port_carry.h"
#include "testing/router_fixture.h"

#define TUNNEL FREE_ID
#define REMOTE "203.0.113.5"

static char dir[64];
static uint64_t tenths = 100000; // of the clock of bridges

static uint64_t test_clock(void)
{
	return tenths * (rte_get_tsc_hz() / 10);
}

static int learnt_setup(void **state)
{
	struct bridge_config lan;
	struct error err = {0};

	if (router_setup(state) < 0)
		return -1;
	bridge_clock = test_clock;
	port_names_carry_init();
	neighbor_carry_init();
	mac_carry_init();
	snprintf(dir, sizeof(dir), "/tmp/corelane-learnt-XXXXXX");
	assert_non_null(mkdtemp(dir));
	router_tunnel(TUNNEL, "vxlan", REMOTE, 77);
	lan = bridge_get(LAN)->cfg;
	lan.flood[0] = TUNNEL;
	lan.n_flood = 1;
	assert_int_equal(bridge_set(bridge_get(LAN), &lan, &err), 0);
	bridge_poll();
	return 0;
}

static int learnt_teardown(void **state)
{
	rmdir(dir);
	return router_teardown(state);
}

static void learnt_save(void)
{
	carry_start(dir);
	carry_stop();
}

static uint64_t station(unsigned i)
{
	struct rte_ether_addr mac = {.addr_bytes = {2, 0, 0, 0, 7, (uint8_t)i}};

	return mac_key(LAN, &mac);
}

static uint64_t target_of(unsigned i)
{
	uint32_t slot = mac_table_find(station(i));

	return slot == MAC_NONE ? 0 : mac_slot_target(slot);
}

static void macs(void **state)
{
	struct bridge *b = bridge_get(LAN);
	struct ip_addr remote = router_addr(REMOTE);
	uint64_t far = (uint64_t)mac_print(remote.bytes, false) << 32 | MAC_LEARNT | MAC_TUNNEL | TUNNEL;
	struct error err = {0};
	struct mac_entry e;

	assert_int_equal(mac_add(b, station(1), MAC_LEARNT | LAN0), 0);
	assert_int_equal(mac_add(b, station(2), far), 0);
	assert_int_equal(mac_add(b, station(3), MAC_LEARNT | LAN1), 0);
	tenths += 200;
	bridge_poll();
	assert_int_equal(mac_add(b, station(4), MAC_LEARNT | LAN1), 0);
	learnt_save();
	mac_flush_bridge(b, true);
	e = (struct mac_entry){.bridge = LAN, .mac = mac_key_addr(station(3)), .port = LAN0};
	assert_int_equal(mac_set(&e, &err), 0); // configured since
	carry_load(dir);
	assert_int_equal(target_of(1), MAC_LEARNT | LAN0);
	assert_int_equal(target_of(2), far);
	assert_int_equal(target_of(3) & (MAC_LEARNT | MAC_ID(UINT64_MAX)), LAN0);
	assert_int_equal(target_of(4), MAC_LEARNT | LAN1);
	assert_int_equal(b->n_learnt, 3);
	// They age on.
	tenths += mac_age_seconds * 10 - 100;
	for (unsigned i = 0; i < 200; i++)
		bridge_poll();
	assert_int_equal(target_of(1), 0);
	assert_int_equal(target_of(4), MAC_LEARNT | LAN1);
	assert_int_equal(mac_unset(LAN, &e.mac, &err), 0);
	mac_flush_bridge(b, true);
}

// What the configuration does not have any more.
static void macs_without_place(void **state)
{
	struct bridge *b = bridge_get(LAN);
	struct ip_addr remote = router_addr(REMOTE);
	struct bridge_config cfg = b->cfg, before = b->cfg;
	struct port_config port = router_config(LAN0), port_before = port;
	struct error err = {0};

	assert_int_equal(mac_add(b, station(1), MAC_LEARNT | LAN0), 0);
	assert_int_equal(mac_add(b, station(2),
				 (uint64_t)mac_print(remote.bytes, false) << 32 | MAC_LEARNT | MAC_TUNNEL | TUNNEL),
			 0);
	assert_int_equal(mac_add(b, station(5), MAC_LEARNT | LAN1), 0);
	learnt_save();
	mac_flush_bridge(b, true);
	cfg.n_flood = 0;
	assert_int_equal(bridge_set(b, &cfg, &err), 0);
	port.guest_mac = mac_key_addr(station(5)); // is another port's guest now
	router_set(LAN0, &port);
	carry_load(dir);
	assert_int_equal(target_of(1), MAC_LEARNT | LAN0);
	assert_int_equal(target_of(2), 0);
	assert_int_equal(target_of(5), 0);
	router_set(LAN0, &port_before);
	assert_int_equal(bridge_set(b, &before, &err), 0);
	mac_flush_bridge(b, true);
}

static void neighbours(void **state)
{
	const struct rte_ether_addr one = router_mac("02:00:00:00:09:01"), two = router_mac("02:00:00:00:09:02");
	struct ip_addr first = router_addr("192.0.2.77"), second = router_addr("fe80::77"),
		       fixed = router_addr("192.0.2.78"), asked = router_addr("192.0.2.79");
	struct error err = {0};
	struct neighbor *n;
	uint64_t confirmed;

	neighbor_learn(FABRIC0, &first, &one, true, true);
	neighbor_learn(FABRIC0, &second, &two, true, false);
	neighbor_learn(FABRIC0, &fixed, &one, true, true);
	assert_non_null(neighbor_unheld(FABRIC0, &asked, false)); // not resolved
	confirmed = neighbor_find(FABRIC0, &first)->confirmed;
	learnt_save();
	assert_int_equal(neighbor_del(FABRIC0, &first, &err), 0);
	assert_int_equal(neighbor_del(FABRIC0, &second, &err), 0);
	assert_int_equal(neighbor_del(FABRIC0, &asked, &err), 0);
	assert_int_equal(neighbor_set(FABRIC0, &fixed, &two, &err), 0);
	carry_load(dir);
	n = neighbor_find(FABRIC0, &first);
	assert_non_null(n);
	assert_int_equal(n->state, NEIGH_REACHABLE);
	assert_memory_equal(&n->mac, &one, sizeof(one));
	assert_true(n->confirmed + rte_get_tsc_hz() > confirmed && n->confirmed <= neighbor_clock());
	n = neighbor_find(FABRIC0, &second);
	assert_non_null(n);
	assert_int_equal(n->state, NEIGH_STALE); // an address that it has only claimed
	assert_true(neighbor_usable(n));
	n = neighbor_find(FABRIC0, &fixed);
	assert_int_equal(n->state, NEIGH_PERMANENT);
	assert_memory_equal(&n->mac, &two, sizeof(two));
	assert_null(neighbor_find(FABRIC0, &asked));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(macs),
		cmocka_unit_test(macs_without_place),
		cmocka_unit_test(neighbours),
	};

	return cmocka_run_group_tests(tests, learnt_setup, learnt_teardown);
}
