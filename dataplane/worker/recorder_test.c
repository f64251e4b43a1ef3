// SPDX-License-Identifier: Apache-2.0
// The recorder with loops and interruptions of the test's. Those of real threads: recorder_measure_test.c.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "graph/node_test.h"
#include "worker/recorder.h"

static struct recorder *r;
static struct rte_graph *graph;

static int setup(void **state)
{
	if (node_test_setup(state) < 0)
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

// The recorder with a word of the test's in place of the one that the kernel clears.
static volatile uint64_t word;

static void enter_by_hand(void)
{
	recorder_enter(r);
	r->armed = &word;
	recorder_return(r);
	r->taken = 0;
}

static void kernel_interrupts(void)
{
	word = 0;
}

// An interruption belongs to its loop and, because it may have come between the time stamp and the look at the word, to
// the next one.
static void taken_by_others(void **state)
{
	struct long_loop l[LONGEST_LOOPS];
	unsigned i;

	enter_by_hand();
	for (i = 0; i < 20; i++) {
		if (i == 7 || i == 13 || i == 14)
			kernel_interrupts();
		loop(us(1000 - i), 1);
		assert_int_equal(word, r->mark);
	}
	assert_int_equal(r->taken, 3);
	assert_int_equal(recorder_longest(r, l), 20);
	for (i = 0; i < 20; i++)
		assert_int_equal(l[i].taken, i == 7 || i == 8 || (i >= 13 && i <= 15));
	recorder_reset(r);
	assert_int_equal(r->taken - r->taken_base, 0);
}

// A system call that gives up the CPU does not count as a preemption, but one before it does.
static void given_away(void **state)
{
	unsigned i;

	enter_by_hand();
	for (i = 0; i < 50; i++) {
		if (i == 20)
			kernel_interrupts();
		recorder_leave(r);
		kernel_interrupts();
		recorder_return(r);
		loop(us(100), 0);
	}
	assert_int_equal(r->taken, 1);
	assert_int_equal(r->taken_in, 21); // loops are counted from 1
}

static void ignore(int signal)
{
}

// The kernel of this machine clears the word, if it does so at all: each time that a signal is delivered, at least.
static void kernel_clears_the_word(void **state)
{
	unsigned i;

	recorder_enter(r);
	if (!r->sees_kernel)
		skip();
	assert_int_not_equal(signal(SIGUSR1, ignore), SIG_ERR);
	for (i = 1; i <= 20; i++) {
		raise(SIGUSR1);
		loop(us(10), 0);
		assert_in_range(r->taken, i, UINT64_MAX);
		assert_int_equal(r->taken_in, i);
	}
	recorder_leave(r);
	signal(SIGUSR1, SIG_DFL);
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
					   T(taken_by_others), T(given_away),   T(kernel_clears_the_word)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
