// SPDX-License-Identifier: Apache-2.0
// The memory of flows: their distribution to workers, their number, and refused changes.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_eal.h>

#include "dpdk/eal_init.h"
#include "flow/flow_private.h"

#define CAPACITY 5000u // no multiple of a chunk
#define ROOM (79 * FLOW_CHUNK)
#define WORKERS 4u
#define TAKEN (300 * FLOW_CHUNK + 1)

static bool *taken;

static uint32_t take(unsigned worker)
{
	static const struct flow zero;
	struct flow *f = flow_alloc(worker);
	uint32_t i = f ? (uint32_t)(f - flows) : 0;

	if (f == NULL)
		return 0;
	assert_true(i > 0 && i < flow_used_range());
	assert_false(taken[i]);
	assert_memory_equal(f, &zero, sizeof(*f));
	memset(f, 0xff, sizeof(*f));
	taken[i] = true;
	return i;
}

static unsigned owner_of(uint32_t flow)
{
	return *flow_chunk_owner(flow_chunk_of(&flows[flow])) - 1u;
}

// Frees flows as the owners of their chunks do, and lets grace periods pass.
static void give_back(const uint32_t *list, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		taken[list[i]] = false;
		flow_bury(owner_of(list[i]), &flows[list[i]]);
	}
	for (i = 0; i < 2 * WORKERS; i++)
		flow_reclaim(i / 2);
}

static unsigned take_all(uint32_t *list, unsigned workers)
{
	unsigned n = 0, w;

	for (w = 0; w < workers; w++)
		while ((list[n] = take(w)) != 0)
			n++;
	return n;
}

static void exhaustion(void **state)
{
	uint32_t list[2 * ROOM];
	unsigned n, round, back;

	assert_int_equal(flow_used_range(), 1);
	n = take_all(list, 1);
	assert_int_equal(n, ROOM);
	assert_int_equal(flow_count(), ROOM);
	for (round = 1; round < 200; round += 13) { // fewer than a chunk, a chunk, and more
		back = round;
		give_back(list + n - back, back);
		assert_int_equal(flow_count(), ROOM - back);
		assert_int_equal(take_all(list + n - back, 1), back);
		assert_null(flow_alloc(0));
		assert_int_equal(flow_count(), ROOM);
	}
	give_back(list, n);
	assert_int_equal(flow_count(), 0);
	assert_int_equal(take_all(list, 3), ROOM); // by any worker
	give_back(list, ROOM);
}

static void put_back(void **state)
{
	struct flow *f = flow_alloc(2), *g;

	assert_int_equal(flow_count(), 1);
	flow_unalloc(2, f);
	assert_int_equal(flow_count(), 0);
	g = flow_alloc(2);
	assert_ptr_equal(f, g); // the last one freed is the first one reused
	flow_unalloc(2, g);
}

static void chunks_have_owners(void **state)
{
	uint32_t mine[FLOW_CHUNK], other = take(1), more[2 * ROOM], i, n;
	struct flow_chunk *c;

	for (i = 0; i < FLOW_CHUNK; i++) {
		mine[i] = take(0);
		assert_int_equal(owner_of(mine[i]), 0);
		assert_int_equal(flow_chunk_of(&flows[mine[i]]), flow_chunk_of(&flows[mine[0]]));
	}
	assert_int_equal(owner_of(other), 1);
	assert_true(flow_chunk_mine(1, flow_chunk_of(&flows[other])));
	assert_false(flow_chunk_mine(0, flow_chunk_of(&flows[other])));
	n = take_all(more, 1); // worker 1 has 63 at hand
	assert_int_equal(n, ROOM - 2 * FLOW_CHUNK);
	give_back(mine, 10);
	c = flow_chunk(flow_chunk_of(&flows[mine[0]]));
	assert_int_equal(__builtin_popcountll(c->free), 10);
	assert_int_equal(__builtin_popcountll(flow_chunk_used(flow_chunk_of(&flows[mine[0]]))), FLOW_CHUNK - 10);
	while ((more[n] = take(1)) != 0) // its own flows, then those that worker 0 has left
		n++;
	assert_int_equal(n, ROOM - 2 * FLOW_CHUNK + 63 + 10);
	for (i = n - 10; i < n; i++)
		assert_int_equal(owner_of(more[i]), 0); // still
	give_back(more + n - 10, 10);
	assert_int_equal(__builtin_popcountll(c->free), 10); // they return to their chunk
	give_back(more, n - 10);
	give_back(mine + 10, FLOW_CHUNK - 10);
	give_back(&other, 1);
	assert_int_equal(flow_count(), 0);
}

