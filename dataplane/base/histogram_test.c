// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/histogram.h"

#define MAX_VALUE (1ull << 42)

static struct histogram h;

static int clear(void **state)
{
	memset(&h, 0, sizeof(h));
	return 0;
}

// Each value lies within the bounds of its bucket, and these are close to each other.
static void bounds(void **state)
{
	uint64_t v;
	unsigned b;

	for (v = 0; v < MAX_VALUE; v = v < 100000 ? v + 1 : v + v / 977) {
		b = histogram_bucket(v);
		assert_in_range(b, 0, HISTOGRAM_BUCKETS - 1);
		assert_true(histogram_least(b) <= v && v <= histogram_most(b));
		if (v > 16 && b < HISTOGRAM_BUCKETS - 1)
			assert_true(histogram_most(b) - histogram_least(b) <= histogram_least(b) / 16);
	}
}

// No gap and no overlap.
static void buckets_adjoin(void **state)
{
	unsigned b;

	assert_int_equal(histogram_least(0), 0);
	for (b = 1; b < HISTOGRAM_BUCKETS; b++) {
		assert_true(histogram_least(b) == histogram_most(b - 1) + 1);
		assert_int_equal(histogram_bucket(histogram_least(b)), b);
	}
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(MAX_VALUE - 1), HISTOGRAM_BUCKETS - 1);
	assert_true(histogram_bucket(MAX_VALUE / 2 - 1) < HISTOGRAM_BUCKETS - 16);
}

static void quantiles(void **state)
{
	unsigned i;

	assert_int_equal(histogram_quantile(&h, 500000), 0);
	for (i = 1; i <= 1000; i++)
		histogram_add(&h, i);
	assert_int_equal(histogram_total(&h), 1000);
	assert_in_range(histogram_quantile(&h, 500000), 500, 531);
	assert_in_range(histogram_quantile(&h, 990000), 990, 1051);
	assert_in_range(histogram_quantile(&h, 1000000), 1000, 1062);
	assert_int_equal(histogram_quantile(&h, 0), 1);
}

static void differences(void **state)
{
	struct histogram base, sum;

	histogram_add(&h, 10);
	histogram_copy(&base, &h);
	histogram_add(&h, 10);
	histogram_add(&h, 1000000);
	histogram_copy(&sum, &h);
	histogram_subtract(&sum, &base);
	assert_int_equal(histogram_total(&sum), 2);
	assert_int_equal(sum.count[histogram_bucket(10)], 1);
	histogram_merge(&sum, &base);
	assert_memory_equal(&sum, &h, sizeof(h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bounds, clear),
		cmocka_unit_test_setup(buckets_adjoin, clear),
		cmocka_unit_test_setup(quantiles, clear),
		cmocka_unit_test_setup(differences, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
