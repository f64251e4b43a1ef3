// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/histogram.h"
#include "base/turn.h"

#define MS UINT64_C(1000000)

static struct turn_work add = {.noun = "Routes", .name = "Add"}, poll = {.name = "punt_poll"};

static void pass_ms(unsigned ms)
{
	clock_stopped_ns += ms * MS;
}

static void run(struct turn_work *w, unsigned ms)
{
	turn_begin(w);
	pass_ms(ms);
	turn_end();
}

static void short_turns(void **state)
{
	uint64_t events = event_last();

	turn_next(); // begins the first one
	run(&poll, 2);
	run(&poll, 4);
	turn_next();
	assert_int_equal(poll.runs, 2);
	assert_int_equal(poll.total_ns, 6 * MS);
	assert_int_equal(poll.longest_ns, 4 * MS);
	assert_int_equal(histogram_total(turns_get()->times), 1);
	assert_ptr_equal(turns_get()->longest_work, &poll);
	assert_int_equal(turns_get()->longest_ns, 6 * MS);
	assert_int_equal(event_last(), events);
	assert_ptr_equal(turn_work_next(NULL), &poll);
	assert_null(turn_work_next(&poll));
}

static void long_turns(void **state)
{
	uint64_t events = event_last(), above = turns_get()->above;
	const struct event_record *e;

	run(&poll, 2);
	run(&add, 150);
	pass_ms(3); // in no work
	turn_next();
	assert_int_equal(turns_get()->above, above + 1);
	assert_ptr_equal(turns_get()->longest_work, &add);
	assert_ptr_equal(turn_work_next(&poll), &add);
	assert_int_equal(turns_get()->longest_ns, 155 * MS);
	assert_int_equal(turns_get()->longest_work_ns, 150 * MS);
	assert_int_equal(turns_get()->longest_at_ns, clock_stopped_ns);
	assert_int_equal(turns_get()->own_ns, 155 * MS);
	e = event_after(events);
	assert_non_null(e);
	assert_string_equal(e->kind->name, "master_stalled");
	assert_string_equal(e->text, "the master thread did not return to its loop for 155 ms: Routes.Add took 150 ms");
	run(&add, 120); // soon after: counted, not reported
	turn_next();
	assert_int_equal(turns_get()->above, above + 2);
	assert_null(event_after(e->number));
}

// Work of an earlier turn is not the cause of a later one.
static void other_causes(void **state)
{
	run(&add, 20);
	turn_next();
	pass_ms(400);
	turn_next();
	assert_null(turns_get()->longest_work);
	assert_null(turns_get()->own_work);
	assert_int_equal(turns_get()->own_ns, 400 * MS);
	assert_int_equal(turns_get()->longest_ns, 400 * MS);
}

static int setup(void **state)
{
	clock_stopped_ns = 1000 * MS;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(short_turns), cmocka_unit_test(long_turns),
					   cmocka_unit_test(other_causes)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