static void whole_chunks_are_everybodys(void **state)
{
	static uint32_t list[300 * FLOW_CHUNK + 1]; // with the 0 that ends it
	unsigned i, n, mine = 0;

	assert_int_equal(flow_set_capacity(300 * FLOW_CHUNK, NULL), 0);
	while (flow_grow_step(1000))
		rcu_poll();
	n = take_all(list, 1);
	assert_int_equal(n, 300 * FLOW_CHUNK);
	give_back(list, n);
	for (i = 1; i <= 300; i++)
		mine += flow_chunk_mine(0, i);
	assert_int_equal(mine, 128); // the number that it keeps
	for (n = 0; n < 172 * FLOW_CHUNK; n++) {
		list[n] = take(1);
		assert_int_equal(owner_of(list[n]), 1);
	}
	give_back(list, n);
}

static void nobody_sees_it_any_more(void **state)
{
	uint32_t first = take(0), second = take(0);

	rcu_reader_online(1);
	flow_bury(0, &flows[first]);
	taken[first] = false;
	assert_int_equal(flow_chunk_used(1), 0); // no scan in between
	flow_reclaim(0);
	flow_reclaim(0);
	assert_int_equal(flow_count(), 2);
	rcu_quiescent(1);
	flow_reclaim(0);
	assert_int_equal(flow_count(), 1);
	assert_true(flow_chunk_used(1) & flow_chunk_bit(&flows[second]));
	rcu_reader_offline(1);
	give_back(&second, 1);
}

// Every flow of all chunks that workers have got is in use, free, or in a worker's reserve.
static void check_balance(unsigned in_use)
{
	uint32_t c, free = 0, chunks = flow_chunks_used();

	assert_int_equal(flow_count(), in_use);
	for (c = 1; c <= chunks; c++)
		free += *flow_chunk_owner(c) ? (unsigned)__builtin_popcountll(flow_chunk(c)->free) : FLOW_CHUNK;
	assert_in_range(chunks * FLOW_CHUNK - free - in_use, 0, WORKERS * 2 * FLOW_CHUNK);
}

static void a_worker_goes(void **state)
{
	uint32_t list[2 * ROOM], later[2 * ROOM], c, n, i;

	n = take_all(list, 2);
	assert_int_equal(n, ROOM);
	give_back(list, 100); // most of them return to the worker's reserve
	assert_true(take(0) != 0);
	rcu_reader_online(3);
	flow_bury(0, &flows[list[200]]);
	taken[list[200]] = false;
	assert_false(flow_hand_over(0, 1, ROOM)); // a reader may still see it
	assert_int_equal(owner_of(list[300]), 0);
	rcu_quiescent(3);
	for (i = 0; !flow_hand_over(0, 1, 10); i++)
		assert_true(i < 100);
	assert_true(i > 3); // in steps
	rcu_reader_offline(3);
	assert_true(flow_hand_over(0, 1, 10)); // nothing is left
	for (c = 1; c <= flow_chunks_used(); c++)
		assert_true(flow_chunk_mine(1, c));
	assert_int_equal(flow_count(), ROOM - 100);
	for (n = 0; (later[n] = take(1)) != 0; n++)
		assert_int_equal(owner_of(later[n]), 1);
	assert_int_equal(n, 100);
	assert_null(flow_alloc(0));
	for (i = 1; i <= ROOM; i++) // all of them end
		if (taken[i])
			give_back(&i, 1);
	assert_int_equal(flow_count(), 0);
	assert_int_equal(take_all(list, 3), ROOM);
	give_back(list, ROOM);
}

// Workers take and end flows, their own and those of others, and are added and removed.
static void random_operations(void **state)
{
	static uint32_t list[3 * ROOM];
	unsigned i, n = 0, back, gone = 0;

	srand(1);
	for (i = 0; i < 3000000; i++) {
		unsigned who = (unsigned)rand() % WORKERS;

		if (rand() % 5 && n < 3 * ROOM) {
			uint32_t f = take(who);

			if (f)
				list[n++] = f;
			continue;
		}
		back = n ? (unsigned)rand() % RTE_MIN(n, 7u) + 1 : 0;
		n -= back;
		give_back(list + n, back);
		if (i % 1000 == 0)
			check_balance(n);
		if (i == 1500000)
			assert_int_equal(flow_set_capacity(CAPACITY * 2, NULL), 0);
		if (i % 7001 == 0) {
			gone++;
			while (!flow_hand_over(who, (who + 1) % WORKERS, 100))
				;
		}
		if (i % 50000 == 0) {
			give_back(list, n);
			n = 0;
		}
	}
	assert_true(gone > 10);
	give_back(list, n);
	assert_int_equal(flow_count(), 0);
	n = take_all(list, WORKERS);
	assert_int_equal(n, (2 * CAPACITY + FLOW_CHUNK - 1) / FLOW_CHUNK * FLOW_CHUNK); // none was lost
	give_back(list, n);
}

