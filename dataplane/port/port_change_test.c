// SPDX-License-Identifier: Apache-2.0
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(late_worker)};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
