// SPDX-License-Identifier: Apache-2.0
// A worker with an injected delay, and its recorder.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "base/fault_injection.h"
#include "debug/delay.h"
#include "testing/router_fixture.h"
#include "testing/wait_until.h"
#include "worker/recorder.h"
#include "worker/worker.h"

static struct error err;
static struct worker *w;

static int setup(void **state)
{
	struct worker_config cfg = {.idle = IDLE_YIELD};
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cfg.cpu = i;
	if (router_setup(state) < 0)
		return -1;
	w = worker_add(0, &cfg, &err);
	return w ? 0 : -1;
}

static int teardown(void **state)
{
	worker_del_all();
	return router_teardown(state);
}

static void wait_for_loops(uint64_t n)
{
	uint64_t loops = __atomic_load_n(&w->loops, __ATOMIC_ACQUIRE);

	assert_true(wait_until(__atomic_load_n(&w->loops, __ATOMIC_ACQUIRE) >= loops + n));
}

// Records loops and returns how many there are. Those that began before the last change of the delay do not count.
static unsigned record(struct long_loop l[LONGEST_LOOPS])
{
	wait_for_loops(3);
	recorder_reset(w->recorder);
	wait_for_loops(50);
	return recorder_longest(w->recorder, l);
}

static void needs_permission(void **state)
{
	assert_non_null(fault_injection);
	fault_injection->allowed = false;
	assert_int_equal(delay_set(w, 1000, &err), -EPERM);
	assert_non_null(strstr(err.message, "started without debugging"));
	assert_int_equal(w->delay, 0);
}

static void each_loop_is_longer(void **state)
{
	struct long_loop l[LONGEST_LOOPS];
	uint64_t us = rte_get_tsc_hz() / 1000000;
	unsigned n;

	fault_injection->allowed = true;
	assert_int_equal(delay_set(w, 1000, &err), 0);
	recorder_set_threshold(w->recorder, 0); // all loops are long
	n = record(l);
	assert_int_not_equal(n, 0);
	assert_true(l[n - 1].cycles >= 1000 * us - us);
	for (; n > 0; n--)
		assert_true(l[n - 1].stages[STAGE_DELAY] >= 1000 * us - us);
	assert_int_equal(delay_set(w, 0, &err), 0);
	assert_int_equal(w->delay, 0);
	n = record(l);
	assert_int_not_equal(n, 0);
	for (; n > 0; n--)
		assert_int_equal(l[n - 1].stages[STAGE_DELAY], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(needs_permission), cmocka_unit_test(each_loop_is_longer)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
