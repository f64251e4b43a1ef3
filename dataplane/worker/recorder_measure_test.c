// SPDX-License-Identifier: Apache-2.0
// The recorder on threads of the test, which share their CPU with competing threads: how much of what the kernel counts
// it sees. Depends on what else runs on the machine.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "base/thread.h"
#include "graph/node_test.h"
#include "worker/health.h"
#include "worker/recorder.h"

static struct recorder *r;
static struct rte_graph *graph;
static unsigned cpu; // that threads share

static int setup(void **state)
{
	unsigned n = 0, i;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpu = i, n++;
	if (n == 0 || node_test_setup(state) < 0)
		return -1;
	graph = graph_create("recorder", SOCKET_ID_ANY, NULL);
	return graph ? 0 : -1;
}

static int fresh(void **state)
{
	free(r);
	r = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*r), RTE_CACHE_LINE_SIZE));
	memset(r, 0, sizeof(*r));
	recorder_init(r, graph);
	return 0;
}

static uint64_t us(uint64_t n)
{
	return n * rte_get_tsc_hz() / 1000000;
}

static void walked(uint64_t begin)
{
	static const uint32_t order[] = {64, 128};

	r->trail = (struct graph_trail){.begin = begin, .end = begin, .order = order + 1, .mask = GRAPH_TRAIL - 1};
}

struct watched {
	bool stop;
	int tid;
	uint64_t taken, involuntary;
	bool sees_kernel;
};

static uint64_t involuntary(int tid)
{
	struct worker_health h = {};

	assert_int_equal(health_read(&h, "", tid), 0);
	return h.involuntary;
}

static void *compete(void *arg)
{
	struct watched *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

// Runs loops of 5 us, as a worker does.
static void *be_watched(void *arg)
{
	struct watched *w = arg;
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz(), start, now;
	int tid = (int)syscall(SYS_gettid);

	recorder_enter(r);
	w->sees_kernel = r->sees_kernel;
	w->involuntary = involuntary(tid);
	recorder_return(r);
	r->taken = 0;
	for (start = rte_rdtsc(); start < end; start = now) {
		walked(start);
		do
			now = rte_rdtsc();
		while (now - start < us(5));
		recorder_loop(r, now, 0);
	}
	recorder_leave(r);
	w->involuntary = involuntary(tid) - w->involuntary;
	w->taken = r->taken;
	return NULL;
}

static struct watched observe(unsigned competitors)
{
	struct watched w = {}, c = {};
	pthread_t self, others[4];
	unsigned i;

	for (i = 0; i < competitors; i++) {
		assert_int_equal(pthread_create(&others[i], NULL, compete, &c), 0);
		assert_int_equal(thread_pin(others[i], cpu), 0);
	}
	assert_int_equal(pthread_create(&self, NULL, be_watched, &w), 0);
	assert_int_equal(thread_pin(self, cpu), 0);
	pthread_join(self, NULL);
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < competitors; i++)
		pthread_join(others[i], NULL);
	return w;
}

// Each context switch that the kernel counts is seen. There may be more: the kernel also clears the pointer for work of
// its own (a timer, a page that moves), in which the thread did not run either.
static void taken_by_others(void **state)
{
	struct long_loop l[LONGEST_LOOPS];
	struct watched w = observe(2);
	unsigned i, n, taken = 0;

	if (!w.sees_kernel)
		skip();
	printf("# beside others: %lu switches, %lu seen\n", w.involuntary, w.taken);
	printf("# measured: switches that are seen %.2f times, at least 0.9\n",
	       (double)w.taken / RTE_MAX(w.involuntary, 1U));
	assert_true(w.involuntary >= 10);
	assert_in_range(w.taken, w.involuntary * 9 / 10, w.involuntary * 3 + 100);
	n = recorder_longest(r, l);
	assert_int_not_equal(n, 0);
	for (i = 0; i < n; i++)
		taken += l[i].taken;
	assert_true(taken * 10 >= n * 9); // in the longest loops other threads had the CPU
}

// The same work without competing threads, as far as this machine allows.
static void alone(void **state)
{
	struct watched w = observe(0);

	if (!w.sees_kernel)
		skip();
	printf("# alone: %lu switches, %lu seen\n", w.involuntary, w.taken);
	assert_true(w.taken <= w.involuntary * 3 + 100);
}

// A system call that gives up the CPU does not count as a preemption.
static void given_away(void **state)
{
	struct timespec t = {.tv_nsec = 100000};
	unsigned i;

	recorder_enter(r);
	for (i = 0; i < 50; i++) {
		recorder_leave(r);
		nanosleep(&t, NULL);
		recorder_return(r);
		walked(0);
		recorder_loop(r, us(100), 0);
	}
	assert_true(r->taken <= 5);
}

static int teardown(void **state)
{
	free(r);
	graph_destroy(graph);
	return node_test_teardown(state);
}

#define T(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {T(taken_by_others), T(alone), T(given_away)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
