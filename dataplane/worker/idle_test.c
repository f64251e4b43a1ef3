// SPDX-License-Identifier: Apache-2.0
// Workers that have nothing to do: what each policy costs in system calls, and how long a message waits.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "base/rcu.h"
#include "base/system_calls.h"
#include "main/router_fixture.h"
#include "worker/health.h"
#include "worker/orders.h"
#include "worker/recorder.h"
#include "worker/worker.h"

static struct error err;
static unsigned cpu;

static int setup(void **state)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu = i;
	return router_setup(state);
}

static int reset(void **state)
{
	worker_debug_allowed = false;
	worker_del_all();
	for (struct port *p = port_next(NULL); p; p = port_next(p))
		for (unsigned i = 0; i < p->n_queues; i++)
			p->queues[i].rx_worker = WORKER_NONE;
	rcu_poll();
	return 0;
}

static struct worker *add(enum idle_policy idle)
{
	struct worker *w = worker_add(0, &(struct worker_config){.cpu = cpu, .idle = idle}, &err);

	if (w == NULL)
		fail_msg("%s", err.message);
	return w;
}

struct rate {
	uint64_t loops, calls, switches;
};

static struct rate look(const struct worker *w)
{
	struct worker_health h = {};

	assert_int_equal(health_read(&h, "", w->tid), 0);
	return (struct rate){__atomic_load_n(&w->loops, __ATOMIC_RELAXED), __atomic_load_n(w->system_calls, __ATOMIC_RELAXED),
			     h.voluntary};
}

static struct rate observe(const struct worker *w, unsigned ms)
{
	struct rate a = look(w), b;
	unsigned i;

	for (i = 0; i < 5000 && look(w).loops == a.loops; i++) // until it has come to its CPU
		usleep(1000);
	a = look(w);
	usleep(ms * 1000);
	b = look(w);
	return (struct rate){b.loops - a.loops, b.calls - a.calls, b.switches - a.switches};
}

static void spinning_calls_nothing(void **state)
{
	struct rate r = observe(add(IDLE_SPIN), 100);

	assert_true(r.loops > 1000);
	assert_int_equal(r.calls, 0);
	assert_int_equal(r.switches, 0); // the kernel agrees
	reset(NULL);
	r = observe(add(IDLE_PAUSE), 100);
	assert_true(r.loops > 1000);
	assert_int_equal(r.calls, 0);
	assert_int_equal(r.switches, 0);
}

static void yielding_calls_each_time(void **state)
{
	struct rate r = observe(add(IDLE_YIELD), 100);

	assert_true(r.loops > 0);
	assert_in_range(r.calls, r.loops - 2, r.loops + 2);
}

// Naps grow to the bound, which can be set while the worker runs.
static void sleeping_adapts(void **state)
{
	struct worker *w = add(IDLE_SLEEP);
	struct rate r = observe(w, 200);

	assert_in_range(r.calls, 1, 200000 / 50); // at least 50 us each
	assert_in_range(r.switches, r.calls / 2, r.calls * 2 + 10);
	worker_set_sleep_max(w, 10000);
	usleep(50000);
	r = observe(w, 200);
	assert_in_range(r.calls, 1, 25); // 20 of 10 ms
	worker_set_sleep_max(w, 0);
	assert_int_equal(w->idle_state.sleep_max_us, SLEEP_MAX_US);
}

static void count_free(void *arg)
{
	++*(unsigned *)arg;
}

// While it sleeps for long nobody waits for it.
static void sleeper_is_not_waited_for(void **state)
{
	struct worker *w = add(IDLE_SLEEP);
	unsigned done = 0, i;
	uint64_t start;

	worker_set_sleep_max(w, SLEEP_MAX_US_LIMIT);
	usleep(400000); // its naps have grown
	for (i = 0; i < 5; i++) {
		start = rte_rdtsc();
		rcu_defer(count_free, &done);
		while (done == i)
			rcu_poll();
		if (rte_rdtsc() - start < rte_get_tsc_hz() / 50)
			return; // less than 20 ms, of the 100 that it sleeps
		usleep(10000);
	}
	fail_msg("the master waited for a sleeping worker");
}

