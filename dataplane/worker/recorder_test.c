// SPDX-License-Identifier: Apache-2.0
// The recorder on threads of the test, which share their CPU with competing threads.
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

static const uint32_t order[] = {64, 128, 192, 128}; // nodes in the order of a walk

static void walked(uint64_t begin, unsigned n)
{
	r->trail =
		(struct graph_trail){.begin = begin, .end = begin, .n = n, .order = order + 1, .mask = GRAPH_TRAIL - 1};
}

// Records a simulated loop of this length: half of it is the walk, an eighth the first node.
static void loop(uint64_t cycles, uint32_t packets)
{
	static uint64_t start;

	walked(start, 2);
	r->trail.ends[0] = start + cycles / 8;
	r->trail.ends[1] = r->trail.end = start + cycles / 2;
	recorder_loop(r, start + cycles, packets);
	start += cycles;
}

static void counts(void **state)
{
	struct histogram busy, empty;

	recorder_enter(r);
	loop(us(10), 32);
	loop(us(10), 0);
	loop(us(20), 0);
	recorder_counts(r, &busy, &empty);
	assert_int_equal(histogram_total(&busy), 1);
	assert_int_equal(histogram_total(&empty), 2);
	assert_in_range(recorder_max(r, &busy, &empty), us(20), us(20) * 17 / 16);
	recorder_reset(r);
	loop(us(10), 1);
	recorder_counts(r, &busy, &empty);
	assert_int_equal(histogram_total(&busy), 1);
	assert_int_equal(histogram_total(&empty), 0);
}

static void splits(void **state)
{
	struct long_loop l[LONGEST_LOOPS];
	uint64_t sum = 0;
	unsigned i;

	recorder_enter(r);
	loop(us(LONG_LOOP_US) - 1, 1);
	assert_int_equal(recorder_longest(r, l), 0);
	recorder_spent(r, STAGE_DELAY, us(50));
	recorder_spent(r, STAGE_IDLE, us(10));
	recorder_spent(r, STAGE_IDLE, us(10));
	loop(us(800), 7);
	assert_int_equal(recorder_longest(r, l), 1);
	assert_int_equal(l[0].cycles, us(800));
	assert_int_equal(l[0].packets, 7);
	assert_int_equal(l[0].stages[STAGE_RECEIVE], us(800) / 8);
	assert_int_equal(l[0].stages[STAGE_DELAY], us(50));
	assert_int_equal(l[0].stages[STAGE_IDLE], us(20));
	for (i = 0; i < LOOP_STAGES; i++)
		sum += l[0].stages[i];
	assert_int_equal(sum, us(800));
	assert_int_equal(l[0].n_nodes, 2);
	assert_int_equal(l[0].nodes[0].node, 128); // took longer
	assert_int_equal(l[0].nodes[0].runs, 1);
	loop(us(400), 0); // the time of the last loop does not count for this one
	assert_int_equal(recorder_longest(r, l), 2);
	assert_int_equal(l[1].stages[STAGE_DELAY], 0);
}

// The longest loops are kept, whatever follows; a reset forgets all.
static void longest_stay(void **state)
{
	struct long_loop l[LONGEST_LOOPS];
	unsigned i;

	recorder_enter(r);
	for (i = 0; i < 1000; i++)
		loop(us(200 + i * 7919 % 1000), 1);
	assert_int_equal(recorder_longest(r, l), LONGEST_LOOPS);
	for (i = 0; i < LONGEST_LOOPS; i++)
		assert_int_equal(l[i].cycles, us(200 + 999 - i));
	assert_int_equal(recorder_max(r, &r->busy, &r->empty), us(1199));
	recorder_reset(r);
	assert_int_equal(recorder_longest(r, l), 0);
	loop(us(300), 1);
	assert_int_equal(recorder_longest(r, l), 1);
}

static void threshold(void **state)
{
	struct long_loop l[LONGEST_LOOPS];

	recorder_enter(r);
	recorder_set_threshold(r, 1000);
	assert_int_equal(recorder_threshold(r), 1000);
	loop(us(500), 1);
	assert_int_equal(recorder_longest(r, l), 0);
	recorder_set_threshold(r, 50);
	loop(us(500), 1);
	assert_int_equal(recorder_longest(r, l), 1);
}

// A node that ran twice.
static void sums_by_node(void **state)
{
	struct long_loop l[LONGEST_LOOPS];

	recorder_enter(r);
	walked(0, 4);
	r->trail.ends[0] = us(10);
	r->trail.ends[1] = us(30);
	r->trail.ends[2] = us(60);
	r->trail.ends[3] = r->trail.end = us(200);
	recorder_loop(r, us(200), 1);
	assert_int_equal(recorder_longest(r, l), 1);
	assert_int_equal(l[0].n_nodes, 3);
	assert_int_equal(l[0].nodes[0].node, 128);
	assert_int_equal(l[0].nodes[0].runs, 2);
	assert_int_equal(l[0].nodes[0].cycles, us(20) + us(200) - us(60));
	assert_int_equal(l[0].nodes[1].node, 192);
	assert_int_equal(l[0].nodes[1].cycles, us(60) - us(30));
	assert_int_equal(l[0].nodes[2].cycles, us(10));
}

// A walk with more runs than the trail keeps.
static void long_trail(void **state)
{
	uint32_t nodes[1 + 2 * GRAPH_TRAIL];
	struct long_loop l[LONGEST_LOOPS];
	unsigned i, n = 5 * GRAPH_TRAIL;

	recorder_enter(r);
	for (i = 0; i < RTE_DIM(nodes); i++)
		nodes[i] = i;
	walked(0, n);
	r->trail.order = nodes + 1;
	r->trail.mask = 2 * GRAPH_TRAIL - 1;
	for (i = 0; i < n; i++)
		r->trail.ends[i % GRAPH_TRAIL] = us(i);
	r->trail.end = us(n);
	recorder_loop(r, us(n), 1);
	assert_int_equal(recorder_longest(r, l), 1);
	assert_int_equal(l[0].n_nodes, LONG_LOOP_NODES);
	assert_int_equal(l[0].nodes[0].cycles, us(n - 1) - us(n - 2)); // each took the same time
	assert_int_equal(l[0].stages[STAGE_RECEIVE], 0);               // no longer known
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
		walked(start, 0);
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
		walked(0, 0);
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
	const struct CMUnitTest tests[] = {T(counts),          T(splits),       T(longest_stay),
					   T(threshold),       T(sums_by_node), T(long_trail),
					   T(taken_by_others), T(alone),        T(given_away)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
