// SPDX-License-Identifier: Apache-2.0
// The memory of flows: who gets which, how many there are, what is refused.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_eal.h>

#include "base/eal_init.h"
#include "flow/flow_private.h"

#define CAPACITY 5000u // no multiple of a chain

static bool *taken;

static uint32_t take(unsigned worker)
{
	static const struct flow zero;
	struct flow *f = flow_alloc(worker);
	uint32_t i = f ? (uint32_t)(f - flows) : 0;

	if (f == NULL)
		return 0;
	assert_true(i > 0 && i <= flow_capacity() && i < flow_used_range());
	assert_false(taken[i]);
	assert_memory_equal(f, &zero, sizeof(*f));
	memset(f, 0xff, sizeof(*f));
	taken[i] = true;
	return i;
}

// What the master does after a grace period.
static void give_back(const uint32_t *list, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		flows[list[i]].next = i + 1 < n ? list[i + 1] : 0;
		taken[list[i]] = false;
	}
	flow_free_list((void *)(uintptr_t)(n ? list[0] : 0));
}

static unsigned take_all(uint32_t *list, unsigned workers)
{
	unsigned n = 0, w;

	for (w = 0; w < workers; w++)
		while ((list[n] = take(w)) != 0)
			n++;
	return n;
}

static void exhaustion(void **state)
{
	uint32_t list[2 * CAPACITY];
	unsigned n, round, back;

	assert_int_equal(flow_used_range(), 1);
	n = take_all(list, 1);
	assert_int_equal(n, CAPACITY);
	assert_int_equal(flow_count(), CAPACITY);
	for (round = 1; round < 200; round += 13) { // fewer than a chain, a chain, and more
		back = round;
		give_back(list + n - back, back);
		assert_int_equal(flow_count(), CAPACITY - back);
		assert_int_equal(take_all(list + n - back, 1), back);
		assert_null(flow_alloc(0));
		assert_int_equal(flow_count(), CAPACITY);
	}
	give_back(list, n);
	assert_int_equal(flow_count(), 0);
	assert_int_equal(take_all(list, 3), CAPACITY); // whoever takes them
	give_back(list, CAPACITY);
}

static void put_back(void **state)
{
	struct flow *f = flow_alloc(2), *g;

	assert_int_equal(flow_count(), 1);
	flow_put_back(2, f);
	assert_int_equal(flow_count(), 0);
	g = flow_alloc(2);
	assert_ptr_equal(f, g); // still warm
	flow_put_back(2, g);
}

static void random_operations(void **state)
{
	static uint32_t list[4 * CAPACITY];
	unsigned i, n = 0, back;

	srand(1);
	for (i = 0; i < 300000; i++) {
		if (rand() % 3) {
			uint32_t f = take((unsigned)rand() % 4);

			if (f)
				list[n++] = f;
			continue;
		}
		back = n ? (unsigned)rand() % RTE_MIN(n, 7u) + 1 : 0;
		n -= back;
		give_back(list + n, back);
		assert_int_equal(flow_count(), n);
		if (i == 150000)
			assert_int_equal(flow_set_capacity(CAPACITY * 2, NULL), 0);
		if (i % 50000 == 0) {
			give_back(list, n);
			n = 0;
		}
	}
	give_back(list, n);
	assert_int_equal(flow_count(), 0);
}

static void growth(void **state)
{
	uint32_t list[3 * CAPACITY], more[2 * CAPACITY];
	struct error err;
	unsigned n = take_all(list, 1);

	assert_int_equal(n, CAPACITY);
	assert_int_equal(flow_set_capacity(CAPACITY, &err), 0); // as it is
	assert_int_equal(flow_set_capacity(2 * CAPACITY, &err), 0);
	assert_int_equal(flow_capacity(), 2 * CAPACITY);
	assert_int_equal(take_all(more, 1), CAPACITY);
	assert_int_equal(flow_set_capacity(3 * CAPACITY, &err), -EBUSY);
	assert_string_equal(err.message, "flows '15000': cannot be set while the table grows; valid: 10000 to 33554432");
	assert_int_equal(flow_capacity(), 2 * CAPACITY);
	while (!flow_table_grow_step(flow_table, 1000))
		rcu_poll();
	assert_int_equal(flow_set_capacity(2 * CAPACITY + 1, &err), 0);
	assert_int_equal(take_all(more + CAPACITY, 1), 1);
	give_back(list, n);
	give_back(more, CAPACITY + 1);
}

static void refusals(void **state)
{
	static const uint32_t bad[] = {0, 1, FLOW_CAPACITY_MIN - 1, CAPACITY - 1, FLOW_CAPACITY_MAX + 1, UINT32_MAX};
	struct error err;
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(flow_set_capacity(bad[i], &err), -EINVAL);
		assert_string_equal(err.field, "flows");
		assert_string_equal(err.valid, "5000 to 33554432");
		assert_int_equal(flow_set_capacity(bad[i], NULL), -EINVAL);
	}
	flow_set_capacity(7, &err);
	assert_string_equal(err.message, "flows '7': is not a number of flows in range; valid: 5000 to 33554432");
	assert_int_equal(flow_capacity(), CAPACITY);
	flow_fini();
	assert_int_equal(flow_init(CAPACITY), 0);
	assert_int_equal(flow_set_capacity(2 * CAPACITY, &err), 0); // before there is any memory
	assert_int_equal(flow_start(&err), 0);
	assert_int_equal(flow_start(&err), 0);
	assert_int_equal(flow_capacity(), 2 * CAPACITY);
}

static int start_eal(void **state)
{
	char *argv[] = {"flow_pool_test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", NULL};

	taken = calloc(4 * CAPACITY, sizeof(*taken));
	return taken == NULL || eal_init(7, argv) < 0 || rcu_init() != 0;
}

static int stop_eal(void **state)
{
	free(taken);
	rcu_fini();
	return rte_eal_cleanup();
}

static int start(void **state)
{
	memset(taken, 0, 4 * CAPACITY * sizeof(*taken));
	return flow_init(CAPACITY) != 0 || flow_start(NULL) != 0;
}

static int stop(void **state)
{
	flow_fini();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exhaustion, start, stop),
		cmocka_unit_test_setup_teardown(put_back, start, stop),
		cmocka_unit_test_setup_teardown(random_operations, start, stop),
		cmocka_unit_test_setup_teardown(growth, start, stop),
		cmocka_unit_test_setup_teardown(refusals, start, stop),
	};

	return cmocka_run_group_tests(tests, start_eal, stop_eal);
}
