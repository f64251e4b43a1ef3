// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/host_fixture.h"

#define FRAME "020000000f01 02000000f001 "
#define BODY "0800 4500001c 00000000 4011 0000 c0000201 c0000202 0001000200080000"

static void as_it_is(void **state)
{
	struct rte_mbuf *m = router_hex(FRAME BODY);

	m->port = host_port(FABRIC0);
	assert_string_equal(node_test_one("host_input", m), "port_tx");
	assert_int_equal(meta(m)->out_port, FABRIC0);
	assert_bytes(m, FRAME BODY);
	rte_pktmbuf_free(m);
}

static void with_the_tag_of_the_link(void **state)
{
	struct rte_mbuf *m = router_hex(FRAME BODY), *own = router_hex(FRAME "8100 0007 " BODY);

	m->port = own->port = host_port(FABRIC1);
	assert_string_equal(node_test_one("host_input", m), "port_tx");
	assert_int_equal(meta(m)->out_port, FABRIC1);
	assert_bytes(m, FRAME "8100 0064 " BODY);
	rte_pktmbuf_free(m);
	assert_string_equal(node_test_one("host_input", own), "port_tx");
	assert_bytes(own, FRAME "8100 0064 8100 0007 " BODY);
	rte_pktmbuf_free(own);
}

static void assert_dropped(struct rte_mbuf *m, uint16_t port, const char *reason)
{
	m->port = port;
	assert_string_equal(node_test_one("host_input", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void refused(void **state)
{
	struct rte_mbuf *full = router_hex(FRAME BODY);

	rte_pktmbuf_prepend(full, rte_pktmbuf_headroom(full));
	assert_dropped(full, host_port(FABRIC1), "host_no_headroom");
	assert_dropped(router_hex("020000000f01 02000000f001 08"), host_port(FABRIC0), "host_truncated");
	assert_dropped(router_hex(FRAME BODY), RED0, "host_no_fabric");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_is),
		cmocka_unit_test(with_the_tag_of_the_link),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, host_setup, router_teardown);
}
