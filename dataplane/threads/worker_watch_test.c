// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "threads/worker_watch.h"

#define MS 1000000ull

static struct watch w;
static uint64_t now, loops;

static int setup(void **state)
{
	memset(&w, 0, sizeof(w));
	now = 1000 * MS;
	loops = 5;
	watch_restart(&w, loops, now);
	return 0;
}

// Polls each 100 ms. looped: the worker has looped between the polls.
static enum watch_result after(unsigned ms, bool looped)
{
	enum watch_result r, last = WATCH_NOTHING;

	for (; ms > 0; ms -= 100) {
		now += 100 * MS;
		loops += looped;
		r = watch_step(&w, loops, now);
		last = r == WATCH_STALLED || r == WATCH_RESUMED ? r : last;
	}
	return last;
}

static void healthy(void **state)
{
	assert_int_equal(after(10000, true), WATCH_NOTHING);
	assert_int_equal(after(400, false), WATCH_NOTHING); // late, but not for long
	assert_int_equal(watch_step(&w, loops, now), WATCH_SUSPECT);
	assert_int_equal(after(5000, true), WATCH_NOTHING);
	assert_false(w.reported);
}

static void stalls_and_resumes(void **state)
{
	after(1000, true);
	assert_int_equal(after(400, false), WATCH_NOTHING);
	assert_int_equal(after(100, false), WATCH_STALLED);
	assert_int_equal(after(7000, false), WATCH_NOTHING); // reported once
	assert_int_equal(after(900, true), WATCH_NOTHING);
	assert_int_equal(after(200, true), WATCH_RESUMED);
	assert_true(w.steady - w.begin == 7600 * MS && w.longest == 7600 * MS);
	assert_int_equal(after(5000, true), WATCH_NOTHING);
	assert_int_equal(after(500, false), WATCH_STALLED); // the next stall
}

// A real-time task that the kernel throttles leaves 50 ms per second: that is one event, not two per second.
static void starved(void **state)
{
	unsigned i;

	assert_int_equal(after(900, false), WATCH_STALLED);
	for (i = 0; i < 30; i++) {
		assert_int_equal(after(100, true), WATCH_NOTHING);
		assert_int_equal(after(900, false), WATCH_NOTHING);
	}
	assert_int_equal(after(1100, true), WATCH_RESUMED);
	assert_true(w.longest == 1000 * MS);
}

// After a stall of the master, earlier observations of workers do not count.
static void restart(void **state)
{
	after(300, false);
	now += 5000 * MS;
	watch_restart(&w, loops, now);
	assert_int_equal(after(400, false), WATCH_NOTHING);
	assert_int_equal(after(100, false), WATCH_STALLED);
	assert_true(w.stalled);
	now += 5000 * MS;
	watch_restart(&w, loops, now);
	assert_int_equal(after(300, false), WATCH_NOTHING);
	assert_true(w.stalled); // nobody has seen it loop
	after(100, true);
	assert_false(w.stalled);
}

static void why(void **state)
{
	struct task a = {.run_ns = 100, .wait_ns = 100}, b = a;
	char text[128];

	b.state = 'D';
	assert_non_null(strstr(watch_why(&a, &b, 3, text, sizeof(text)), "frozen"));
	b.state = 't';
	assert_non_null(strstr(watch_why(&a, &b, 3, text, sizeof(text)), "debugger"));
	b.state = 'T';
	assert_non_null(strstr(watch_why(&a, &b, 3, text, sizeof(text)), "signal"));
	b.state = 'S';
	assert_non_null(strstr(watch_why(&a, &b, 3, text, sizeof(text)), "system call"));
	b.state = 'Z';
	assert_non_null(strstr(watch_why(&a, &b, 3, text, sizeof(text)), "ended"));
	b.state = 'R';
	b.cpu = 3;
	assert_string_equal(watch_why(&a, &b, 3, text, sizeof(text)), "it could run on CPU 3, but others have it");
	assert_true(watch_is_preempted(&a, &b));
	b.cpu = 1;
	assert_non_null(strstr(watch_why(&a, &b, 3, text, sizeof(text)), "not its own CPU"));
	b.run_ns += 400 * MS;
	assert_string_equal(watch_why(&a, &b, 3, text, sizeof(text)), "it runs on CPU 1, but its loop does not end");
	assert_false(watch_is_preempted(&a, &b));
	b.wait_ns += 300 * MS;
	assert_non_null(strstr(watch_why(&a, &b, 1, text, sizeof(text)), "others have it"));
	assert_true(watch_is_preempted(&a, &b));
	b.state = 'S';
	assert_false(watch_is_preempted(&a, &b));
}

// Many short waits of a worker whose CPU others use, too, do not hide a loop that does not end.
static void hanging(void **state)
{
	struct task before = {.run_ns = 100, .wait_ns = 100}, later = before;

	later.state = 'R';
	later.wait_ns += WATCH_STALL_NS;
	assert_false(watch_is_hanging(&before, &later));
	later.run_ns += WATCH_STALL_NS / 2 - 1;
	assert_false(watch_is_hanging(&before, &later));
	later.run_ns += 1;
	assert_true(watch_is_hanging(&before, &later));
	later = before;
	later.state = 'S';
	assert_true(watch_is_hanging(&before, &later));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(healthy, setup),
					   cmocka_unit_test_setup(stalls_and_resumes, setup),
					   cmocka_unit_test_setup(starved, setup),
					   cmocka_unit_test_setup(restart, setup),
					   cmocka_unit_test(why),
					   cmocka_unit_test(hanging)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