static void tuning_is_checked(void **state)
{
	assert_int_equal(worker_check_tuning(0, 0, &err), 0);
	assert_int_equal(worker_check_tuning(SLEEP_MAX_US_LIMIT, LONG_LOOP_US_MAX, &err), 0);
	assert_int_equal(worker_check_tuning(SLEEP_MAX_US_LIMIT + 1, 0, &err), -EINVAL);
	assert_string_equal(err.field, "worker.sleep_max_us");
	assert_int_equal(worker_check_tuning(0, LONG_LOOP_US_MAX + 1, &err), -EINVAL);
	assert_string_equal(err.field, "worker.loop_threshold_us");
}

static void delayed(void **state)
{
	struct worker *w = add(IDLE_YIELD);
	struct long_loop l[LONGEST_LOOPS];
	uint64_t us = rte_get_tsc_hz() / 1000000;
	unsigned n;

	assert_int_equal(worker_set_delay(w, 1000, &err), -EPERM);
	worker_debug_allowed = true;
	assert_int_equal(worker_set_delay(w, DEBUG_DELAY_US_MAX + 1, &err), -EINVAL);
	assert_int_equal(worker_set_delay(w, 1000, &err), 0);
	assert_in_range(worker_delay(w), 999, 1000);
	observe(w, 100);
	n = recorder_longest(w->recorder, l);
	assert_int_not_equal(n, 0);
	assert_true(l[n - 1].cycles >= 1000 * us - us);
	assert_true(l[n - 1].stages[STAGE_DELAY] >= 1000 * us - us);
	assert_int_equal(worker_set_delay(w, 0, &err), 0);
	assert_int_equal(worker_delay(w), 0);
	usleep(20000);
	recorder_reset(w->recorder);
	recorder_set_threshold(w->recorder, 1);
	observe(w, 50);
	for (n = recorder_longest(w->recorder, l); n > 0; n--)
		assert_int_equal(l[n - 1].stages[STAGE_DELAY], 0);
}

static void nothing(void *arg)
{
}

// A worker that hangs is behind, by as much as it hangs.
static void behind(void **state)
{
	struct worker *w = add(IDLE_YIELD);
	uint64_t ms = rte_get_tsc_hz() / 1000, most = 0;
	unsigned i;

	observe(w, 10);
	worker_debug_allowed = true;
	assert_int_equal(worker_set_delay(w, 300000, &err), 0);
	for (i = 0; i < 100; i++) {
		rcu_defer(nothing, NULL);
		usleep(5000);
		most = RTE_MAX(most, rcu_behind(w->id));
	}
	assert_in_range(most, 150 * ms, 3000 * ms);
	worker_health_poll();
	assert_int_equal(worker_set_delay(w, 0, &err), 0);
	for (i = 0; i < 5000 && (rcu_poll(), rcu_pending() > 0); i++)
		usleep(1000);
	assert_int_equal(rcu_behind(w->id), 0);
}

static uint32_t depth_of(struct port_queue *q)
{
	return 7 + q->index;
}

// Asked of the worker, since only the one that polls may look.
static void depths(void **state)
{
	struct port *p = port_get(RED0);
	struct port_ops ops = *p->ops, *had = (struct port_ops *)p->ops;
	struct worker *w;

	ops.depth = depth_of;
	p->ops = &ops;
	w = add(IDLE_YIELD);
	worker_measure(w);
	observe(w, 20);
	assert_int_equal(w->orders, 0);
	assert_int_equal(p->queues[1].depth, 8);
	assert_int_equal(port_get(RED1)->queues[0].depth, DEPTH_UNKNOWN);
	worker_del_all();
	p->ops = had;
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(spinning_calls_nothing),
		T(yielding_calls_each_time),
		T(sleeping_adapts),
		T(sleeper_is_not_waited_for),
		T(tuning_is_checked),
		T(delayed),
		T(behind),
		T(depths),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
