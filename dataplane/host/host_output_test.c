// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/host_fixture.h"

#define FRAME "02000000f002 020000000f02 "
#define BODY "0800 4500001c 00000000 4011 0000 c6336402 c6336401 0001000200080000"

static void passes(void **state)
{
	struct rte_mbuf *m = router_hex("02000000f001 020000000f01 " BODY);

	m->port = FABRIC0;
	assert_string_equal(node_test_one("host_output", m), "host_handoff");
	assert_int_equal(meta(m)->out_port, host_port(FABRIC0));
	assert_bytes(m, "02000000f001 020000000f01 " BODY);
	rte_pktmbuf_free(m);
}

static void takes_the_tag_off(void **state)
{
	struct rte_mbuf *m = router_hex(FRAME "8100 0064 " BODY),
			*twice = router_hex(FRAME "8100 0064 8100 0007 " BODY);

	m->port = twice->port = FABRIC1;
	assert_string_equal(node_test_one("host_output", m), "host_handoff");
	assert_int_equal(meta(m)->out_port, host_port(FABRIC1));
	assert_bytes(m, FRAME BODY);
	rte_pktmbuf_free(m);
	assert_string_equal(node_test_one("host_output", twice), "host_handoff");
	assert_bytes(twice, FRAME "8100 0007 " BODY); // a VLAN of the kernel's own
	rte_pktmbuf_free(twice);
}

static void nobody_takes_it(void **state)
{
	struct rte_mbuf *m = router_hex(FRAME BODY);

	m->port = RED0;
	assert_string_equal(node_test_one("host_output", m), "drop");
	assert_string_equal(node_test_reason(m), "host_gone");
	rte_pktmbuf_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes),
		cmocka_unit_test(takes_the_tag_off),
		cmocka_unit_test(nobody_takes_it),
	};

	return cmocka_run_group_tests(tests, host_setup, router_teardown);
}
