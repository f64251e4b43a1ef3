// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rcu.h"
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(late_worker), cmocka_unit_test(added_again)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
