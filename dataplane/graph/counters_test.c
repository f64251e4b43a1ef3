// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/counters.h"
#include "graph/node_test.h"

static void sums(void **state)
{
	struct counters *a = counters_create(SOCKET_ID_ANY), *b = counters_create(SOCKET_ID_ANY);
	struct port_counters sum;

	a->port[7].rx_packets = 3;
	b->port[7].rx_packets = 4;
	b->port[7].tx_bytes = 100;
	a->drops[7][5] = 1;
	b->drops[7][5] = 2;
	counters->drops[7][5] = 4;
	counters_port(7, &sum);
	assert_int_equal(sum.rx_packets, 7);
	assert_int_equal(sum.tx_bytes, 100);
	assert_int_equal(counters_drops(7, 5), 7);
	counters_release(a); // sums stay
	counters_release(b);
	counters_port(7, &sum);
	assert_int_equal(sum.rx_packets, 7);
	assert_int_equal(sum.tx_bytes, 100);
	assert_int_equal(counters_drops(7, 5), 7);
	counters_port_reset(7);
	counters_port(7, &sum);
	assert_int_equal(sum.rx_packets, 0);
	assert_int_equal(counters_drops(7, 5), 0);
}

// Workers may come and go without end.
static void comings_and_goings(void **state)
{
	struct counters *c;
	unsigned i;

	for (i = 0; i < 2000; i++) {
		c = counters_create(SOCKET_ID_ANY);
		assert_non_null(c);
		c->drops[9][1]++;
		counters_release(c);
	}
	assert_int_equal(counters_drops(9, 1), 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(comings_and_goings)};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
