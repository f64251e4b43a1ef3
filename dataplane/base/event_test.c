// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/event.h"
#include "base/log.h"

EVENT_KIND(test_second, ERROR, "Something is broken.");
EVENT_KIND(test_first, WARNING, "Something is odd.");

static unsigned calls, others;

static void count(void)
{
	calls++;
}

static void count_other(void)
{
	others++;
}

static void reports(void **state)
{
	static struct event_listener first = {.reported = count}, second = {.reported = count_other}, silent;
	uint64_t before = (uint64_t)time(NULL) * 1000000000u, number = event_last();
	const struct event_record *e;

	assert_null(event_after(number));
	event_listen(&silent); // has no callback: skipped
	event_listen(&first);
	event_listen(&second);
	event_report(test_first, "worker 3", "has been late for %u ms", 250);
	event_report(test_second, NULL, "is broken");
	assert_int_equal(calls, 2);
	assert_int_equal(others, 2); // a second listener does not replace the first
	e = event_after(number);
	assert_non_null(e);
	// timed: a minute is the patience of all tests
	assert_true(e->number == number + 1 && e->time_ns >= before && e->time_ns < before + 60000000000u);
	assert_string_equal(e->kind->name, "test_first");
	assert_int_equal(e->kind->severity, EVENT_WARNING);
	assert_string_equal(e->subject, "worker 3");
	assert_string_equal(e->text, "has been late for 250 ms");
	e = event_after(e->number);
	assert_string_equal(e->subject, "");
	assert_string_equal(e->text, "is broken");
	assert_null(event_after(e->number));
}

// Long texts are cut, and the oldest events are overwritten first.
static void bounds(void **state)
{
	const struct event_record *e;
	char text[1000];
	unsigned i;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	event_report(test_first, text, "%s", text);
	e = event_after(event_last() - 1);
	assert_int_equal(strlen(e->subject), sizeof(e->subject) - 1);
	assert_int_equal(strlen(e->text), sizeof(e->text) - 1);
	for (i = 0; i < EVENT_RING + 10; i++)
		event_report(test_first, NULL, "%u", i);
	e = event_after(0);
	assert_true(e->number == event_last() - EVENT_RING + 1);
	assert_string_equal(e->text, "10");
	for (i = 10; e; i++) {
		snprintf(text, sizeof(text), "%u", i);
		assert_string_equal(e->text, text);
		e = event_after(e->number);
	}
	assert_int_equal(i, EVENT_RING + 10);
}

static void kinds_by_name(void **state)
{
	const struct event_kind *k = event_kind_next(NULL);

	assert_string_equal(k->name, "master_stalled"); // of this module
	k = event_kind_next(k);
	assert_string_equal(k->name, "test_first");
	k = event_kind_next(k);
	assert_string_equal(k->name, "test_second");
	assert_string_equal(k->text, "Something is broken.");
	assert_null(event_kind_next(k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reports), cmocka_unit_test(bounds),
					   cmocka_unit_test(kinds_by_name)};

	rte_log_set_level((uint32_t)corelane_logtype, RTE_LOG_EMERG);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
