// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "port/port_after.h"
#include "testing/router_fixture.h"

// A change that is refused because a worker is late leaves the device with the MTU that the port keeps.
static void late_worker(void **state)
{
	const struct port_config cfg = {
		.name = "extra", .kind = "tap", .role = PORT_TENANT, .vrf = BLUE, .bridge = UINT16_MAX, .mtu = 1500};
	struct port_config more;
	struct error err;
	struct port *p = port_add(&cfg, &err);

	assert_non_null(p);
	more = p->cfg;
	more.stateful = true;
	more.mtu = 1400;
	rcu_reader_online(7);
	assert_int_equal(port_set(p, &more, &err), -EAGAIN);
	rcu_reader_offline(7);
	assert_int_equal(p->cfg.mtu, 1500);
	assert_int_equal(router_mtu, 1500);
	assert_int_equal(port_set(p, &more, &err), 0);
	assert_int_equal(router_mtu, 1400);
	assert_int_equal(port_del("extra", &err), 0);
}

static unsigned closed;

static void on_closed(struct port *p)
{
	closed++;
}

static struct port_listener listener = {.closed = on_closed};

// The device of a removed port is free once no worker uses it: adding the port again waits for that.
static void added_again(void **state)
{
	const struct port_config cfg = {
		.name = "extra", .kind = "tap", .role = PORT_TENANT, .vrf = BLUE, .bridge = UINT16_MAX, .mtu = 1500};
	struct error err;

	port_listen(&listener);
	assert_non_null(port_add(&cfg, &err));
	rcu_reader_online(7);
	assert_int_equal(port_del("extra", &err), 0);
	assert_null(port_add(&cfg, &err));
	assert_int_equal(err.code, EAGAIN);
	assert_string_equal(err.message,
			    "port.name 'extra': a port with this device is being removed, and a worker has not "
			    "finished its packets for 1000 ms; valid: the same request later");
	rcu_reader_offline(7);
	assert_int_equal(closed, 0);
	assert_non_null(port_add(&cfg, &err));
	assert_int_equal(closed, 1);
	assert_int_equal(port_del("extra", &err), 0);
	assert_int_equal(closed, 2); // there is no worker to wait for
}

static unsigned waits; // of the master, for a grace period

bool __real_rcu_wait(unsigned ms);
bool __wrap_rcu_wait(unsigned ms);

bool __wrap_rcu_wait(unsigned ms)
{
	waits++;
	return __real_rcu_wait(ms);
}

static struct port_config extra(unsigned i)
{
	struct port_config cfg = {.kind = "tap", .role = PORT_TENANT, .vrf = BLUE, .bridge = UINT16_MAX, .mtu = 1500};

	snprintf(cfg.name, sizeof(cfg.name), "extra%u", i);
	snprintf(cfg.ifname, sizeof(cfg.ifname), "extra%u", i);
	return cfg;
}

#define PORTS 8

// Ports are removed without a wait, and closed one in a turn, once no worker sees them.
static void removed_in_steps(void **state)
{
	struct port_config cfg;
	struct error err;
	uint64_t change;
	unsigned i;

	for (i = 0; i < PORTS; i++) {
		cfg = extra(i);
		assert_non_null(port_add(&cfg, &err));
	}
	waits = closed = 0;
	rcu_reader_online(7);
	for (i = 0; i < PORTS; i++)
		assert_int_equal(port_del(extra(i).name, &err), 0);
	change = port_last_change();
	assert_null(port_find("extra0"));
	assert_false(port_change_done(change));
	assert_int_equal(closed, 0);
	rcu_reader_offline(7);
	for (i = 0; i < PORTS; i++) {
		assert_int_equal(closed, i);
		port_poll();
	}
	assert_int_equal(closed, PORTS);
	assert_true(port_change_done(change));
	assert_int_equal(waits, 0);
}

static unsigned unguarded[2]; // by the MTU of the old configuration: 1500, 1400

static void on_unguard(struct port *p, const struct port_config *old)
{
	unguarded[old->mtu == 1400]++;
}

static struct port_listener unguard_listener = {.unguard = on_unguard};

// What workers may still need of a change remains until they have passed the next change of the port, too.
static void changed_in_steps(void **state)
{
	struct port_config cfg = extra(0);
	struct error err;
	struct port *p;

	port_listen(&unguard_listener);
	p = port_add(&cfg, &err);
	assert_non_null(p);
	waits = 0;
	rcu_reader_online(7);
	cfg.mtu = 1400;
	assert_int_equal(port_set(p, &cfg, &err), 0);
	rcu_quiescent(7);
	cfg.mtu = 1300;
	assert_int_equal(port_set(p, &cfg, &err), 0);
	port_poll();
	port_poll();
	assert_int_equal(unguarded[0] + unguarded[1], 0);
	rcu_quiescent(7);
	port_poll();
	assert_int_equal(unguarded[0], 1);
	assert_int_equal(unguarded[1], 1);
	assert_int_equal(waits, 0);
	assert_int_equal(port_set(p, &cfg, &err), 0);
	assert_int_equal(port_del(cfg.name, &err), 0);
	rcu_reader_offline(7);
	while (!port_change_done(port_last_change()))
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(late_worker), cmocka_unit_test(added_again),
					   cmocka_unit_test(removed_in_steps), cmocka_unit_test(changed_in_steps)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