static void growth(void **state)
{
	static uint32_t list[3 * ROOM], more[2 * ROOM];
	struct error err;
	unsigned n = take_all(list, 1), twice = 157 * FLOW_CHUNK;

	assert_int_equal(n, ROOM);
	assert_int_equal(flow_set_capacity(CAPACITY, &err), 0); // as it is
	assert_int_equal(flow_set_capacity(2 * CAPACITY, &err), 0);
	assert_int_equal(flow_capacity(), 2 * CAPACITY);
	assert_int_equal(take_all(more, 1), twice - ROOM);
	assert_true(flow_grow_step(1));
	assert_true(flow_growing());
	assert_int_equal(flow_set_capacity(twice + 1, &err), 0); // while the table grows
	while (flow_grow_step(1000))
		rcu_poll();
	assert_false(flow_growing());
	assert_true(flow_table_slots(flow_table) >= 2 * (twice + 1));
	assert_int_equal(take_all(more + twice - ROOM, 1), FLOW_CHUNK);
	give_back(list, n);
	give_back(more, twice - ROOM + FLOW_CHUNK);
}

static void refusals(void **state)
{
	static const uint32_t bad[] = {0, 1, FLOW_CAPACITY_MIN - 1, CAPACITY - 1, FLOW_CAPACITY_MAX + 1, UINT32_MAX};
	struct error err;
	unsigned i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(flow_set_capacity(bad[i], &err), -EINVAL);
		assert_string_equal(err.field, "flows");
		assert_string_equal(err.valid, "5000 to 33554432");
		assert_int_equal(flow_set_capacity(bad[i], NULL), -EINVAL);
	}
	flow_set_capacity(7, &err);
	assert_string_equal(err.message, "flows '7': is not a number of flows in range; valid: 5000 to 33554432");
	assert_int_equal(flow_capacity(), CAPACITY);
	flow_fini();
	assert_int_equal(flow_init(CAPACITY), 0);
	assert_int_equal(flow_set_capacity(2 * CAPACITY, &err), 0); // before there is any memory
	assert_int_equal(flow_start(&err), 0);
	assert_int_equal(flow_start(&err), 0);
	assert_int_equal(flow_capacity(), 2 * CAPACITY);
}

// The first flows have memory at once, the others after some turns of the master.
static void memory_in_shares(void **state)
{
	uint32_t chunks = 0, flows_wanted = 100000;
	unsigned steps = 0;

	flow_fini();
	assert_int_equal(flow_init(flows_wanted), 0);
	assert_int_equal(flow_start(NULL), 0);
	assert_int_equal(flow_capacity(), flows_wanted);
	while (flow_pool_get(0))
		chunks++;
	assert_int_equal(chunks, 8192 / FLOW_CHUNK);
	assert_true(flow_table_slots(flow_table) < 2 * flows_wanted);
	while (flow_grow_step(256)) {
		rcu_poll();
		steps++;
	}
	assert_in_range(steps, 2, 1000);
	assert_true(flow_table_slots(flow_table) >= 2 * flows_wanted);
	while (flow_pool_get(0))
		chunks++;
	assert_int_equal(chunks, (flows_wanted + FLOW_CHUNK - 1) / FLOW_CHUNK);
	assert_false(flow_grow_step(256));
}

static int start_eal(void **state)
{
	char *argv[] = {"flow_pool_test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", NULL};

	taken = calloc(TAKEN, sizeof(*taken));
	return taken == NULL || eal_init(7, argv) < 0 || rcu_init() != 0;
}

static int stop_eal(void **state)
{
	free(taken);
	rcu_fini();
	return rte_eal_cleanup();
}

static int start(void **state)
{
	memset(taken, 0, TAKEN * sizeof(*taken));
	return flow_init(CAPACITY) != 0 || flow_start(NULL) != 0;
}

static int stop(void **state)
{
	flow_fini();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exhaustion, start, stop),
		cmocka_unit_test_setup_teardown(put_back, start, stop),
		cmocka_unit_test_setup_teardown(chunks_have_owners, start, stop),
		cmocka_unit_test_setup_teardown(whole_chunks_are_everybodys, start, stop),
		cmocka_unit_test_setup_teardown(nobody_sees_it_any_more, start, stop),
		cmocka_unit_test_setup_teardown(a_worker_goes, start, stop),
		cmocka_unit_test_setup_teardown(random_operations, start, stop),
		cmocka_unit_test_setup_teardown(growth, start, stop),
		cmocka_unit_test_setup_teardown(refusals, start, stop),
		cmocka_unit_test_setup_teardown(memory_in_shares, start, stop),
	};

	return cmocka_run_group_tests(tests, start_eal, stop_eal);
}
