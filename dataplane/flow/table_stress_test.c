// SPDX-License-Identifier: Apache-2.0
// Workers insert the same sessions at once, from both ends, into a table that is nearly full, while sessions end and
// the table grows. Meant for the thread sanitizer too: `tools/test.sh sanitize` runs it under both.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>

#include "dpdk/eal_init.h"
#include "flow/flow_private.h"
#include "flow/table_fixture.h"

#define WORKERS 3u
#define LASTING 1000u // sessions that stay
#define SESSIONS 5000u
#define RACES 16u // sessions that all workers insert at once before they begin
#define BATCH 32u
#define LEAVER 1u // the worker that goes early
#define WALK 16u  // batches
#ifdef WITH_TSAN
#define BATCHES 120u // of each worker
#else
#define BATCHES 1500u
#endif

static struct flow_table *table;
static int live[SESSIONS + RACES]; // flows of each session that are in the table
static unsigned running, raced;    // workers
static pthread_barrier_t all;      // workers
static uint64_t missed;            // lookups that did not find a lasting flow
static uint64_t no_room, twice;    // inserts that found no room, or the key already there

static unsigned gone; // worker + 1 that has left, 0 = none
static uint64_t made, ended;

static struct flow_key key_of(uint32_t session, unsigned dir)
{
	struct flow_key k = fixture_key(session, false);

	return dir ? flow_key_reverse(&k) : k;
}

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	printf("not ok - %s\n", what); // cmocka's assertions belong to the main thread
	abort();
}

static void insert(unsigned worker, uint32_t session, const struct flow_key *key)
{
	struct flow *f = flow_alloc(worker);
	flow_entry_t found = 0;
	int ret;

	if (f == NULL) {
		__atomic_add_fetch(&no_room, 1, __ATOMIC_RELAXED);
		return;
	}
	f->created = session;
	fixture_flow((uint32_t)(f - flows), key);
	ret = flow_table_insert(table, flow_entry(f, 0), flow_entry(f, 1), &found);
	if (ret == 0) {
		must(session >= LASTING, "a lasting session was inserted again");
		must(__atomic_add_fetch(&live[session], 1, __ATOMIC_RELAXED) == 1, "two flows of one session");
		__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&f->state, FLOW_LIVE, __ATOMIC_RELEASE); // from here on it may end
		return;
	}
	must(ret == -EEXIST || ret == -ENOSPC || ret == -EAGAIN, "what insert returns");
	if (ret == -EEXIST)
		must(flow_key_equal(flow_entry_key(found), key, false) ||
			     flow_key_equal(flow_entry_key(found), &f->dir[1].key, false),
		     "found another flow");
	must(session >= LASTING || ret == -EEXIST, "a lasting session is missing");
	__atomic_add_fetch(ret == -EEXIST ? &twice : &no_room, 1, __ATOMIC_RELAXED);
	flow_unalloc(worker, f);
}

