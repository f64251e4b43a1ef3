// SPDX-License-Identifier: Apache-2.0
// Compares the flow table with a plain list of the keys' owners; its load, memory and growth.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_byteorder.h>
#include <rte_eal.h>

#include "base/sanitizers.h"
#include "dpdk/eal_init.h"
#include "flow/table_fixture.h"

#define SESSIONS 40000u
#define KINDS 3 // flows that want a session's keys k, its reverse r, and a third one x: (k, r), (r, k), (x, r)

// --- The list. ---

static flow_entry_t owner[SESSIONS][KINDS]; // of the keys k, r and x
static const uint8_t wants[KINDS][2] = {{0, 1}, {1, 0}, {2, 1}};
static bool inserted[SESSIONS][KINDS];
static uint64_t state_of_random;

static uint32_t rnd(uint32_t n)
{
	return (uint32_t)(fixture_random(&state_of_random) >> 32) % n;
}

static uint32_t flow_number(uint32_t session, unsigned kind)
{
	return 1 + session * KINDS + kind;
}

static struct flow_key key_of(uint32_t session, unsigned which)
{
	struct flow_key k = fixture_key(session, session % 3 == 0), r = flow_key_reverse(&k);

	if (which == 2)
		k.zone = 2;
	return which == 1 ? r : k;
}

static void list_init(void)
{
	uint32_t s;
	unsigned kind, d;

	memset(owner, 0, sizeof(owner));
	memset(inserted, 0, sizeof(inserted));
	for (s = 0; s < SESSIONS; s++)
		for (kind = 0; kind < KINDS; kind++)
			for (d = 0; d < 2; d++)
				flows[flow_number(s, kind)].dir[d].key = key_of(s, wants[kind][d]);
}

static void insert_one(struct flow_table *t, uint32_t s, unsigned kind, unsigned *refused)
{
	flow_entry_t e = flow_number(s, kind) << 1, found = 12345,
		     *own[2] = {&owner[s][wants[kind][0]], &owner[s][wants[kind][1]]};
	int ret = flow_table_insert(t, e, e | 1, &found);

	if (*own[0] || *own[1]) {
		assert_int_equal(ret, -EEXIST);
		assert_int_equal(found, *own[0] ? *own[0] : *own[1]);
		return;
	}
	if (ret == -ENOSPC || ret == -EAGAIN) {
		++*refused;
		return;
	}
	assert_int_equal(ret, 0);
	*own[0] = e;
	*own[1] = e | 1;
	inserted[s][kind] = true;
}

static void remove_one(struct flow_table *t, uint32_t s, unsigned kind)
{
	flow_entry_t e = flow_number(s, kind) << 1;

	flow_table_remove(t, (flow_entry_t[]){e, e | 1}, 2); // also entries that are not in the table
	if (inserted[s][kind])
		owner[s][wants[kind][0]] = owner[s][wants[kind][1]] = 0;
	inserted[s][kind] = false;
}

static void find_one(struct flow_table *t, uint32_t s, unsigned which)
{
	struct flow_key k = key_of(s, which);

	assert_int_equal(flow_table_find(t, &k), owner[s][which]);
}

static void find_all(struct flow_table *t)
{
	struct flow_key keys[2][FLOW_BATCH];
	flow_entry_t out[FLOW_BATCH], wanted[2][FLOW_BATCH];
	unsigned n[2] = {0, 0}, which, v6, i;
	uint32_t s;

	for (s = 0; s < SESSIONS; s++) {
		for (which = 0; which < 3; which++) {
			v6 = s % 3 == 0;
			wanted[v6][n[v6]] = owner[s][which];
			keys[v6][n[v6]++] = key_of(s, which);
			if (n[v6] < FLOW_BATCH && s + 1 < SESSIONS)
				continue;
			(v6 ? flow_table_lookup6 : flow_table_lookup4)(t, keys[v6], out, n[v6]);
			for (i = 0; i < n[v6]; i++)
				assert_int_equal(out[i], wanted[v6][i]);
			n[v6] = 0;
		}
	}
}

static void check(struct flow_table *t)
{
	struct fixture_sum sum = fixture_check(t);
	uint64_t entries = 0;
	uint32_t s;
	unsigned i;

	for (s = 0; s < SESSIONS; s++)
		for (i = 0; i < 3; i++)
			entries += owner[s][i] != 0;
	assert_int_equal(sum.errors, 0);
	assert_int_equal(sum.entries, entries);
	find_all(t);
}

