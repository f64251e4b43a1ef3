// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/balance.h"

static struct balance_worker workers[WORKER_MAX];
static struct balance_item items[4096];
static double before, after;

static int reset(void **state)
{
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++)
		workers[i] = (struct balance_worker){.eligible = i < 4, .numa = i / 2};
	return 0;
}

static void queues_of_one(void **state)
{
	items[0] = (struct balance_item){0, 5e6};
	items[1] = (struct balance_item){0, 4e6};
	assert_int_equal(balance(workers, items, 2, false, &before, &after), 1);
	assert_true(before == 9e6 && after == 5e6);
	assert_int_equal(items[0].worker + items[1].worker, 1);
}

// One queue cannot be divided.
static void nothing_to_gain(void **state)
{
	items[0] = (struct balance_item){2, 5e6};
	assert_int_equal(balance(workers, items, 1, true, &before, &after), 0);
	assert_int_equal(items[0].worker, 2);
	assert_true(before == 5e6 && after == 5e6);
}

static void too_little_to_gain(void **state)
{
	items[0] = (struct balance_item){0, 52e5};
	items[1] = (struct balance_item){0, 3e5};
	items[2] = (struct balance_item){1, 5e6};
	assert_int_equal(balance(workers, items, 3, false, &before, &after), 0);
	assert_true(after == before);
}

static void stays_on_its_node(void **state)
{
	items[0] = (struct balance_item){0, 3e6};
	items[1] = (struct balance_item){0, 3e6};
	items[2] = (struct balance_item){0, 3e6};
	items[3] = (struct balance_item){0, 3e6};
	assert_int_equal(balance(workers, items, 4, false, &before, &after), 2);
	assert_true(after == 6e6);
	assert_true(workers[2].load == 0 && workers[3].load == 0);
	reset(NULL);
	assert_int_equal(balance(workers, items, 4, true, &before, &after), 2);
	assert_true(after == 3e6);
}

// The load of a worker beside its items (polling, isolated receive) counts, but cannot move.
static void fixed_load(void **state)
{
	unsigned i;

	workers[0].load = 4e6;
	for (i = 0; i < 8; i++)
		items[i] = (struct balance_item){0, 1e6};
	assert_true(balance(workers, items, 8, false, &before, &after) == 6);
	assert_true(before == 12e6 && after == 6e6);
}

static void ineligible_get_nothing(void **state)
{
	unsigned i;

	workers[1].eligible = false;
	for (i = 0; i < 8; i++)
		items[i] = (struct balance_item){0, 1e6};
	assert_int_equal(balance(workers, items, 8, false, &before, &after), 0);
}

// Random tables: never worse, nearly even, and a second run finds no further gain.
static void many_entries(void **state)
{
	unsigned round, i, n = 2048;
	double sum;

	srand(1);
	for (round = 0; round < 50; round++) {
		reset(NULL);
		for (i = 0, sum = 0; i < n; i++) {
			items[i] = (struct balance_item){(unsigned)rand() % 2, rand() % 1000};
			sum += items[i].load;
		}
		for (i = 0; i < n; i++) // a hot half
			if (items[i].worker == 0)
				items[i].load *= 3, sum += items[i].load * 2 / 3;
		balance(workers, items, n, true, &before, &after);
		assert_true(after <= before && after >= sum / 4 * 0.999);
		assert_true(after <= sum / 4 * 1.02);
		reset(NULL);
		assert_int_equal(balance(workers, items, n, true, &before, &after), 0);
	}
}

#define T(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(queues_of_one), T(nothing_to_gain),        T(too_little_to_gain), T(stays_on_its_node),
		T(fixed_load),    T(ineligible_get_nothing), T(many_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
