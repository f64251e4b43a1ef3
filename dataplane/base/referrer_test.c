// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/notify.h"
#include "base/referrer.h"

static bool odd_find(uint32_t id, char *text, size_t size)
{
	snprintf(text, size, "odd '%u'", id);
	return id % 2;
}

static bool large_find(uint32_t id, char *text, size_t size)
{
	snprintf(text, size, "large '%u'", id);
	return id > 100;
}

static struct referrer odd = {.find = odd_find}, large = {.find = large_find};
static struct referrer *referrers;

static void refused(uint32_t id, uint32_t references, const char *message)
{
	struct error err = {0};

	assert_int_equal(referrer_error(referrers, id, references, "thing.name", "x", &err), -EBUSY);
	assert_int_equal(err.code, EBUSY);
	assert_string_equal(err.field, "thing.name");
	assert_string_equal(err.message, message);
}

static void first_that_finds_one(void **state)
{
	LISTEN(referrers, &odd);
	LISTEN(referrers, &large);
	refused(3, 1, "thing.name 'x': is in use by odd '3'");
	refused(101, 1, "thing.name 'x': is in use by odd '101'");
	refused(102, 1, "thing.name 'x': is in use by large '102'");
	refused(102, 7, "thing.name 'x': is in use by large '102' (7 references in all)");
}

static void none_finds_one(void **state)
{
	LISTEN(referrers, &odd);
	LISTEN(referrers, &large);
	refused(2, 1, "thing.name 'x': is in use (references: 1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(first_that_finds_one), cmocka_unit_test(none_finds_one)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