static void end(uint32_t session, struct flow *f)
{
	uint8_t was = FLOW_LIVE;

	if (!__atomic_compare_exchange_n(&f->state, &was, FLOW_ENDING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	must(__atomic_sub_fetch(&live[session], 1, __ATOMIC_RELAXED) == 0, "ended twice");
	flow_table_remove(table, (flow_entry_t[]){flow_entry(f, 0), flow_entry(f, 1)}, 2);
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&f->state, FLOW_ENDED, __ATOMIC_RELEASE);
}

// As flow_age() does: buries ended flows in the worker's chunks.
static void walk(unsigned worker)
{
	uint32_t c, i, n = flow_chunks_used();
	uint64_t used;

	flow_reclaim(worker);
	for (c = 1; c <= n; c++) {
		used = flow_chunk_mine(worker, c) ? flow_chunk_used(c) : 0;
		for (i = 0; i < FLOW_CHUNK; i++) {
			struct flow *f = flow_chunk_first(c) + i;

			if ((used >> i & 1) && __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FLOW_ENDED)
				flow_bury(worker, f);
		}
	}
}

// Each worker has looked for the session, from one end or the other, before the first one inserts it.
static void race(unsigned worker)
{
	uint32_t s;

	for (s = SESSIONS; s < SESSIONS + RACES; s++) {
		struct flow_key key = key_of(s, worker & 1);

		must(flow_table_find(table, &key) == 0, "a session is there before it is inserted");
		pthread_barrier_wait(&all);
		insert(worker, s, &key);
		pthread_barrier_wait(&all);
		must(flow_table_find(table, &key) != 0, "a session that was inserted is missing");
		rcu_quiescent(worker);
	}
}

// A lookup may miss a flow while another worker moves it, but not for good.
static void find_again(const struct flow_key *key)
{
	unsigned tries;

	for (tries = 0; flow_table_find(table, key) == 0; tries++) {
		must(tries < 10000000, "a lasting session is no longer found");
		sched_yield();
	}
}

static void *work(void *arg)
{
	unsigned worker = (unsigned)(uintptr_t)arg, batch, i;
	uint64_t random = worker + 1000;
	struct flow_key keys[BATCH];
	uint32_t session[BATCH];
	flow_entry_t out[BATCH];

	rcu_reader_online(worker);
	race(worker);
	__atomic_add_fetch(&raced, 1, __ATOMIC_RELEASE);
	for (batch = 0; batch < (worker == LEAVER ? BATCHES / 3 : BATCHES); batch++) {
		for (i = 0; i < BATCH; i++) {
			uint64_t r = fixture_random(&random);

			session[i] = (uint32_t)(r >> 32) % SESSIONS;
			keys[i] = key_of(session[i], r & 1);
		}
		flow_table_lookup4(table, keys, out, BATCH);
		for (i = 0; i < BATCH; i++) {
			if (out[i] == 0) {
				if (session[i] < LASTING)
					__atomic_add_fetch(&missed, 1, __ATOMIC_RELAXED);
				insert(worker, session[i], &keys[i]);
				if (session[i] < LASTING)
					find_again(&keys[i]);
				continue;
			}
			must(flow_key_equal(flow_entry_key(out[i]), &keys[i], false), "found another key");
			if (session[i] >= LASTING && fixture_random(&random) % 4 == 0)
				end(session[i], flow_of(out[i]));
		}
		rcu_quiescent(worker);
		if (batch % WALK == 0)
			walk(worker);
		sched_yield(); // there may be fewer CPUs than threads
	}
	rcu_reader_offline(worker);
	if (worker == LEAVER)
		__atomic_store_n(&gone, worker + 1, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

// The master's part: the chunks of a removed worker go to another one.
static void collect(void)
{
	unsigned who = __atomic_load_n(&gone, __ATOMIC_ACQUIRE);

	if (who && flow_hand_over(who - 1, 0, 8))
		__atomic_store_n(&gone, 0, __ATOMIC_RELAXED);
	rcu_poll();
}

static void insert_lasting(void)
{
	uint32_t s;

	for (s = 0; s < LASTING; s++) {
		struct flow *f = flow_alloc(WORKERS);
		struct flow_key k = key_of(s, 0);
		flow_entry_t found;

		fixture_flow((uint32_t)(f - flows), &k);
		f->state = FLOW_LIVE;
		live[s] = 1;
		assert_int_equal(flow_table_insert(table, flow_entry(f, 0), flow_entry(f, 1), &found), 0);
	}
}

static void check_end(void)
{
	uint64_t n = 0;
	uint32_t s;

	for (s = 0; s < SESSIONS + RACES; s++) {
		struct flow_key k = key_of(s, 0), r = key_of(s, 1);
		flow_entry_t a = flow_table_find(table, &k), b = flow_table_find(table, &r);

		assert_int_equal(a != 0, live[s]);
		assert_int_equal(a ^ b, a ? 1 : 0); // two directions of one flow
		n += (unsigned)live[s];
	}
	assert_int_equal(flow_table_used(table), 2 * n);
	assert_int_equal(fixture_check(table).errors, 0);
	assert_int_equal(flow_count(), n);
	assert_int_equal(made - ended + LASTING, n);
}

// After the threads have ended: no flow was lost.
static void check_memory(void)
{
	uint32_t n, s;
	unsigned i;

	for (i = 0; i <= WORKERS; i++)
		while (!flow_hand_over(i, WORKERS + 1, UINT32_MAX))
			;
	for (s = 1; s < flow_used_range(); s++) // lasting sessions
		if (flows[s].state == FLOW_LIVE || flows[s].state == FLOW_ENDED)
			flow_bury(WORKERS + 1, &flows[s]);
	flow_reclaim(WORKERS + 1);
	flow_reclaim(WORKERS + 1);
	assert_int_equal(flow_count(), 0);
	for (n = 0; flow_alloc(WORKERS + 1); n++)
		;
	assert_int_equal(n, flow_capacity());
}

// Inserts all sessions at last: they do not fit into a full table, nor with few flows.
static void insert_all(void)
{
	uint32_t s;

	rcu_reader_online(0);
	for (s = LASTING; s < SESSIONS; s++) {
		struct flow_key key = key_of(s, 0);

		if (flow_table_find(table, &key) == 0)
			insert(0, s, &key);
	}
	rcu_reader_offline(0);
}

static void stress(uint64_t entries, bool grow)
{
	pthread_t thread[WORKERS];
	unsigned i, grown = 0;

	memset(live, 0, sizeof(live));
	missed = no_room = twice = made = ended = 0;
	gone = raced = 0;
	table = flow_table_create(entries);
	insert_lasting();
	running = WORKERS;
	pthread_barrier_init(&all, NULL, WORKERS);
	for (i = 0; i < WORKERS; i++)
		pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0) {
		collect();
		usleep(20);
		if (!grow || __atomic_load_n(&raced, __ATOMIC_ACQUIRE) < WORKERS)
			continue;
		if (flow_table_grow_step(table, 16))
			// The next steps move entries into the new array.
			grown += flow_table_grow_begin(table, grown % 4 ? entries : entries * 3 / 2) == 0;
	}
	for (i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&all);
	do
		collect();
	while (rcu_pending() > 0 || gone);
	for (i = 0; i < 6 * WORKERS; i++) // flows in their grace period, and flows that ended meanwhile
		walk(i % WORKERS);
	print_message("# grew %u times; missed %lu, no room %lu, twice %lu\n", grown, missed, no_room, twice);
	assert_in_range(twice, RACES * (WORKERS - 1), UINT64_MAX);
	insert_all();
	check_end();
	check_memory();
	flow_table_destroy(table);
	rcu_poll();
}

static void in_a_table_with_room(void **state)
{
	stress(4 * SESSIONS, false);
}

static void in_a_full_table(void **state)
{
	stress(SESSIONS, false);
	assert_true(no_room > 0);
}

static void while_it_grows(void **state)
{
	stress(2 * SESSIONS, true);
}

static void while_it_grows_and_is_full(void **state)
{
	stress(SESSIONS, true);
}

// So that workers take free flows from each other.
static void with_few_flows(void **state)
{
	stress(4 * SESSIONS, false);
	assert_true(no_room > 0);
}

static int start_with(uint32_t capacity)
{
	if (flow_init(capacity) != 0 || flow_start(NULL) != 0)
		return -1;
	while (flow_grow_step(UINT32_MAX))
		rcu_poll();
	return 0;
}

static int start_with_few(void **state)
{
	return start_with(FLOW_CAPACITY_MIN * 3);
}

static int start(void **state)
{
	return start_with(FLOW_CAPACITY_MIN * 64);
}

static int stop(void **state)
{
	flow_fini();
	return 0;
}

static int start_eal(void **state)
{
	char *argv[] = {"flow_stress_test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", NULL};

	return eal_init(7, argv) < 0 || rcu_init() != 0;
}

static int stop_eal(void **state)
{
	rcu_fini();
	return rte_eal_cleanup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_a_table_with_room, start, stop),
		cmocka_unit_test_setup_teardown(in_a_full_table, start, stop),
		cmocka_unit_test_setup_teardown(with_few_flows, start_with_few, stop),
		cmocka_unit_test_setup_teardown(while_it_grows, start, stop),
		cmocka_unit_test_setup_teardown(while_it_grows_and_is_full, start, stop),
	};

	return cmocka_run_group_tests(tests, start_eal, stop_eal);
}
