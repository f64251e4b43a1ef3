// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "flow/reserve.h"

#define MB (1ull << 20)

static bool resident(const void *p)
{
	unsigned char in;

	return mincore((void *)((uintptr_t)p & ~4095ull), 1, &in) == 0 && (in & 1);
}

static bool reachable(void *p)
{
	return mprotect((void *)((uintptr_t)p & ~4095ull), 4096, PROT_READ | PROT_WRITE) == 0;
}

static void grows_in_place(void **state)
{
	uint8_t *p = reserve_range(64 * MB);

	assert_non_null(p);
	assert_int_equal((uintptr_t)p % (2 * MB), 0);
	assert_int_equal(reserve_fill(p, 0, 100), 0);
	assert_int_equal(p[99], 0);
	p[99] = 1;
	assert_true(resident(p));
	assert_int_equal(reserve_fill(p, 100, 200), 0); // on the same page
	assert_int_equal(reserve_fill(p, 200, 5 * MB), 0);
	assert_int_equal(p[99], 1);
	assert_true(resident(p + 5 * MB - 1)); // allocated now, not at the first write
	p[5 * MB - 1] = 2;
	assert_int_equal(reserve_fill(p, 5 * MB, 64 * MB), 0);
	assert_int_equal(p[5 * MB - 1], 2);
	assert_int_equal(p[64 * MB - 1], 0);
	reserve_release(p, 64 * MB);
	assert_false(reachable(p));
}

static void refuses(void **state)
{
	const uint64_t bytes = 1ull << 44; // more than any system has
	uint8_t *p = reserve_range(bytes);

	assert_non_null(p); // addresses cost nothing
	assert_int_equal(reserve_fill(p, 0, MB), 0);
	p[0] = 1;
	assert_int_equal(reserve_fill(p, MB, bytes), -ENOMEM);
	assert_int_equal(p[0], 1); // as before
	assert_int_equal(reserve_fill(p, MB, 4 * MB), 0);
	assert_int_equal(p[4 * MB - 1], 0);
	reserve_release(p, bytes);
	assert_null(reserve_range(1ull << 60));
	assert_int_equal(errno, ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_in_place),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