// --- Tests. ---

static void random_operations(uint64_t entries, uint64_t seed, unsigned operations, unsigned grow_every)
{
	struct flow_table *t;
	unsigned i, refused = 0;

	fixture_secret(seed);
	state_of_random = seed;
	list_init();
	t = flow_table_create(entries);
	assert_non_null(t);
	for (i = 0; i < operations; i++) {
		// The table fills and drains in turn.
		uint32_t s = rnd(SESSIONS), what = rnd(16), bias = i / (operations / 4) % 2 ? 4 : 7;

		if (what < bias)
			insert_one(t, s, rnd(KINDS), &refused);
		else if (what < 11)
			remove_one(t, s, rnd(KINDS));
		else
			find_one(t, s, rnd(3));
		if (grow_every && i % grow_every == 0) {
			flow_table_grow_begin(t, flow_table_slots(t) * 11 / 10);
			rcu_poll();
		}
		if (grow_every && i % 64 == 0)
			flow_table_grow_step(t, 2), rcu_poll();
		if (i % (operations / 8) == 0)
			check(t);
	}
	check(t);
	assert_true(entries < SESSIONS || refused == 0);
	flow_table_destroy(t);
}

#define SHARE ASAN_ROUNDS(1u, 5u)

static void many_operations(void **state)
{
	random_operations(2 * SESSIONS, 1, 3000000 / SHARE, 0);
	random_operations(SESSIONS / 4, 2, 1000000 / SHARE, 0); // full all the time
	random_operations(16, 3, 300000, 0);
	random_operations(1, 4, 100000, 0);
}

static void growth(void **state)
{
	random_operations(2 * SESSIONS, 5, 2000000 / SHARE, 100000 / SHARE);
	random_operations(1000, 6, 1000000 / SHARE, 20000 / SHARE); // from full to full
}

// Fills the table with IPv4 and IPv6 flows until the first refusal. Returns the load.
static double fill(struct flow_table *t, uint32_t *n)
{
	flow_entry_t found;
	struct flow_key k;

	for (*n = 1; *n < FLOW_CAPACITY_MIN * 256; ++*n) {
		k = fixture_key(*n, *n % 4 == 0);
		fixture_flow(*n, &k);
		if (flow_table_insert(t, *n << 1, *n << 1 | 1, &found) != 0)
			break;
	}
	return (double)flow_table_used(t) / (double)flow_table_slots(t);
}

static void load(void **state)
{
	static const uint64_t sizes[] = {1000, 2048, 30000, 400000};
	unsigned i, seed, n;
	double reached;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		for (seed = 1; seed <= (sizes[i] > 100000 ? 4 : 40 / SHARE); seed++) {
			struct flow_table *t = flow_table_create(sizes[i]);
			struct fixture_sum sum;
			uint32_t flows_in;

			fixture_secret(seed * 77);
			reached = fill(t, &flows_in);
			if (reached < 0.95)
				print_message("# %u entries, secret %u: refused at %.3f\n", (unsigned)sizes[i], seed,
					      reached);
			assert_true(reached >= 0.95);
			assert_true(flow_table_used(t) >= sizes[i]); // at least the requested number
			sum = fixture_check(t);
			assert_int_equal(sum.errors, 0);
			assert_true(sum.second > sum.entries / 20); // some of each
			for (n = 1; n < flows_in; n++) {
				assert_int_equal(flow_table_find(t, &flows[n].dir[0].key), n << 1);
				assert_int_equal(flow_table_find(t, &flows[n].dir[1].key), n << 1 | 1);
			}
			for (n = 1; n < flows_in; n++)
				flow_table_remove(t, (flow_entry_t[]){n << 1, n << 1 | 1}, 2);
			sum = fixture_check(t); // no filter bit of a moved key is left
			assert_int_equal(sum.errors + sum.entries, 0);
			flow_table_destroy(t);
		}
	}
}

