// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bucket.h"

#define HZ 1000000000ull
#define RATE 1000 // a token each 1,000,000
#define BURST 10

static unsigned take_all(struct bucket *b, uint64_t now)
{
	unsigned n = 0;

	while (n < 1000 && bucket_take(b, now, 1, RATE, BURST, HZ))
		n++;
	return n;
}

static void fills(void **state)
{
	struct bucket b = {0};
	uint64_t now = 5 * HZ;

	assert_int_equal(take_all(&b, now), BURST);
	assert_int_equal(take_all(&b, now + 999999), 0);
	assert_int_equal(take_all(&b, now + 1000000), 1);
	assert_int_equal(take_all(&b, now + 4000000), 3);
	assert_int_equal(take_all(&b, now + HZ), BURST); // never more than the burst
}

static void many_at_once(void **state)
{
	struct bucket b = {0};

	assert_false(bucket_take(&b, HZ, BURST + 1, RATE, BURST, HZ));
	assert_true(bucket_take(&b, HZ, BURST - 1, RATE, BURST, HZ));
	assert_false(bucket_take(&b, HZ, 2, RATE, BURST, HZ)); // refused as a whole
	assert_true(bucket_take(&b, HZ, 1, RATE, BURST, HZ));
}

// The clock of one worker may be slightly behind the clock of another.
static void clock_goes_back(void **state)
{
	struct bucket b = {0};

	assert_int_equal(take_all(&b, HZ), BURST);
	assert_int_equal(take_all(&b, HZ - 1), 0);
	assert_int_equal(take_all(&b, HZ + 1000000), 1);
}

static void no_rate_or_no_burst(void **state)
{
	struct bucket b = {0};

	assert_false(bucket_take(&b, HZ, 1, 0, BURST, HZ));
	assert_false(bucket_take(&b, HZ, 1, RATE, 0, HZ));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(fills), cmocka_unit_test(many_at_once),
					   cmocka_unit_test(clock_goes_back), cmocka_unit_test(no_rate_or_no_burst)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
