// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/notify.h"

struct test_listener {
	void (*changed)(unsigned what);
	struct test_listener *next;
};

static char heard[64];

static void tell(const struct test_listener *listeners, unsigned what)
{
	const struct test_listener *l;

	for (l = listeners; l; l = l->next)
		if (l->changed)
			l->changed(what);
}

static void note(const char *who, unsigned what)
{
	size_t n = strlen(heard);

	snprintf(heard + n, sizeof(heard) - n, "%s%u ", who, what);
}

static void first_heard(unsigned what)
{
	note("first", what);
}

static void second_heard(unsigned what)
{
	note("second", what);
}

static void everyone_hears(void **state)
{
	struct test_listener *listeners = NULL, first = {.changed = first_heard}, silent = {0},
			     second = {.changed = second_heard};

	tell(listeners, 1); // no listener yet
	LISTEN(listeners, &first);
	tell(listeners, 2);
	LISTEN(listeners, &silent);
	LISTEN(listeners, &second);
	tell(listeners, 3);
	assert_string_equal(heard, "first2 first3 second3 ");
}

static void registered_twice_is_told_once(void **state)
{
	struct test_listener *listeners = NULL, first = {.changed = first_heard}, second = {.changed = second_heard};

	heard[0] = '\0';
	LISTEN(listeners, &first);
	LISTEN(listeners, &second);
	LISTEN(listeners, &first);
	LISTEN(listeners, &second);
	tell(listeners, 7);
	assert_string_equal(heard, "first7 second7 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(everyone_hears),
					   cmocka_unit_test(registered_twice_is_told_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