// A full table grows, and accepts entries while it does.
static void growth_when_full(void **state)
{
	struct flow_table *t = flow_table_create(20000);
	uint32_t n, i, extra = 0;
	flow_entry_t found;
	struct flow_key k;
	bool done = false;

	fixture_secret(99);
	fill(t, &n);
	assert_int_equal(flow_table_grow_begin(t, 2 * flow_table_used(t)), 0);
	assert_int_equal(flow_table_grow_begin(t, 100000), -EBUSY);
	while (!done) {
		rcu_poll();
		done = flow_table_grow_step(t, 7);
		i = n + extra++;
		k = fixture_key(i, false);
		fixture_flow(i, &k);
		assert_int_equal(flow_table_insert(t, i << 1, i << 1 | 1, &found), 0);
		// The key is found in whichever array holds it now.
		assert_int_equal(flow_table_insert(t, extra << 1, extra << 1 | 1, &found), -EEXIST);
		assert_int_equal(found, extra << 1);
	}
	rcu_poll();
	for (i = 1; i < n + extra; i++)
		assert_int_equal(flow_table_find(t, &flows[i].dir[i & 1].key), i << 1 | (i & 1));
	assert_int_equal(fixture_check(t).errors, 0);
	assert_int_equal(flow_table_used(t), 2 * (n + extra - 1));
	flow_table_destroy(t);
	t = flow_table_create(100); // destroyed before all readers have seen the new array
	assert_int_equal(flow_table_grow_begin(t, 1000), 0);
	flow_table_destroy(t);
	rcu_poll();
	assert_int_equal(rcu_pending(), 0);
}

// The memory of a large array is taken in shares; until then the old array is the only one.
static void growth_takes_memory_in_shares(void **state)
{
	struct flow_table *t = flow_table_create(100);
	uint64_t before = flow_table_slots(t);
	unsigned shares = 0;

	assert_int_equal(flow_table_grow_begin(t, 2u << 20), 0);
	assert_true(flow_table_growing(t));
	assert_int_equal(flow_table_grow_begin(t, 1000), -EBUSY);
	for (; flow_table_slots(t) == before; shares++)
		assert_false(flow_table_grow_step(t, 1000));
	assert_in_range(shares, 2, 100);
	while (!flow_table_grow_step(t, 1000))
		rcu_poll();
	assert_false(flow_table_growing(t));
	assert_in_range(flow_table_slots(t), 2u << 20, 4u << 20);
	assert_int_equal(flow_table_grow_begin(t, 4u << 20), 0); // destroyed while it takes its memory
	flow_table_destroy(t);
	rcu_poll();
	assert_int_equal(rcu_pending(), 0);
}

static void one_direction_and_equal_keys(void **state)
{
	struct flow_table *t = flow_table_create(100);
	struct flow_key k = fixture_key(1, false);
	flow_entry_t found;

	fixture_flow(1, &k);
	assert_int_equal(flow_table_insert(t, 2, 0, &found), 0);
	assert_int_equal(flow_table_find(t, &flows[1].dir[0].key), 2);
	assert_int_equal(flow_table_find(t, &flows[1].dir[1].key), 0);
	flow_table_remove(t, (flow_entry_t[]){2}, 1);
	k.dst4 = k.src4; // a packet from an address to itself: both directions have one key
	k.dst_port = k.src_port;
	fixture_flow(1, &k);
	assert_int_equal(flow_table_insert(t, 2, 3, &found), 0);
	assert_true(flow_table_find(t, &k) >> 1 == 1);
	flow_table_remove(t, (flow_entry_t[]){2, 3}, 2);
	assert_int_equal(flow_table_find(t, &k), 0);
	assert_int_equal(fixture_check(t).entries, 0);
	flow_table_destroy(t);
}

static void memory(void **state)
{
	struct flow_table *t = flow_table_create(2u << 20);

	assert_true(flow_table_memory(t) + (1ull << 20) * sizeof(struct flow) <= 256ull << 20);
	flow_table_destroy(t);
	errno = 0;
	assert_null(flow_table_create(1ull << 50));
	assert_int_equal(errno, E2BIG);
}

static int start(void **state)
{
	char *argv[] = {"flow_table_test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", NULL};

	if (eal_init(7, argv) < 0 || rcu_init() != 0 || flow_init(FLOW_CAPACITY_MIN * 256) != 0 ||
	    flow_start(NULL) != 0)
		return -1;
	while (flow_grow_step(UINT32_MAX))
		rcu_poll();
	return 0;
}

static int stop(void **state)
{
	flow_fini();
	rcu_fini();
	return rte_eal_cleanup();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_direction_and_equal_keys),
		cmocka_unit_test(many_operations),
		cmocka_unit_test(growth),
		cmocka_unit_test(load),
		cmocka_unit_test(growth_when_full),
		cmocka_unit_test(growth_takes_memory_in_shares),
		cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
