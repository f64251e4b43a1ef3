// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/history.h"

#define HZ 1000u

static struct history history;
static struct history_sample out[2 * HISTORY_SAMPLES];

// Adds a sample for each second up to `last`.
static void fill(uint64_t first, uint64_t last)
{
	for (; first <= last; first++)
		history_add(&history, &(struct history_sample){.tsc = first * HZ, .packets = first}, HZ);
}

static void test_empty(void **state)
{
	history = (struct history){0};
	assert_int_equal(history_read(&history, out), 0);
}

static void test_seconds_in_order(void **state)
{
	history = (struct history){0};
	fill(10, 100);
	assert_int_equal(history_read(&history, out), 91);
	assert_int_equal(out[0].packets, 10);
	assert_int_equal(out[90].packets, 100);
}

// Two hours are minutes, then the last 128 seconds: each later than the one before.
static void test_minutes_before_seconds(void **state)
{
	unsigned i, n;

	history = (struct history){0};
	fill(0, 3 * 3600);
	n = history_read(&history, out);
	assert_int_equal(out[n - 1].packets, 3 * 3600);
	assert_int_equal(out[n - HISTORY_SAMPLES].packets, 3 * 3600 - HISTORY_SAMPLES + 1);
	assert_int_equal(out[0].packets, 3 * 3600 - 60 * (HISTORY_SAMPLES - 1));
	for (i = 1; i < n; i++)
		assert_true(out[i].tsc > out[i - 1].tsc);
	assert_int_equal(out[1].packets - out[0].packets, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_seconds_in_order),
		cmocka_unit_test(test_minutes_before_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
